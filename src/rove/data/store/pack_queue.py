"""Batches that wait are made small.

Law: packing is an aid, and never waited for: a batch may be sent, evicted or forgotten meanwhile, and goes as it is.
The oldest is packed first; a few at a time are out of hand. What will leave in a moment is not worth the work, here and
where it is unpacked: while there is much room, only what has waited for a while is packed.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from rove.data.events import Pack, Packed
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.store import Store
from rove.model.events import Payload

BYTES_MIN = 1_024  # rows of fewer bytes are not worth it
OUT_MAX = 8
PATIENCE_US = 500_000  # less than it takes until it is written to a disk
MUCH_ROOM = 1 / 2  # of what a store may take


class PackQueue:
    """Which entries of a store are to be packed, and which are being packed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: deque[tuple[KeptBatch, pa.Schema]] = deque()
        self._out: dict[int, tuple[KeptBatch, Payload]] = {}

    def waits(self, entry: KeptBatch, schema: pa.Schema, now: int) -> list[Pack]:
        """A batch that could not be sent at once. O(1), spread out."""
        if entry.payload is None or len(entry.payload) < BYTES_MIN:
            return []
        self._next.append((entry, schema))
        return self.due(now)

    def packed(self, event: Packed, now: int) -> list[Pack]:
        """One of them is small now, or cannot be."""
        if event.order in self._out:
            entry, plain = self._out.pop(event.order)
            small = event.payload
            if small is not None and len(small) < len(plain) and entry.payload is plain and self._waits(entry):
                self._store.shrink(entry, small)
        return self.due(now)

    def due(self, now: int) -> list[Pack]:
        """What is to be packed by now. O(1), spread out."""
        orders = []
        pressed = self._store.room < MUCH_ROOM * self._store.limit_bytes
        while self._next and len(self._out) < OUT_MAX:
            entry, schema = self._next[0]
            if not pressed and now - entry.since < PATIENCE_US:
                break
            self._next.popleft()
            if self._waits(entry) and (rows := entry.in_memory) is not None:
                self._out[entry.order] = (entry, rows)
                kind = f"{entry.header.query} {entry.header.stage}"
                orders.append(Pack(entry.order, kind, schema, rows))
        return orders

    def _waits(self, entry: KeptBatch) -> bool:
        """Whether it is still here, with the rows it came with, and was never sent, or written: what was must stay the
        same."""
        plain = not entry.header.packed and not entry.header.folded
        return plain and all(each.whole and self._store.holds(each) for each in entry.sharers or (entry,))
