"""Drives a partition with a disk that answers at once.

Law: the partition is told of every group exactly once, whether it succeeded or failed.
"""

from __future__ import annotations

from rove.data.log.segments.commands import Disk, Group, Publish
from rove.data.log.segments.partition import Partition


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
