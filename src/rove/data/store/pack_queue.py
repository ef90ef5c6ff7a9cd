"""Chooses which waiting batches are packed, and when.

Law: nothing waits for packing: a batch may be sent, evicted or forgotten meanwhile, unpacked. The oldest is packed
first, a few at a time. Packing a batch that leaves in a moment is not worth the work, here and where it is unpacked. So
while there is much room, only batches that have waited for a while are packed.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from rove.data.events import Pack, Packed
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.store import Store
from rove.model.events import Payload

BYTES_MIN = 1_024  # smaller rows are not packed
OUT_MAX = 8
PATIENCE_US = 500_000  # shorter than the wait before a batch is written to the disk
MUCH_ROOM = 1 / 2  # the free share of a store that counts as much room


class PackQueue:
    """The entries of a store to be packed, and those that are being packed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: deque[tuple[KeptBatch, pa.Schema]] = deque()
        self._out: dict[int, tuple[KeptBatch, Payload]] = {}

    def waits(self, entry: KeptBatch, schema: pa.Schema, now: int) -> list[Pack]:
        """Note a batch that could not be sent at once. Amortized O(1)."""
        if entry.payload is None or len(entry.payload) < BYTES_MIN:
            return []
        self._next.append((entry, schema))
        return self.due(now)

    def packed(self, event: Packed, now: int) -> list[Pack]:
        """Note that a batch is packed, or cannot be packed."""
        if event.order in self._out:
            entry, plain = self._out.pop(event.order)
            small = event.payload
            if small is not None and len(small) < len(plain) and entry.payload is plain and self._waits(entry):
                self._store.shrink(entry, small)
        return self.due(now)

    def due(self, now: int) -> list[Pack]:
        """The batches to pack now. Amortized O(1)."""
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
        """Whether a batch is still here with its original rows, and was neither sent nor written, after which it must
        not change."""
        plain = not entry.header.packed and not entry.header.folded
        return plain and all(each.whole and self._store.holds(each) for each in entry.sharers or (entry,))
