"""What a partition has taken of each origin, and how many rows that was.

Law: the ledger depends on the entries alone, so replaying them on the ledger at any earlier entry gives it again.
"""

from __future__ import annotations

import msgspec

from rove.data.fragment.frontier import Frontier, Table
from rove.model.batch import Header
from rove.model.clock import MICROS_MAX, MICROS_MIN


class Count(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one origin, by what became of them."""

    rows: int = 0
    late: int = 0
    born: int = 0
    evicted: int = 0
    lost: int = 0


class LedgerTable(msgspec.Struct, frozen=True, array_like=True):
    """A ledger as it is stored."""

    frontier: Table
    late: Table
    counts: dict[str, list[int]]
    marks: dict[str, int] = {}
    low: int = MICROS_MIN
    newest: int = MICROS_MIN
    ahead: dict[str, dict[int, int]] = {}


class Ledger:
    """Frontiers and counts. Late rows have a frontier of their own, since most seqs have none of them."""

    __slots__ = ("_counts", "ahead", "frontier", "late", "low", "marks", "newest")

    def __init__(self, table: LedgerTable | None = None) -> None:
        self.frontier, self.late = Frontier(), Frontier()
        self._counts: dict[str, list[int]] = {}
        self.marks: dict[str, int] = {}  # what each origin has promised with all the batches that came without a gap
        self.ahead: dict[str, dict[int, int]] = {}  # promises of batches that came before others, by seq
        self.low = MICROS_MIN  # the low watermark when the last entry was written
        self.newest = MICROS_MIN  # event time
        if table is not None:
            self.frontier.load(table.frontier)
            self.late.load(table.late)
            self._counts, self.marks, self.ahead = table.counts, table.marks, table.ahead
            self.low, self.newest = table.low, table.newest

    def take(self, header: Header) -> list[tuple[int, int]]:
        """The seqs of a header that are new."""
        frontier = self.late if header.late else self.frontier
        return frontier.take(header.origin, header.seq, header.through)

    def count(self, header: Header, low: int) -> None:
        """Count the rows of an entry, and keep what it promises."""
        self.low = max(self.low, low)
        if not header.origin:
            return  # nobody's entry, which carries the low watermark on
        counts = self._counts.get(header.origin)
        if counts is None:
            counts = self._counts[header.origin] = [0, 0, 0, 0, 0]
        self._promise(header)
        counts[1 if header.late else 0] += header.rows
        counts[2] += header.born
        counts[3] += header.evicted
        counts[4] += header.lost

    def _promise(self, header: Header) -> None:
        """A promise speaks of what follows in number, so it holds once everything before it is here."""
        if header.late:
            return
        newest = header.event_max if header.event_max is not None else header.watermark
        if header.rows and newest <= MICROS_MAX:
            self.newest = max(self.newest, newest)
        origin, mark = header.origin, header.watermark
        following, ahead = self.frontier.next(origin), self.ahead.get(origin)
        if header.through >= following:
            self.ahead.setdefault(origin, {})[header.through] = mark
            return
        if ahead is not None:
            for seq in [seq for seq in ahead if seq < following]:
                mark = max(mark, ahead.pop(seq))
            if not ahead:
                del self.ahead[origin]
        self.marks[origin] = max(self.marks.get(origin, mark), mark)

    def counts(self) -> dict[str, Count]:
        """Every origin's rows."""
        return {origin: Count(*counts) for origin, counts in self._counts.items()}

    def table(self) -> LedgerTable:
        """Everything, to be stored at once: the counts and marks are not copied."""
        return LedgerTable(
            self.frontier.table(), self.late.table(), self._counts, self.marks, self.low, self.newest, self.ahead
        )


def untaken(table: LedgerTable, ledger: Ledger) -> list[tuple[str, int, int]]:
    """What `table` says was taken and `ledger` has not, which takes it: origin, first and last seq."""
    missing = []
    for stored, frontier in ((table.frontier, ledger.frontier), (table.late, ledger.late)):
        for origin, (following, *beyond) in stored.items():
            edges = [0, following, *beyond]
            for first, end in zip(edges[::2], edges[1::2], strict=True):
                if first < end:
                    missing += [(origin, a, b) for a, b in frontier.take(origin, first, end - 1)]
    return missing
