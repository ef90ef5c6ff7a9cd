"""Which batches of each origin a consumer has taken.

Law: a seq is new once. `take` returns which part of a range is new and takes it in the same step. So resends, redundant
routes, replays and re-runs add nothing.

An origin is one sorted list of bounds, `[from, to, from, to, …]`, each `to` exclusive: a seq is taken if an odd number
of bounds lies at or below it. Origins whose seqs came without gaps, nearly all, are a single number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from itertools import pairwise
from typing import Generic, TypeVar

from rove.model.errors import DataError, StateError, must
from rove.model.spans import Spans

By = TypeVar("By", bound=Hashable)  # an origin, or whatever else numbers batches


class Frontier(Generic[By]):
    """Per origin, all seqs below `next` and disjoint ranges beyond. Ranges are given and returned inclusive."""

    __slots__ = ("_beyond", "_next")

    def __init__(self) -> None:
        self._next: dict[By, int] = {}
        self._beyond: dict[By, list[int]] = {}  # only origins that have gaps

    def take(self, origin: By, first: int, through: int) -> list[tuple[int, int]]:
        """Take a range; the parts of it that are new. O(1) in order, O(log ranges) and a shift otherwise.

        >>> frontier: Frontier[str] = Frontier()
        >>> frontier.take("train-7", 0, 2), frontier.take("train-7", 2, 4), frontier.take("train-7", 3, 3)
        ([(0, 2)], [(3, 4)], [])
        """
        if self._next.get(origin, 0) == first <= through and origin not in self._beyond:
            self._next[origin] = through + 1
            return [(first, through)]
        return self._take(origin, first, through)

    def _take(self, origin: By, first: int, through: int) -> list[tuple[int, int]]:
        if not 0 <= first <= through:
            raise DataError(
                f"`{origin}` sent seqs {first} to {through}; a range starts at 0 or later and ends after it"
            )
        following = self._next.get(origin, 0)
        start, end = max(first, following), through + 1
        if start >= end:
            return []
        bounds = self._beyond.setdefault(origin, [])
        low, high = bisect_left(bounds, start), bisect_right(bounds, end)
        # An even index is outside of every taken range, so the range itself bounds what is new there.
        left, right = [start] * (low % 2 == 0), [end] * (high % 2 == 0)
        edges = left + bounds[low:high] + right
        bounds[low:high] = left + right
        if bounds[0] == following:
            following = bounds[1]
            del bounds[:2]
        self._next[origin] = following
        if not bounds:
            del self._beyond[origin]
        return [(a, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]

    def has(self, origin: By, seq: int) -> bool:
        """Whether a seq was taken."""
        if seq < self._next.get(origin, 0):
            return seq >= 0
        return bisect_right(self._beyond.get(origin, ()), seq) % 2 == 1

    def next(self, origin: By) -> int:
        """The first seq that was not taken."""
        return self._next.get(origin, 0)

    def end(self, origin: By) -> int:
        """The seq after the highest one that was taken."""
        return self._beyond.get(origin, (self.next(origin),))[-1]

    def gaps(self, origin: By) -> list[tuple[int, int]]:
        """The ranges that are missing below the highest seq taken."""
        edges = [self._next.get(origin, 0), *self._beyond.get(origin, ())]
        return [(a, b - 1) for a, b in zip(edges[:-1:2], edges[1::2], strict=True)]

    def spans(self) -> Iterator[tuple[By, Spans]]:
        """The seqs that were taken, by origin."""
        for origin, following in self._next.items():
            begin = (0, following) if following else ()
            yield origin, (*begin, *self._beyond.get(origin, ()))

    def table(self) -> dict[By, list[int]]:
        """Everything, for a snapshot: by origin its next seq, then the bounds of what was taken beyond it."""
        beyond = self._beyond
        return {origin: [following, *beyond.get(origin, ())] for origin, following in self._next.items()}

    def validate(self) -> None:
        """Raise unless the batches beyond a gap are in ranges, in order, with a gap before each. O(ranges beyond
        gaps)."""
        for origin, bounds in self._beyond.items():
            edges = [self.next(origin), *bounds]
            whole = len(bounds) > 0 and len(bounds) % 2 == 0 and all(a < b for a, b in pairwise(edges))
            must(whole, "ranges that were taken are apart and in order", origin, edges)

    def load(self, table: dict[By, list[int]]) -> None:
        """Restore what `table` returned."""
        for origin, edges in table.items():
            if len(edges) % 2 == 0 or edges[0] < 0 or any(a >= b for a, b in pairwise(edges)):
                raise StateError(
                    f"the frontier of `{origin}` reads {edges[:6]}, which no frontier wrote; it is damaged"
                )
        self._next = {origin: edges[0] for origin, edges in table.items()}
        self._beyond = {origin: edges[1:] for origin, edges in table.items() if len(edges) > 1}
