"""Sets of numbers of batches, as ranges.

Law: a set is a tuple of bounds `(from, to, from, to, …)` in ascending order, each `to` exclusive, with a gap before
each `from` but the first. So two equal sets are equal tuples, and a set of any size without gaps has two bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from itertools import pairwise
from typing import TypeAlias

from rove.model.errors import must

Spans: TypeAlias = tuple[int, ...]

BOUNDS_MAX = 64  # in a report; a set with more is reported with its smallest gaps filled


class Coverage:
    """Which numbers are covered, and by how many ranges at once. A range that begins where another one ends costs no
    memory. To add or take away a range is O(1); `spans` is O(bounds)."""

    __slots__ = ("_rises",)

    def __init__(self) -> None:
        self._rises: dict[int, int] = {}  # where the number of ranges changes, and by how much

    def add(self, first: int, through: int, times: int = 1) -> None:
        """Cover `first` to `through`, both included. With `times` -1 a range that was added is taken away."""
        self._rise(first, times)
        self._rise(through + 1, -times)

    @classmethod
    def of(cls, spans: Spans) -> Coverage:
        """The coverage of a set. Bounds that are no set raise a ValueError, because they may come from another node.
        O(bounds)."""
        if not check_spans(spans):
            raise ValueError(f"{spans} are not bounds of ranges")
        found = cls()
        found._rises = {at: -1 if place % 2 else 1 for place, at in enumerate(spans)}
        return found

    def include(self, other: Coverage, times: int = 1) -> None:
        """Add all ranges of another coverage, or with `times` -1 take them away. O(bounds of the other)."""
        for at, rise in other._rises.items():
            self._rise(at, times * rise)

    def _rise(self, at: int, by: int) -> None:
        now = self._rises.get(at, 0) + by
        if now:
            self._rises[at] = now
        else:
            self._rises.pop(at, None)

    def spans(self) -> Spans:
        """The numbers that at least one range covers.

        >>> covered = Coverage()
        >>> covered.add(0, 4)
        >>> covered.add(5, 9)
        >>> covered.add(7, 12)
        >>> covered.spans()
        (0, 13)
        """
        found: list[int] = []
        depth = 0
        for at in sorted(self._rises):
            before, depth = depth, depth + self._rises[at]
            if (before > 0) != (depth > 0):
                found.append(at)
        must(depth == 0, "a range that was added has an end", found[-2:])
        return tuple(found)

    @property
    def first(self) -> int:
        """The smallest number that is covered; there must be one. O(bounds)."""
        return min(self._rises)

    def __bool__(self) -> bool:
        return bool(self._rises)


def union(sets: Iterable[Spans]) -> Spans:
    """The numbers that are in any of the sets. O(bounds × log sets)."""
    found: list[int] = []
    for start, end in merge(*map(_pairs, sets)):
        if found and start <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += (start, end)
    return tuple(found)


def minus(whole: Spans, taken: Spans) -> Spans:
    """The numbers of the first set that are not in the second. O(bounds).

    >>> minus((0, 10), (2, 4, 6, 7))
    (0, 2, 4, 6, 7, 10)
    """
    found: list[int] = []
    holes = list(_pairs(taken))
    place = 0
    for start, end in _pairs(whole):
        while place < len(holes) and holes[place][1] <= start:
            place += 1
        at = place
        while at < len(holes) and holes[at][0] < end:
            if holes[at][0] > start:
                found += (start, holes[at][0])
            start = max(start, holes[at][1])
            at += 1
        if start < end:
            found += (start, end)
    return tuple(found)


def both(a: Spans, b: Spans) -> Spans:
    """The numbers that are in both sets. O(bounds)."""
    return minus(a, minus(a, b))


def size(spans: Spans) -> int:
    """How many numbers are in a set."""
    return sum(end - start for start, end in _pairs(spans))


def bounded(spans: Spans, bounds_max: int = BOUNDS_MAX) -> Spans:
    """A set with at most so many bounds: the smallest gaps are filled. O(bounds × log bounds)."""
    excess = (len(spans) - bounds_max + 1) // 2
    if excess <= 0:
        return spans
    gaps = sorted(range(1, len(spans) - 1, 2), key=lambda at: (spans[at + 1] - spans[at], at))
    filled = {place for at in gaps[:excess] for place in (at, at + 1)}
    return tuple(bound for place, bound in enumerate(spans) if place not in filled)


def text_of(spans: Spans, most: int = 3) -> str:
    """A set for people.

    >>> text_of((0, 1, 4, 8))
    '0, 4 to 7'
    """
    parts = [str(start) if end == start + 1 else f"{start} to {end - 1}" for start, end in _pairs(spans)]
    more = [f"{len(parts) - most} more ranges"] if len(parts) > most else []
    return ", ".join([*parts[:most], *more])


def check_spans(spans: Spans) -> bool:
    """Whether bounds are a set: in ascending order, in pairs, none negative."""
    return len(spans) % 2 == 0 and (not spans or spans[0] >= 0) and all(a < b for a, b in pairwise(spans))


def _pairs(spans: Spans) -> Iterable[tuple[int, int]]:
    return zip(spans[::2], spans[1::2], strict=True)
