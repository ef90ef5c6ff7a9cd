"""The position of a source whose batches can be made again, such as a source that reads a file.

Law: batch n of such a source has the same rows in every start of its node, and the same name. So the next start makes
again what may not be safe, and a node that has taken it before drops it by its name. A position never passes a batch
that may not be safe: one that no other node has acked and that is not on a disk. It may be behind.

A query gets the batches from `first` on, and an empty header for the numbers before. Its rows before `next` are counted
in `produced`, so that a later start goes on counting where the position is.

No batch is sent before a position is kept that says so: `sent` is above the numbers of all batches that any start has
sent. A batch below it may have arrived, so a later start does not merge its counts with those of others. A position
reserves numbers ahead, so that few batches wait for the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from rove.model.batch import Header
from rove.model.ids import Origin, QueryId
from rove.model.spans import Coverage, Spans

AHEAD_MIN, AHEAD_MAX = 4, 256  # how many numbers a position reserves ahead of the batches that were sent


class Fed(msgspec.Struct, frozen=True, array_like=True):
    """The position of one query: its first batch, the first that may not be safe, and the rows counted before that."""

    first: int
    next: int
    produced: int = 0


class SourceAt(msgspec.Struct, frozen=True, array_like=True):
    """The position of a source: its name, how many batches it has made, the positions of its queries, and the number
    from which on no batch was sent."""

    origin: Origin
    reached: int
    fed: dict[str, Fed] = {}
    sent: int = 0

    @property
    def next(self) -> int:
        """The first batch that must be made again."""
        return min((fed.next for fed in self.fed.values()), default=self.reached)


@dataclass(slots=True)
class _Going:
    """A query that gets batches: as in `Fed`, and the rows of each batch that may not be safe."""

    first: int
    next: int
    produced: int = 0
    unsafe: deque[tuple[int, int]] = field(default_factory=deque)  # numbers of batches, and their rows
    kept: Spans = ()  # batches that an earlier start has left on the disk


class Replayed:
    """One source whose batches can be made again, and its queries."""

    def __init__(self, origin: Origin, at: SourceAt | None = None) -> None:
        self.origin, self.resumes = origin, at is not None
        self._reached = 0 if at is None else at.reached
        self._sent_before = self._reserved = 0 if at is None else at.sent
        self._sent = self._fresh = 0  # above all batches that this start has sent; how many since numbers were reserved
        fed = {} if at is None else at.fed
        self._queries = {query: _Going(each.first, each.next, each.produced) for query, each in fed.items()}

    def begins(self, query: str, number: int) -> int:
        """Let a query begin with batch `number`, unless it has begun before. Returns its first batch if the header for
        the numbers before it may not be safe; else 0. A node without a disk would take the header for the first batch,
        and wait for the batches after it."""
        going = self._queries.setdefault(query, _Going(number, number))
        return going.first if going.next == going.first else 0

    def first(self, query: str) -> int:
        """The first batch that a query gets."""
        going = self._queries.get(query)
        return 0 if going is None else going.first

    def first_unsafe(self, query: str) -> int:
        """The first batch that may not be safe for a query; 0 if none of its batches is safe."""
        going = self._queries.get(query)
        return 0 if going is None or going.next == going.first else going.next

    def queries(self) -> list[QueryId]:
        """The queries that have begun."""
        return [QueryId(query) for query in self._queries]

    def ends(self, query: str) -> None:
        """Forget a query that has left this node."""
        self._queries.pop(query, None)

    def gives(self, query: str, header: Header, rows: int, forks: bool = False) -> tuple[bool, bool]:
        """Count a batch for a query. Returns whether it counts, and whether the query gets it: not if it is safe since
        an earlier start, nor if that start has left it on the disk. Of a batch that `forks`, only a part may be there,
        so the query gets it."""
        going = self._queries.get(query)
        if going is None or (header.through < going.first and not header.born):
            return True, True
        if header.seq < going.next:
            return False, False
        going.unsafe.append((header.seq, rows))
        return True, forks or not _within(header.seq, going.kept)

    def left_behind(self, kept: Mapping[str, Coverage]) -> None:
        """Note the batches that an earlier start has left on the disk, by query. They need not be made again."""
        for query, names in kept.items():
            if query in self._queries:
                self._queries[query].kept = names.spans()

    def safe(self, unsafe: Mapping[str, int], made: int) -> None:
        """Note that all batches are safe, except from these numbers on, by query. `made` is the number of batches
        made, or made again: a batch that an earlier start has left on the disk is counted when it is made again, and no
        position passes it before. O(queries, and batches that have become safe)."""
        self._reserve()
        for query, going in self._queries.items():
            low = max(going.next, min(unsafe.get(query, made), made))
            while going.unsafe and going.unsafe[0][0] < low:
                going.produced += going.unsafe.popleft()[1]
            going.next = low

    def at(self, made: int) -> SourceAt:
        """The position, when batches up to `made` were made, or made again."""
        self._reached = max(self._reached, made)
        fed = {query: Fed(g.first, g.next, g.produced) for query, g in sorted(self._queries.items())}
        return SourceAt(self.origin, self._reached, fed, self._reserved)

    def sends(self, header: Header) -> bool:
        """Note that a batch is about to be sent. Returns whether the position must be kept before that."""
        if header.through < self._sent:
            return False
        self._sent, self._fresh = header.through + 1, self._fresh + 1
        if self._sent <= self._reserved:
            return False
        self._reserve()
        return True

    def sent_before(self, number: int) -> bool:
        """Whether an earlier start may have sent a batch."""
        return number < self._sent_before

    def _reserve(self) -> None:
        """Reserve twice as many numbers as were used since the last time."""
        if self._fresh:
            ahead = min(max(2 * self._fresh, AHEAD_MIN), AHEAD_MAX)
            self._reserved, self._fresh = max(self._reserved, self._sent + ahead), 0


def _within(number: int, spans: Spans) -> bool:
    return any(start <= number < end for start, end in zip(spans[::2], spans[1::2], strict=True))
