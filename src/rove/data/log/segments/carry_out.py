"""Executes a machine's disk commands on one folder, for a shell.

Law: every command is answered once, whether it succeeded or not.
"""

from __future__ import annotations

from rove.data.events import DiskDone, Load, Loaded, OnDisk
from rove.data.log.segments.commands import Disk, Publish
from rove.data.log.segments.read_back import RowsGone, load


def carried_out(disk: Disk, order: OnDisk) -> DiskDone:
    """Execute a group of commands, up to the first that fails."""
    unpublished = ""
    for command in order.group.commands:
        try:
            disk.execute(command)
        except OSError as error:
            if not isinstance(command, Publish):
                return DiskDone(order.folder, order.group.token, trouble=str(error))
            unpublished = str(error)
    return DiskDone(order.folder, order.group.token, unpublished=unpublished)


def loaded(disk: Disk, order: Load) -> Loaded:
    """Read the rows at an address."""
    try:
        return Loaded(order.peer, order.order, load(disk, order.rows))
    except OSError as error:
        return Loaded(order.peer, order.order, None, str(error), gone=isinstance(error, RowsGone))
