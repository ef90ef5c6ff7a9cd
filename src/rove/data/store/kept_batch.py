"""A batch that a node keeps, and what may be done with it.

Law: rows that somebody else may have stay as they are: a batch that was sent, has copies, or is on the disk is neither
packed nor thrown away in part.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from rove.data.log.segments.stored import Stored
from rove.model.batch import Header
from rove.model.events import Payload

KEPT_BYTES_MIN = 128  # what a batch without rows is counted as: its header, and the objects around it


def size_of(header: Header, payload: Sized | None) -> int:
    """Bytes that a batch takes where its rows are looked at, packed or not: what credit is counted in."""
    return KEPT_BYTES_MIN + (header.packed or (0 if payload is None else len(payload)))


class Receipt(Protocol):
    """Whoever sent a batch here, and may forget it once it is in safe hands."""

    def release(self) -> None: ...


class KeptBatch:
    """One batch, and since when it is here; `number` is its frame on the link that carried it, 0 before it was sent.

    `order` tells which came first. `before` and `after` are those of the same query, origin and stage; late rows have
    none. One that is `gone` has become part of its neighbour, or is needed no more, and is not sent. `copies` go over
    other routes; a copy counts no bytes and no rows, its `original` does. Several queries may wait with the same
    rows: these are there once, and the first of the `sharers` counts their bytes. Rows that lie on the disk are
    `disk_bytes`, and none in memory; one that is `stored` is on the disk, or on its way to it (`leaving_bytes`), and
    stays as it is.
    """

    __slots__ = (
        "after", "alone", "before", "bytes", "copies", "disk_bytes", "gone", "header", "leaving_bytes", "load",
        "loaded", "number", "order", "original", "payload", "receipt", "sharers", "since", "stored",
    )  # fmt: skip

    def __init__(self, header: Header, payload: Payload | Stored | None, receipt: Receipt | None) -> None:
        self.header, self.payload, self.receipt = header, payload, receipt
        self.bytes = KEPT_BYTES_MIN if payload is None else KEPT_BYTES_MIN + len(payload)
        self.number = self.order = self.since = self.disk_bytes = self.leaving_bytes = 0
        self.stored = self.alone = False
        self.load = 0  # the order to read its rows that is out, if one is
        self.loaded: Payload | None = None  # rows that were read and are sent next
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
        """Whether nobody can have it but us: it is no copy, has none, was not sent, and was not given to us."""
        return self.original is None and not self.copies and not self.number and self.receipt is None

    @property
    def nowhere_else(self) -> bool:
        """Whether nobody can have it but us, nor can have had it: an earlier start may have sent what is `alone`."""
        return self.untouched and not self.alone

    @property
    def whole(self) -> bool:
        """Whether its rows are in memory, and may become others' too, or smaller."""
        mine = self.original is None and not self.copies and not self.number
        return mine and self.payload is not None and not self.stored and not self.gone

    @property
    def may_go(self) -> bool:
        """Whether its rows may be thrown away: nobody else has them."""
        return self.untouched and self.payload is not None

    @property
    def folds(self) -> bool:
        """Whether it is a header from here that waits, and may become one with a neighbour. One that stays `alone` may
        have been sent before; it may if it counts nothing, since nothing is counted twice then."""
        header = self.header
        if self.payload is not None or header.late or not self.untouched:
            return False
        return not self.alone or not (header.born or header.evicted or header.lost)
