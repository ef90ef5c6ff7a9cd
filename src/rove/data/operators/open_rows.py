"""The rows that an operator has taken and not emitted: those of its open windows.

Law: a batch is open until the watermark passes the end of the last window that holds one of its rows. Until then its
rows are not delivered: they are in no result, and are lost with the operator's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from rove.model.batch import Header
from rove.model.errors import must
from rove.model.ids import Origin
from rove.model.spans import Coverage, Spans

Closing: TypeAlias = tuple[int, int, Spans]  # the watermark at which rows close, how many, and the batches they are of


@dataclass(slots=True)
class _Open:
    """The open batches of one origin that close at the same time."""

    rows: int = 0
    batches: Coverage = field(default_factory=Coverage)


class OpenRows:
    """By the watermark at which they close, the open batches of each origin, and the sums of these. Batches that close
    together and follow each other take no memory of their own."""

    def __init__(self) -> None:
        self._open: dict[int, dict[Origin, _Open]] = {}
        self._ends: list[int] = []  # a heap of those watermarks
        self._sums: dict[Origin, _Open] = {}

    def take(self, header: Header, rows: int, until: int) -> None:
        """Add rows of a batch that are open until the watermark `until`. O(log open windows)."""
        origin = header.origin.unsided
        for found in (self._at(until, origin), self._sums.setdefault(origin, _Open())):
            found.rows += rows
            found.batches.add(header.seq, header.through)

    def close(self, low: int) -> Iterator[tuple[Origin, int]]:
        """Close windows up to the low watermark `low`. Returns the origins and numbers of rows that are no longer
        open. O(windows that close × origins)."""
        while self._ends and self._ends[0] <= low:
            for origin, found in self._open.pop(heappop(self._ends)).items():
                self._add(origin, found, -1)
                yield origin, found.rows

    def put(self, origin: Origin, closing: Iterable[Closing]) -> None:
        """Add open rows of an origin that the operator took on another node. O(its windows)."""
        for until, rows, spans in closing:
            self._at(until, origin)
            found = self._open[until][origin] = _Open(rows, Coverage.of(spans))
            self._add(origin, found, 1)

    def drop(self, origin: Origin, closing: Iterable[Closing]) -> int:
        """Remove rows that were `put` here and will be in no result: the state of their windows is lost. Returns how
        many. Rows that are no longer open stay as they are. O(its windows)."""
        dropped = 0
        for until, rows, spans in closing:
            found = self._open.get(until, {}).get(origin)
            if found is not None:
                gone = _Open(rows, Coverage.of(spans))
                found.rows -= rows
                found.batches.include(gone.batches, -1)
                self._add(origin, gone, -1)
                dropped += rows
                if not found.batches:
                    del self._open[until][origin]
        return dropped

    def everything(self) -> dict[Origin, tuple[Closing, ...]]:
        """All open rows, by origin. O(open windows × origins)."""
        found: dict[Origin, list[Closing]] = {}
        for until in sorted(self._open):
            for origin, each in self._open[until].items():
                found.setdefault(origin, []).append((until, each.rows, each.batches.spans()))
        return {origin: tuple(found[origin]) for origin in sorted(found)}

    def last(self) -> int | None:
        """The watermark at which all open rows are closed; None if there are none. O(open windows)."""
        return max(self._open, default=None)

    def batches(self) -> Iterator[tuple[Origin, Coverage]]:
        """The open batches of each origin. O(origins)."""
        return ((origin, found.batches) for origin, found in self._sums.items())

    def rows(self) -> dict[Origin, int]:
        """How many rows of each origin are open. O(origins)."""
        return {origin: found.rows for origin, found in self._sums.items()}

    def validate(self) -> None:
        """Raise unless the sums equal the open rows. O(open windows × origins)."""
        sums = {origin: sum(rows for _, rows, _ in closing) for origin, closing in self.everything().items()}
        must(self.rows() == sums, "rows in open windows add up", self.rows(), sums)
        must(sorted(self._ends) == sorted(self._open), "every open window has an end", self._ends)

    def _at(self, until: int, origin: Origin) -> _Open:
        if until not in self._open:
            self._open[until] = {}
            heappush(self._ends, until)
        return self._open[until].setdefault(origin, _Open())

    def _add(self, origin: Origin, found: _Open, times: int) -> None:
        """Add to the sums of an origin, or take away. A sum of 0 is removed, because origins come and go."""
        sums = self._sums.setdefault(origin, _Open())
        sums.rows += times * found.rows
        sums.batches.include(found.batches, times)
        if not sums.batches:
            del self._sums[origin]
