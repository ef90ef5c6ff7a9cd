"""Appends batches to a partition, and acks them when they are safe.

Law: the sender of a batch is told that it is safe when it is on the disk, and not before. A duplicate is as safe as the
batches that were appended before it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rove.data.events import DiskDone
from rove.data.link.receipts import FrameReceipt
from rove.data.log.segments.commands import Group, Position
from rove.data.log.segments.partition import Partition
from rove.model.batch import Header
from rove.model.errors import must
from rove.model.events import Payload
from rove.model.ids import QueryId

DELETES = 0  # the token of a group of deletes; other groups count from 1


class Waiting(NamedTuple):
    """A batch that is being written to the disk. A duplicate has no header; only its receipt waits."""

    position: Position
    header: Header | None
    rows: Payload | None
    receipt: FrameReceipt | None


class Appending:
    """One partition of one query."""

    def __init__(self, query: QueryId, partition: Partition) -> None:
        self.query, self.partition = query, partition
        self.waiting: deque[Waiting] = deque()

    def append(self, header: Header, rows: Payload | None, receipt: FrameReceipt | None) -> bool:
        """Append a batch. Returns whether it is new."""
        partition = self.partition
        position = partition.append(header, rows)
        if position is None:
            if partition.committed >= partition.end:
                return False
            waiting = Waiting(Position(partition.end - 1), None, None, receipt)
        else:
            waiting = Waiting(position, header, rows, receipt)
        if receipt is not None:
            receipt.hold()
        self.waiting.append(waiting)
        return position is not None

    @property
    def idle(self) -> bool:
        """Whether nothing waits for the disk. After trouble, readers may still have to be told how far to read."""
        waits = self.partition.pending_bytes or self.waiting or self.partition.keeps
        return not waits and self.partition.trouble is None

    def retire(self, now: int) -> Group | None:
        """The deletes of segments that are not needed."""
        deletes = self.partition.retire(now)
        return Group(DELETES, tuple(deletes)) if deletes else None

    def done(self, event: DiskDone) -> list[Waiting]:
        """A group was executed, or failed. Returns the batches that are safe now; their senders are told."""
        partition = self.partition
        if event.token == DELETES:
            if event.trouble:
                partition.undeleted(event.trouble)
            return []
        if event.trouble:
            partition.failed(event.token, event.trouble)
            return []
        if event.unpublished:
            partition.unpublished(event.token, event.unpublished)
        partition.synced(event.token)
        safe = []
        while self.waiting and self.waiting[0].position < partition.committed:
            safe.append(self.waiting.popleft())
        for each in safe:
            if each.receipt is not None:
                each.receipt.release()
        return safe

    def validate(self) -> None:
        """Who waits, waits in order for what is in the partition. O(batches that wait)."""
        self.partition.validate()
        if waiting := [each.position for each in self.waiting]:
            name = self.partition.name
            must(waiting == sorted(waiting), "a folder is waited for in order", name, waiting)
            must(waiting[-1] < self.partition.end, "what waits for a folder is in it", name, waiting[-1])

    def close(self) -> list[Header]:
        """Append no more. Returns the headers of batches that were being written."""
        for each in self.waiting:
            if each.receipt is not None:
                each.receipt.release()
        return [each.header for each in self.waiting if each.header is not None]
