"""Makes waiting batches smaller before they are evicted, for queries that ask for it.

Law: only rows of sources are degraded, in memory, not sent yet, and not shared with another query. All other batches
are evicted whole. A degraded batch keeps its name, and its header says what happened to its rows.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import pyarrow as pa

from rove.data.fragment.running_fragment import RunningFragment
from rove.data.rows import decode_rows
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.packing import pack
from rove.data.store.store import Store
from rove.model.errors import ProtocolError
from rove.model.events import Payload

LOOK_MIN = 64  # entries before gone ones are removed


class Degrading(Protocol):
    """How one query makes its batches smaller."""

    def waits(self, entry: KeptBatch) -> None:
        """Note a batch that could not be sent at once."""

    def degrade(self, running: RunningFragment) -> tuple[KeptBatch, int] | None:
        """Make the next batch smaller. Returns it and how many rows it lost; None if nothing can be done."""


class Degradable:
    """The batches of a query that may be degraded, by how often they were, the oldest first."""

    def __init__(self, store: Store, times: int = 1) -> None:
        self._store = store
        self._levels: list[deque[KeptBatch]] = [deque() for _ in range(times)]
        self._look_at = LOOK_MIN

    def add(self, entry: KeptBatch) -> None:
        """Add a batch. Amortized O(1)."""
        self._levels[0].append(entry)
        if len(self._levels[0]) > self._look_at:
            self._levels = [deque(filter(self._store.holds, entries)) for entries in self._levels]
            self._look_at = 2 * len(self._levels[0]) + LOOK_MIN

    def next(self, running: RunningFragment) -> tuple[KeptBatch, int] | None:
        """The oldest of the least degraded batches, and how often it was degraded. O(batches gone meanwhile)."""
        for level, entries in enumerate(self._levels):
            while entries:
                entry = entries.popleft()
                if self._may_change(entry, running):
                    return entry, level
        return None

    def again(self, entry: KeptBatch, level: int) -> None:
        """Add a degraded batch again, so that it can be degraded further, up to a limit."""
        if level + 1 < len(self._levels):
            self._levels[level + 1].append(entry)

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def _may_change(self, entry: KeptBatch, running: RunningFragment) -> bool:
        header = entry.header
        mine = header.origin.unsided in running.fragment.feeds and entry.may_go and not header.late
        return mine and entry.whole and entry.in_memory is not None and not entry.sharers and self._store.holds(entry)


def decoded(entry: KeptBatch, running: RunningFragment) -> pa.RecordBatch | None:
    """The rows of a batch that is in memory; None if they cannot be read."""
    payload, schema = entry.in_memory, running.schema_of(entry.header)
    if payload is None:
        return None
    try:
        return decode_rows(payload, schema, entry.header.rows, entry.header.packed)
    except ProtocolError:
        return None


def encoded(rows: pa.RecordBatch, packed: bool, key: int | None, codec: str) -> tuple[Payload, int]:
    """The encoded rows, packed if they were packed before, and their unpacked size for the header. O(rows)."""
    if packed:
        return pack(rows, key, codec), rows.nbytes
    return memoryview(rows.serialize()), 0
