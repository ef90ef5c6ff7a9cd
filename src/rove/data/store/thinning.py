"""Thins batches for which there is no room to every n-th row, for queries that ask for it.

Law: all batches of a query lose the same share before any loses more: the oldest of the least thinned batches is next.
Lost rows are counted as evicted.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.data.fragment.running_fragment import RunningFragment
from rove.data.store.degrading import Degradable, decoded, encoded
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.packing import head_of
from rove.data.store.store import Store

LEVELS = 3  # how often a batch is thinned before it is evicted
ROWS_MIN = 8  # batches with fewer rows are not thinned


class Thinning:
    """The batches of one query that may be thinned."""

    def __init__(self, store: Store, codec: str) -> None:
        self._store, self._codec = store, codec
        self._entries = Degradable(store, LEVELS)

    def waits(self, entry: KeptBatch) -> None:
        self._entries.add(entry)

    def degrade(self, running: RunningFragment) -> tuple[KeptBatch, int] | None:
        """Thin a batch. O(rows of the batch, and batches gone meanwhile)."""
        while (found := self._entries.next(running)) is not None:
            entry, level = found
            gone = self._thinned(entry, running)
            if gone is not None:
                self._entries.again(entry, level)
                return entry, gone
        return None

    def _thinned(self, entry: KeptBatch, running: RunningFragment) -> int | None:
        header, payload = entry.header, entry.in_memory
        if (
            payload is None or not ROWS_MIN <= header.rows <= header.born
        ):  # more rows than at the origin: an operator multiplied them
            return None
        rows = decoded(entry, running)
        if rows is None:
            return None
        kept = every(running.fragment.thins, rows)
        smaller, packed = encoded(kept, header.packed > 0, head_of(payload).key if header.packed else None, self._codec)
        gone: int = header.rows - kept.num_rows
        thinner = replace(
            header, rows=kept.num_rows, born=header.born - gone, evicted=header.evicted + gone, packed=packed
        )
        self._store.replace(entry, thinner, smaller)
        return gone


def every(n: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Every n-th row, from the first on. O(rows)."""
    count = -(-rows.num_rows // n)
    return rows.take(pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(n, pa.int64()), count)), n))
