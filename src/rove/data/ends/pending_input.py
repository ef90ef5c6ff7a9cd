"""Batches that are safe on the disk and still have to be computed by stateful operators.

Law: each query computes in the order in which its batches became safe. Batches from before a restart are read back
first, in parts of bounded size. A query that waits for the disk does not hold up others. Memory is counted in bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rove.data.events import LogRead, ReadLog
from rove.data.log.segments.commands import START, Position
from rove.data.log.segments.format import Mark
from rove.model.batch import Header, of_query
from rove.model.errors import must
from rove.model.events import Payload
from rove.model.ids import QueryId

READ_AHEAD = 64  # when fewer entries are left of a part, the next part is requested
PAUSE_US_MIN = 100_000  # after a part that could not be read; each pause is twice as long as the last
PAUSE_US_MAX = 10_000_000


class PendingBatch(NamedTuple):
    """A batch that is safe now, and goes into the stateful operators."""

    query: QueryId
    header: Header
    payload: Payload | None
    position: Position  # in the input log


class CaughtUp(NamedTuple):
    """All batches that were on the disk for a query are computed."""

    query: QueryId


@dataclass(slots=True)
class _Reading:
    """A log that is read back, up to its end when it was opened."""

    folder: str
    upto: Mark
    position: Position = START
    asked: bool = False
    due_us: int = 0
    pause_us: int = PAUSE_US_MIN
    trouble: str = ""


@dataclass(slots=True)
class _Query:
    """One query's batches. Those read back come before those that became safe since."""

    reading: _Reading | None = None
    read: deque[PendingBatch] = field(default_factory=deque)
    fresh: deque[PendingBatch] = field(default_factory=deque)
    over: bool = False  # whether everything was read back, and is not all computed yet

    def next(self, query: QueryId) -> PendingBatch | CaughtUp | None:
        if self.read:
            return self.read.popleft()
        if self.over:
            self.over = False
            return CaughtUp(query)
        return self.fresh.popleft() if self.fresh and self.reading is None else None


class PendingInput:
    """The batches that wait to be computed, by query. `bytes` is the memory that they take."""

    def __init__(self) -> None:
        self._queries: dict[QueryId, _Query] = {}
        self.bytes = 0

    def on_disk(self, query: QueryId, folder: str, upto: Mark, begin: Position = START) -> None:
        """Read back the earlier input of a query from a position on, because its operators start again."""
        self._queries.setdefault(query, _Query()).reading = _Reading(folder, upto, begin)

    def in_memory(self, batches: list[PendingBatch]) -> None:
        """Add batches of one query that have just become safe."""
        self.bytes += sum(map(_size, batches))
        self._queries.setdefault(batches[0].query, _Query()).fresh += batches

    def ask(self, now: int) -> list[ReadLog]:
        """The requests for the parts that are needed next. O(queries that are read back)."""
        asked = []
        for each in self._queries.values():
            reading = each.reading
            if reading is not None and not reading.asked and len(each.read) < READ_AHEAD and now >= reading.due_us:
                reading.asked = True
                asked.append(ReadLog(reading.folder, reading.position, reading.upto, rows=True))
        return asked

    def read(self, event: LogRead, now: int) -> None:
        """Take a part of a log. A part that cannot be read now is requested again."""
        for query, each in self._queries.items():
            reading = each.reading
            if reading is None or reading.folder != event.folder or reading.position != event.position:
                continue
            reading.asked, reading.trouble = False, event.trouble
            if event.trouble:
                reading.due_us, reading.pause_us = now + reading.pause_us, min(2 * reading.pause_us, PAUSE_US_MAX)
                return
            batches = [PendingBatch(query, found.header, found.payload, found.position) for found in event.entries]
            self.bytes += sum(map(_size, batches))
            each.read += batches
            reading.position, reading.pause_us = event.next, PAUSE_US_MIN
            if event.over:
                each.reading, each.over = None, True
            return

    def next(self) -> PendingBatch | CaughtUp | None:
        """The next batch, or that a query has caught up with its log; None if there is neither, or it must be read
        first. O(queries that wait for the disk)."""
        for query, each in list(self._queries.items()):
            found = each.next(query)
            if found is not None:
                self.bytes -= _size(found) if isinstance(found, PendingBatch) else 0
                return found
            if each.reading is None:
                del self._queries[query]
        return None

    def forget(self, query: QueryId) -> None:
        """Forget everything of a query."""
        gone = self._queries.pop(query, _Query())
        self.bytes -= sum(map(_size, (*gone.read, *gone.fresh)))

    def has(self, query: QueryId) -> bool:
        """Whether input of a query is still to be computed."""
        found = self._queries.get(query)
        return found is not None and bool(found.reading or found.read or found.fresh)

    def headers(self) -> Iterator[Header]:
        """The batches that became safe in this start and wait to be computed."""
        return (of_query(batch.header, batch.query) for each in self._queries.values() for batch in each.fresh)

    def validate(self) -> None:
        """Raise unless `bytes` is the sum over the batches. O(batches)."""
        held = sum(_size(batch) for each in self._queries.values() for batch in (*each.read, *each.fresh))
        must(self.bytes == held, "bytes that wait to be computed add up", self.bytes, held)

    def troubles(self) -> dict[str, str]:
        """The folders that cannot be read now, and why."""
        readings = (each.reading for each in self._queries.values())
        return {reading.folder: reading.trouble for reading in readings if reading is not None and reading.trouble}

    def __bool__(self) -> bool:
        return bool(self._queries)


def _size(batch: PendingBatch) -> int:
    return 0 if batch.payload is None else len(batch.payload)
