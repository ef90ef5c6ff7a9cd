"""Batches that are safe on the disk and still to be computed by operators that remember.

Law: in the order in which they became safe, or were found on the disk. Those that wait in memory are counted in bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from rove.model.batch import Header
from rove.model.events import Payload
from rove.model.ids import QueryId


class PendingBatch(NamedTuple):
    """A batch that is safe now and goes into the operators that remember."""

    query: QueryId
    header: Header
    payload: Payload | None


class CaughtUp(NamedTuple):
    """All that was found on the disk for a query is computed."""

    query: QueryId


class _Run(NamedTuple):
    """Batches of one query: from memory, or read again from the disk."""

    query: QueryId
    batches: Iterator[PendingBatch]
    in_memory: bool


class PendingInput:
    """A queue of them. `bytes` are those that it holds in memory."""

    def __init__(self) -> None:
        self._runs: deque[_Run] = deque()
        self.bytes = 0

    def on_disk(self, query: QueryId, batches: Iterator[PendingBatch]) -> None:
        """What a query's operators had taken before a restart."""
        self._runs.append(_Run(query, batches, in_memory=False))

    def in_memory(self, batches: list[PendingBatch]) -> None:
        """What has just become safe, of one query."""
        self.bytes += sum(map(_size, batches))
        self._runs.append(_Run(batches[0].query, iter(batches), in_memory=True))

    def next(self) -> PendingBatch | CaughtUp | None:
        """The next batch, or that a query has caught up with its disk; None if there is neither. A batch that cannot be
        read is an error of the query that is `first`."""
        while self._runs:
            run = self._runs[0]
            replay = next(run.batches, None)
            if replay is not None:
                self.bytes -= _size(replay) if run.in_memory else 0
                return replay
            self._runs.popleft()
            if not run.in_memory:
                return CaughtUp(run.query)
        return None

    @property
    def first(self) -> QueryId:
        return self._runs[0].query

    def forget(self, query: QueryId) -> None:
        """Let go of everything of a query."""
        gone = [run for run in self._runs if run.query == query]
        self._runs = deque(run for run in self._runs if run.query != query)
        self.bytes -= sum(_size(replay) for run in gone if run.in_memory for replay in run.batches)

    def __bool__(self) -> bool:
        return bool(self._runs)


def _size(replay: PendingBatch) -> int:
    return 0 if replay.payload is None else len(replay.payload)
