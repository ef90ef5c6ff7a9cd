"""The ledger of a partition: the batches that it has taken of each origin, and their rows.

Law: the ledger depends on the entries only, so replaying entries from any earlier ledger gives the same ledger.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from rove.data.fragment.frontier import By, Frontier
from rove.model.batch import Header, HeaderKind
from rove.model.clock import MICROS_MAX, MICROS_MIN
from rove.model.ids import NOBODY, Origin

_COUNTED_HERE = (HeaderKind.SPILLED, HeaderKind.LOW_WATERMARK)  # new whenever they arrive, and only counted


class Lane(msgspec.Struct, frozen=True, order=True, array_like=True):
    """What numbers entries that are no batches of an output: their kind, their stage and their origin."""

    kind: HeaderKind
    stage: int
    origin: Origin


Table: TypeAlias = dict[Origin, list[int]]  # as `Frontier.table` returns it


class Count(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one origin, by account."""

    rows: int = 0
    late: int = 0
    born: int = 0
    evicted: int = 0
    lost: int = 0
    faulted: int = 0
    belated: int = 0


class LedgerTable(msgspec.Struct, frozen=True, array_like=True):
    """A ledger for storing."""

    frontier: Table
    late: Table
    counts: dict[Origin, list[int]]
    marks: dict[Origin, int] = {}
    low: int = MICROS_MIN
    newest: int = MICROS_MIN
    ahead: dict[Origin, dict[int, int]] = {}
    lanes: dict[Lane, list[int]] = {}


class Ledger:
    """Frontiers and counts. Late rows have a frontier of their own, since most seqs have none of them; so have entries
    that are no batch of an output (`lanes`)."""

    __slots__ = ("_counts", "ahead", "frontier", "lanes", "late", "low", "marks", "newest")

    def __init__(self, table: LedgerTable | None = None) -> None:
        self.frontier: Frontier[Origin] = Frontier()
        self.late: Frontier[Origin] = Frontier()
        self.lanes: Frontier[Lane] = Frontier()
        self._counts: dict[Origin, list[int]] = {}
        self.marks: dict[Origin, int] = {}  # the watermark of each origin, of batches without a gap before them
        self.ahead: dict[Origin, dict[int, int]] = {}  # watermarks of batches that arrived too early, by seq
        self.low = MICROS_MIN  # the low watermark when the last entry was written
        self.newest = MICROS_MIN  # event time
        if table is not None:
            self.frontier.load(table.frontier)
            self.late.load(table.late)
            self.lanes.load(table.lanes)
            self._counts = {origin: [*counts, 0, 0][:7] for origin, counts in table.counts.items()}
            self.marks, self.ahead = table.marks, table.ahead
            self.low, self.newest = table.low, table.newest

    def take(self, header: Header) -> list[tuple[int, int]]:
        """The seqs of a header that are new."""
        if header.kind is not HeaderKind.BATCH:
            return self._take_lane(header)
        frontier = self.late if header.late else self.frontier
        return frontier.take(header.origin, header.seq, header.through)

    def _take_lane(self, header: Header) -> list[tuple[int, int]]:
        if header.kind in _COUNTED_HERE:
            lane = Lane(header.kind, 0, NOBODY)
            number = self.lanes.next(lane)
            self.lanes.take(lane, number, number)
            return [(header.seq, header.through)]
        return self.lanes.take(Lane(header.kind, header.stage, header.origin), header.seq, header.through)

    def took(self, origin: Origin, seq: int) -> bool:
        """Whether a batch of an origin was taken, on whatever side and at whatever stage. O(origins)."""
        if any(self.frontier.has(each, seq) for each in self.frontier.table() if each.unsided == origin):
            return True
        lanes = (lane for lane in self.lanes.table() if lane.kind is HeaderKind.INPUT)
        return any(self.lanes.has(lane, seq) for lane in lanes if lane.origin.unsided == origin)

    def count(self, header: Header, low: int) -> None:
        """Count the rows of an entry, and take its watermark."""
        self.low = max(self.low, low)
        if header.kind is not HeaderKind.BATCH:
            return
        counts = self._counts.get(header.origin)
        if counts is None:
            counts = self._counts[header.origin] = [0, 0, 0, 0, 0, 0, 0]
        self._promise(header)
        counts[1 if header.late else 0] += header.rows
        counts[2] += header.born
        counts[3] += header.evicted
        counts[4] += header.lost
        counts[5] += header.faulted
        counts[6] += header.belated

    def _promise(self, header: Header) -> None:
        """Take a watermark. It holds once all earlier batches of the origin are here."""
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

    def counts(self) -> dict[Origin, Count]:
        """The counts of every origin."""
        return {origin: Count(*counts) for origin, counts in self._counts.items()}

    def table(self) -> LedgerTable:
        """The whole ledger, to be stored at once. Counts and marks are not copied."""
        return LedgerTable(
            self.frontier.table(),
            self.late.table(),
            self._counts,
            self.marks,
            self.low,
            self.newest,
            self.ahead,
            self.lanes.table(),
        )


def untaken(table: LedgerTable, ledger: Ledger) -> list[tuple[Origin, int, int]]:
    """The ranges that `table` has taken and `ledger` has not: origin, first and last seq. The ledger takes them."""
    return [
        *_missing(table.frontier, ledger.frontier),
        *_missing(table.late, ledger.late),
        *((lane.origin, first, last) for lane, first, last in _missing(table.lanes, ledger.lanes)),
    ]


def _missing(stored: dict[By, list[int]], frontier: Frontier[By]) -> list[tuple[By, int, int]]:
    missing = []
    for origin, (following, *beyond) in stored.items():
        edges = [0, following, *beyond]
        for first, end in zip(edges[::2], edges[1::2], strict=True):
            if first < end:
                missing += [(origin, a, b) for a, b in frontier.take(origin, first, end - 1)]
    return missing
