"""The low watermark over the origins that are waited for.

Law: it is the lowest watermark of all these origins, also of those that have sent nothing yet, and it never falls.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.model.clock import MICROS_MIN
from rove.model.errors import must
from rove.model.ids import Origin


class Watermarks:
    """Origins and their watermarks. An update is O(1), or O(origins) if it comes from the slowest origin."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        self._marks = dict.fromkeys(origins, MICROS_MIN)
        self._left: dict[Origin, int] = {}  # the watermarks of origins that are not waited for now
        self.low = MICROS_MIN

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
        new = [origin for origin in origins if origin not in self._marks]
        for origin in new:
            self._marks[origin] = self._left.pop(origin, MICROS_MIN)
        return bool(new) and self._settle()

    def leave(self, origin: Origin) -> bool:
        """Stop waiting for an origin. Returns whether the low watermark rose."""
        mark = self._marks.pop(origin, None)
        if mark is None:
            return False
        self._left[origin] = mark
        return bool(self._marks) and self._settle()

    def _settle(self) -> bool:
        low = min(self._marks.values())
        rose, self.low = low > self.low, max(low, self.low)
        return rose

    def table(self) -> dict[Origin, int]:
        return dict(sorted(self._marks.items()))

    def validate(self) -> None:
        """The low watermark is no lower than every promise, and an origin is waited for or not. O(origins)."""
        lowest = min(self._marks.values(), default=self.low)
        must(lowest <= self.low, "the low watermark has followed the lowest promise", self.low, lowest)
        both = self._marks.keys() & self._left.keys()
        must(not both, "an origin is waited for or it is not", [*both][:3])

    def load(self, marks: dict[Origin, int], low: int) -> None:
        """Restore what `table` returned, for the origins that are waited for now."""
        self._marks |= {origin: mark for origin, mark in marks.items() if origin in self._marks}
        self.low = low
