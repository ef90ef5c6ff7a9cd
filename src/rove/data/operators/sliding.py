"""Merges panes to hopping windows without starting over: a window is a suffix of one block and a prefix of the next.

Panes are grouped into blocks as long as a window. Within a block, merging from the right gives every suffix once;
merging from the left extends the prefix by one pane at a time. A window is then one merge:

    block 0              block 1
    p0  p1  p2  p3   |   p4  p5  p6  p7
            └─suffix─┘   └prefix┘            window of four panes that starts at p2

Law: about three merges for each window, however many panes it has. The order of merging depends on pane numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Sliding(Generic[T]):
    """`pane(n)` returns the merged states of a complete pane, or None; `merge` merges two."""

    def __init__(self, panes_per_window: int, pane: Callable[[int], T | None], merge: Callable[[T, T], T]) -> None:
        self._length, self._pane, self._merge = panes_per_window, pane, merge
        self._suffixes: dict[int, T | None] = {}
        self._block = -1
        self._prefix: T | None = None
        self._prefix_end = 0

    def window(self, first: int) -> T | None:
        """The merged states of the panes `first … first + panes_per_window - 1`."""
        block = first // self._length
        if block != self._block:
            self._block = -1  # invalid until the block is complete, in case a merge raises
            self._begin(block, first)
        for number in range(self._prefix_end, first + self._length):
            self._prefix = self._both(self._prefix, self._pane(number))
            self._prefix_end = number + 1
        return self._both(self._suffixes[first], self._prefix)

    def _begin(self, block: int, first: int) -> None:
        """Merge the rest of a block from the right."""
        boundary = (block + 1) * self._length
        self._suffixes = {}
        suffix: T | None = None
        for number in range(boundary - 1, first - 1, -1):
            suffix = self._both(self._pane(number), suffix)
            self._suffixes[number] = suffix
        self._prefix, self._prefix_end = None, boundary
        self._block = block

    def _both(self, a: T | None, b: T | None) -> T | None:
        if a is None or b is None:
            return b if a is None else a
        return self._merge(a, b)
