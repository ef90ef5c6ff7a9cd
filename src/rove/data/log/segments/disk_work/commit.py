"""Executes the disk commands of partitions: for a writer that waits for the disk, and for the shell of a machine.

Law: every group is answered once, whether it succeeded or failed. A partition is open once its indexes are mended.
"""

from __future__ import annotations

import pyarrow as pa

from rove.data.events import DiskDone, OnDisk
from rove.data.log.segments.commands import Disk, Group, Publish
from rove.data.log.segments.format import Mark
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.errors import DiskError


def recovered(
    name: str, schema: pa.Schema, disk: Disk, settings: LogSettings | None, now_us: int
) -> tuple[Partition, Mark]:
    """The partition in a folder, and its end. Other disk work of the recovery may follow later; but a mended index is
    written now, because readers would miss its entries."""
    partition = Partition.recover(name, schema, disk.sizes(), disk.read, settings)
    upto = partition.mark()
    if partition.recovers:
        commit(partition, disk, now_us)
    if partition.unmended:
        raise DiskError(f"log {name}: an index is damaged and cannot be made again: {partition.trouble}; mend the disk")
    return partition, upto


def carried_out(disk: Disk, order: OnDisk) -> DiskDone:
    """Execute a group of commands for a machine, up to the first that fails."""
    unpublished = ""
    for command in order.group.commands:
        try:
            disk.execute(command)
        except OSError as error:
            if not isinstance(command, Publish):
                return DiskDone(order.folder, order.group.token, trouble=str(error))
            unpublished = str(error)
    return DiskDone(order.folder, order.group.token, unpublished=unpublished)


def commit(partition: Partition, disk: Disk, now_us: int) -> range:
    """Write and sync all waiting entries. Returns the positions that are safe now; none if the disk fails."""
    group = partition.flush(now_us)
    return range(0) if group is None else carry_out(partition, disk, group)


def carry_out(partition: Partition, disk: Disk, group: Group) -> range:
    """Execute a group and tell the partition."""
    for command in group.commands:
        try:
            disk.execute(command)
        except OSError as error:
            if isinstance(command, Publish):
                partition.unpublished(group.token, str(error))
                continue
            partition.failed(group.token, str(error))
            return range(0)
    return partition.synced(group.token)


def retire(partition: Partition, disk: Disk, now_us: int) -> int:
    """Delete the segments that are not needed. Returns how many."""
    before = len(partition.segments)
    try:
        for command in partition.retire(now_us):
            disk.execute(command)
    except OSError as error:
        partition.undeleted(str(error))
    return before - len(partition.segments)
