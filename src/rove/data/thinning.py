"""Batches that wait are thinned before any is thrown away, for queries that asked for it.

Law: all batches of a query lose the same share before any loses more: the oldest of those that were thinned least is
next. What a batch loses is counted as evicted. Only rows as sources made them are thinned, in memory, not sent yet, and
no other query's as well: whatever else has to go goes whole.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.data.entry import Entry
from rove.data.fragment import Running, encode_rows
from rove.data.packing import head_of, pack, unpack
from rove.data.store import Store
from rove.model.errors import ProtocolError
from rove.model.events import Payload
from rove.model.ids import source_of

LEVELS = 3  # times that a batch is thinned before it goes
ROWS_MIN = 8  # fewer are not worth it
LOOK_MIN = 64  # entries, before it is looked which of them have gone


class Thinning:
    """The batches of one query that may be thinned, by how often they were."""

    def __init__(self, store: Store, codec: str) -> None:
        self._store, self._codec = store, codec
        self._levels: list[deque[Entry]] = [deque() for _ in range(LEVELS)]
        self._look_at = LOOK_MIN

    def waits(self, entry: Entry) -> None:
        """A batch that could not be sent at once. O(1), with a look at all of them spread out."""
        self._levels[0].append(entry)
        if len(self._levels[0]) > self._look_at:
            self._levels = [deque(filter(self._store.holds, entries)) for entries in self._levels]
            self._look_at = 2 * len(self._levels[0]) + LOOK_MIN

    def thin(self, running: Running) -> tuple[Entry, int] | None:
        """Take every n-th row of the batch that is next, and leave the others; how many rows went. None if nothing can
        be thinned. O(rows of a batch), and of those that went meanwhile."""
        for level, entries in enumerate(self._levels):
            while entries:
                entry = entries.popleft()
                rows = self._thinned(entry, running)
                if rows is not None:
                    if level + 1 < LEVELS:
                        self._levels[level + 1].append(entry)
                    return entry, rows
        return None

    def _thinned(self, entry: Entry, running: Running) -> int | None:
        header, payload = entry.header, entry.in_memory
        mine = source_of(header.origin) in running.fragment.feeds and entry.may_go and entry.whole
        if payload is None or not mine or entry.sharers or not self._store.holds(entry):
            return None
        if not ROWS_MIN <= header.rows <= header.born:  # more than were born: an operator multiplies them
            return None
        schema = running.stages.operators[header.stage].schema
        try:
            kept, smaller = every(running.fragment.thins, header.packed > 0, payload, schema, self._codec)
        except (ProtocolError, pa.ArrowException):
            return None
        gone: int = header.rows - kept.num_rows
        plain = kept.nbytes if header.packed else 0
        thinner = replace(
            header, rows=kept.num_rows, born=header.born - gone, evicted=header.evicted + gone, packed=plain
        )
        self._store.thin(entry, thinner, smaller)
        return gone


def every(n: int, packed: bool, payload: Payload, schema: pa.Schema, codec: str) -> tuple[pa.RecordBatch, Payload]:
    """Every n-th row of encoded rows, from the first on, and these encoded alike. O(rows)."""
    rows = unpack(payload, schema) if packed else pa.ipc.read_record_batch(pa.py_buffer(payload), schema)
    count = -(-rows.num_rows // n)
    kept = rows.take(pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(n, pa.int64()), count)), n))
    if packed:
        return kept, pack(kept, head_of(payload).key, codec)
    encoded = encode_rows(kept)
    if encoded is None:
        raise ProtocolError("malformed", "rows that were thinned cannot be encoded")
    return kept, encoded
