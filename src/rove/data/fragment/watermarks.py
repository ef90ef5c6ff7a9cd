"""The low watermark over the origins that are waited for.

Law: it is the lowest watermark of all these origins, also of those that have sent nothing yet, and it never falls.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView
from heapq import heappop, heappush, heapreplace

from rove.model.clock import MICROS_MIN
from rove.model.errors import must
from rove.model.ids import Origin


class Watermarks:
    """Origins and their watermarks. An update is O(1), and O(log origins) if it comes from the slowest one.

    The heap has one entry for each origin that is waited for: its number, and a watermark that it sent. The watermark
    may be an old one; it is brought up to date when the entry is the lowest.
    """

    def __init__(self, origins: Iterable[Origin]) -> None:
        self._marks: dict[Origin, int] = {}
        self._numbers: dict[Origin, int] = {}
        self._named: dict[int, Origin] = {}
        self._heap: list[tuple[int, int]] = []
        self._count = 0
        self._left: dict[Origin, int] = {}  # the watermarks of origins that are not waited for now
        self.low = MICROS_MIN
        for origin in dict.fromkeys(origins):
            self._add(origin, MICROS_MIN)

    def heard(self, origin: Origin, mark: int) -> bool:
        """Take an origin's watermark. Returns whether the low watermark rose."""
        before = self._marks.get(origin)
        if before is None:
            self._left[origin] = max(self._left.get(origin, mark), mark)
            return False
        if mark <= before:
            return False
        self._marks[origin] = mark
        return before <= self.low and self._settle()

    def expect(self, origins: Iterable[Origin]) -> bool:
        """Wait for these origins too. Returns whether the low watermark rose. It never falls, and watermarks that the
        origins sent earlier count: an origin that has ended sends nothing more."""
        new = [origin for origin in dict.fromkeys(origins) if origin not in self._marks]
        for origin in new:
            self._add(origin, self._left.pop(origin, MICROS_MIN))
        return bool(new) and self._settle()

    def leave(self, origin: Origin) -> bool:
        """Stop waiting for an origin. Returns whether the low watermark rose."""
        mark = self._marks.pop(origin, None)
        if mark is None:
            return False
        del self._named[self._numbers.pop(origin)]
        self._left[origin] = mark
        return bool(self._marks) and self._settle()

    def _add(self, origin: Origin, mark: int) -> None:
        self._count += 1
        self._marks[origin], self._numbers[origin], self._named[self._count] = mark, self._count, origin
        heappush(self._heap, (mark, self._count))

    def _settle(self) -> bool:
        """Find the lowest watermark. Each entry that is replaced stands for a watermark that came since."""
        heap = self._heap
        while True:
            mark, number = heap[0]
            origin = self._named.get(number)
            if origin is None:  # it is not waited for any more
                heappop(heap)
            elif self._marks[origin] != mark:
                heapreplace(heap, (self._marks[origin], number))
            else:
                break
        rose, self.low = mark > self.low, max(mark, self.low)
        return rose

    def waited(self) -> KeysView[Origin]:
        """The origins that are waited for. O(1)."""
        return self._marks.keys()

    def everything(self) -> dict[Origin, int]:
        """The watermarks of all origins, also of those that are not waited for."""
        return self._marks | self._left

    def take_over(self, marks: dict[Origin, int], low: int) -> None:
        """Go on with the watermarks of another node, as `everything` returned them there."""
        for origin, mark in marks.items():
            self.heard(origin, mark)
        self.low = max(self.low, low)

    def validate(self) -> None:
        """The low watermark is no lower than every promise, and an origin is waited for or not. O(origins)."""
        lowest = min(self._marks.values()) if self._marks else self.low
        must(lowest <= self.low, "the low watermark has followed the lowest promise", self.low, lowest)
        both = self._marks.keys() & self._left.keys()
        must(not both, "an origin is waited for or it is not", [*both][:3])
