"""A batch in a store, and what may be done with it.

Law: rows that another node may have are not changed: a batch that was sent, has copies, or is on the disk is neither
packed nor degraded.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from rove.data.log.segments.stored import Stored
from rove.model.batch import Header
from rove.model.events import Payload

KEPT_BYTES_MIN = 128  # the bytes counted for a batch without rows: its header and the objects around it


def size_of(header: Header, payload: Sized | None) -> int:
    """The bytes of a batch with unpacked rows, or as it is if that is more. Credit is counted in these bytes."""
    return KEPT_BYTES_MIN + max(header.packed, 0 if payload is None else len(payload))


class Receipt(Protocol):
    """Tells the sender of a batch that it may forget the batch."""

    def release(self) -> None: ...


class KeptBatch:
    """One batch, and since when it is kept. `number` is its frame number on its link, 0 before it is sent.

    `order` is the order of arrival. `before` and `after` are its neighbours of the same query, origin and stage; late
    rows have none. A `gone` batch was merged into its neighbour or is no longer needed, and is not sent. `copies` are
    sent over other routes; bytes and rows are counted for the `original` only. Several queries may keep the same rows:
    they are kept once, and the first of the `sharers` counts their bytes. Rows on the disk count as `disk_bytes` and
    take no memory. A `stored` batch is on the disk, or is being written (`leaving_bytes`), and is not changed.
    """

    __slots__ = (
        "after", "alone", "before", "bytes", "copies", "disk_bytes", "failed", "gone", "header", "leaving_bytes",
        "load", "loaded", "number", "order", "original", "payload", "receipt", "sharers", "since", "stored",
    )  # fmt: skip

    def __init__(self, header: Header, payload: Payload | Stored | None, receipt: Receipt | None) -> None:
        self.header, self.payload, self.receipt = header, payload, receipt
        self.bytes = KEPT_BYTES_MIN if payload is None else KEPT_BYTES_MIN + len(payload)
        self.number = self.order = self.since = self.disk_bytes = self.leaving_bytes = 0
        self.stored = self.alone = False
        self.failed = 0  # attempts in a row to read its rows
        self.load = 0  # the number of the pending request for its rows; 0 if there is none
        self.loaded: Payload | None = None  # rows that were read from the disk and are sent next
        self.before: KeptBatch | None = None
        self.after: KeptBatch | None = None
        self.gone = False
        self.original: KeptBatch | None = None
        self.copies: list[KeptBatch] = []
        self.sharers: list[KeptBatch] | None = None

    @property
    def in_memory(self) -> Payload | None:
        """Its rows, if they are in memory."""
        return self.payload if isinstance(self.payload, bytes | memoryview) else None

    @property
    def untouched(self) -> bool:
        """Whether no other node has it: it is not a copy, has no copies, was not sent, and was not received."""
        return self.original is None and not self.copies and not self.number and self.receipt is None

    @property
    def nowhere_else(self) -> bool:
        """Whether no other node has it or may have had it: a batch that is `alone` may have been sent by an earlier
        start."""
        return self.untouched and not self.alone

    @property
    def whole(self) -> bool:
        """Whether its rows are in memory, and may be shared or made smaller. Pieces of state stay as they are."""
        mine = self.original is None and not self.copies and not self.number and not self.header.state
        return mine and self.payload is not None and not self.stored and not self.gone

    @property
    def may_go(self) -> bool:
        """Whether its rows may be evicted: no other node has them, and they are not a piece of state."""
        return self.untouched and self.payload is not None and not self.header.state

    @property
    def folds(self) -> bool:
        """Whether it is a waiting header from here that may be merged with a neighbour. A header that is `alone` may
        have been sent before, so it is merged only if it counts no rows; then nothing is counted twice."""
        header = self.header
        if self.payload is not None or header.late or not self.untouched:
            return False
        return not self.alone or not (header.born or header.evicted or header.lost or header.faulted or header.belated)
