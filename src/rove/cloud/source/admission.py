"""Which rows of a log a micro-batch holds, so that Spark's watermark never passes a row that is still to come.

Law: between two offsets lie exactly the rows that the end admits and the start does not. An offset admits a row if its
entry's position is below the folder's end and its event time is not above the bound. The bound is the low watermark
plus the delay. Spark's watermark is the greatest event time it has seen minus the delay, so it stays below the
watermark of every origin. A row without event time is admitted with the oldest row of its entry. If no row of the entry
has one, the position decides alone.

    folders   ──entries──►  fresh  ──looked at──►  held  ──wholly admitted──►  forgotten
                            position ≥ end         position < end, rows above the bound
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rove.cloud.source.entries import NONE, Entries, Place, places
from rove.cloud.source.held import Held
from rove.cloud.source.offset import Offset, Reach
from rove.model.clock import END, MICROS_MAX, MICROS_MIN

Times: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Weights: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

MILLISECOND_US = 1_000  # Spark's watermark is in whole milliseconds
FULL = 1.0 + 1e-9  # the limit that weights are fractions of; slightly above 1, because fractions do not add up exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The query's part of the rule: the delay of its watermark, and the length of its windows."""

    delay_us: int = 0
    span_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many rows and stored bytes a micro-batch may hold."""

    rows: int | None = None
    bytes: int | None = None

    def weigh(self, entries: Entries) -> Weights:
        """The weight of each entry, as a fraction of the limit."""
        weights = np.zeros(len(entries))
        if self.rows is not None:
            weights = entries["rows"] / self.rows
        return weights if self.bytes is None else np.maximum(weights, entries["length"] / self.bytes)


@dataclass(frozen=True, slots=True)
class Pick:
    """Entries of one folder that a micro-batch reads; of some of them only rows `above` its start, `upto` its end."""

    folder: str
    entries: Entries
    above: Mask
    upto: Mask

    @property
    def rows(self) -> int:
        """An upper bound of the number of rows."""
        return int(self.entries["rows"].sum())


@dataclass(frozen=True, slots=True)
class Plan:
    """A possible next end."""

    end: Offset
    rows: int = 0  # an upper bound
    full: bool = False  # whether the limit is reached, so that more entries would hardly help
    ended: bool = False  # whether all origins have ended


def bound_after(previous: int, low: int, newest: int, rule: Rule) -> int:
    """The bound at a low watermark. After all origins have ended, it closes every window with rows, and no later
    one."""
    if low > MICROS_MAX:
        time = newest + rule.delay_us + rule.span_us + MILLISECOND_US if newest > MICROS_MIN else MICROS_MIN
    else:
        time = low + rule.delay_us if low > MICROS_MIN else MICROS_MIN
    return max(previous, min(time, MICROS_MAX))


def rising(lows: Iterable[int], before: int) -> list[int]:
    """The low watermarks, made rising. The value for "ended" does not count: if origins join later, theirs count
    again."""
    found = []
    for low in lows:
        before = max(low, before) if max(low, before) <= MICROS_MAX else min(low, END)
        found.append(before)
    return found


class Admission:
    """The state machine: `seek` a start, `take` the entries from there, `plan` an end, `picks` between both.

    `times` gives the event time of every row of an entry. It is called when a limit falls inside an entry.
    """

    def __init__(self, rule: Rule, times: Callable[[str, Place], Times]) -> None:
        self._rule, self._times = rule, times
        self._folders: dict[str, _Folder] = {}
        self._nexts: dict[tuple[str, int], int] = {}  # for entries that the start has admitted in part
        self.at: Offset | None = None

    def seek(self, start: Offset) -> bool:
        """Make an offset the start. Returns whether its folders must be taken again from their `first`."""
        if self.at is None or self.at.bound != start.bound:
            self._nexts.clear()
        if self.at is None or not self.at.precedes(start) or (start != self.at and not self._reached(start)):
            self._folders = {name: _Folder(reach) for name, reach in start.folders.items()}
            self.at = start
            return True
        if start != self.at:
            for name, folder in self._folders.items():
                folder.move_on(start.folders[name], start.bound)
            self.at = start
        return False

    def take(self, name: str, entries: Entries, read: int) -> None:
        """Take entries of a folder, in order. Afterwards all entries below `read` are known."""
        self._folders[name].take(entries, read, self._start.bound)

    def missing(self, name: str, end: int) -> bool:
        """Whether a folder has not been taken up to an end."""
        return self._folders[name].read < end

    @property
    def fresh(self) -> int:
        """How many entries were taken but are not in any offset yet."""
        return sum(len(folder.fresh) for folder in self._folders.values())

    def plan(self, limit: Limit | None = None) -> Plan:
        """The farthest end that the taken entries allow."""
        start, left = self._start, FULL
        if not self._reached(start):  # entries up to the start must be known first
            return Plan(start)
        ends = {name: folder.read for name, folder in self._folders.items()}
        if limit is not None:
            ends, left = self._cut(ends, limit)
        fresh = [folder.fresh_upto(ends[name]) for name, folder in self._folders.items()]
        newest = max([start.newest, *(int(f["most"].max()) for f in fresh if len(f))])
        lows = {name: folder.low_at(ends[name]) for name, folder in self._folders.items()}
        low = min(lows.values(), default=MICROS_MIN)
        bound = bound_after(start.bound, low, newest, self._rule)
        if limit is not None and bound > start.bound:
            bound = self._lower(ends, bound, limit, left)
        reaches = {
            name: Reach(folder.first_after(ends[name], bound), ends[name], lows[name])
            for name, folder in self._folders.items()
        }
        end = Offset(reaches, bound, newest)
        picks = self.picks(end)
        full = limit is not None and sum(limit.weigh(pick.entries).sum() for pick in picks) >= FULL / 2
        return Plan(end, self._rows(picks, bound), full, low > MICROS_MAX)

    def picks(self, end: Offset) -> list[Pick]:
        """The entries between the start and an end, folder by folder in order of position."""
        start, found = self._start, []
        for name, folder in self._folders.items():
            fresh = folder.fresh_upto(end.folders[name].end)
            fresh = fresh[(fresh["rows"] > 0) & (fresh["least"] <= end.bound)]
            held = folder.held.within(end.bound) if end.bound > start.bound else NONE
            entries = np.concatenate((held, fresh))
            if len(entries):
                above = (entries["least"] <= start.bound) & (np.arange(len(entries)) < len(held))
                found.append(Pick(name, entries, above, entries["most"] > end.bound))
        return found

    def _rows(self, picks: Sequence[Pick], bound: int) -> int:
        """An upper bound of the number of rows, and exactly 0 if there are none."""
        rows = sum(int(pick.entries["rows"][~pick.above].sum()) for pick in picks)
        begun = ((pick.folder, place) for pick in picks for place in places(pick.entries[pick.above]))
        return rows or sum(place.rows for folder, place in begun if self._next(folder, place) <= bound)

    def _next(self, folder: str, place: Place) -> int:
        """The time of the first row above the start's bound."""
        known = self._nexts.get((folder, place.position))
        if known is None:
            times = self._times(folder, place)
            known = int(times[times > self._start.bound].min(initial=END))
            self._nexts[folder, place.position] = known
        return known

    @property
    def _start(self) -> Offset:
        if self.at is None:
            raise RuntimeError("seek a start before anything else")
        return self.at

    def _reached(self, offset: Offset) -> bool:
        return all(folder.read >= offset.folders[name].end for name, folder in self._folders.items())

    def _cut(self, ends: dict[str, int], limit: Limit) -> tuple[dict[str, int], float]:
        """Ends that keep within the limit what the present bound admits, and what is then left of the limit."""
        bound = self._start.bound
        names = list(self._folders)
        at_once = []
        for name in names:
            fresh = self._folders[name].fresh
            at_once.append(fresh[(fresh["rows"] > 0) & (fresh["least"] <= bound)])
        whose = np.repeat(np.arange(len(names)), [len(entries) for entries in at_once])
        entries = np.concatenate(at_once) if at_once else NONE
        if not len(entries):
            return ends, FULL
        # Folders advance evenly, one entry of each in turn.
        firsts = np.array([self._start.folders[name].end for name in names])
        order = np.argsort(entries["position"] - firsts[whose], kind="stable")
        weights = np.cumsum(limit.weigh(entries)[order])
        count = max(1, int(np.searchsorted(weights, FULL, side="right")))
        for number, name in enumerate(names):
            beyond = order[count:][whose[order[count:]] == number]
            if len(beyond):
                ends[name] = int(entries["position"][beyond].min())
        return ends, FULL - float(weights[count - 1])

    def _lower(self, ends: dict[str, int], bound: int, limit: Limit, left: float) -> int:
        """The greatest bound, at most `bound`, that stays within what is left of a limit, but always admits
        something."""
        start = self._start.bound
        reaches = {name: Reach(end, end) for name, end in ends.items()}
        picks = [(p.folder, _unadmitted(p, start)) for p in self.picks(Offset(reaches, bound))]
        waiting = [(name, entries) for name, entries in picks if len(entries)]
        if not waiting:
            return bound
        entries = np.concatenate([entries for _, entries in waiting])
        weights = limit.weigh(entries)
        begins = np.maximum(entries["least"], start + 1)
        order = np.argsort(begins, kind="stable")
        fits = int(np.searchsorted(np.cumsum(weights[order]), left, side="right"))
        if fits == len(order):
            return bound
        # Up to `sure` the limit holds even if all rows of each entry that begins there are admitted.
        sure = int(begins[order[fits]]) - 1
        certain = float(weights[entries["most"] <= sure].sum())
        if certain >= left / 2 or (left < FULL and sure == start):
            return sure
        # Above `over` the limit is exceeded for certain, so only entries between both must be opened.
        whole = np.where(entries["least"] > start, weights, 0.0)
        order = np.argsort(entries["most"], kind="stable")
        breaks = int(np.searchsorted(np.cumsum(whole[order]), left, side="right"))
        over = min(bound, int(entries["most"][order[breaks]])) if breaks < len(order) else bound
        moments, total = self._moments(waiting, limit, start, sure, over)
        fits = int(np.searchsorted(total, left - certain, side="right"))
        if fits == len(moments):
            return over
        if fits:
            return max(sure, int(moments[fits - 1]))
        # If nothing else fits, all rows of the first time are admitted, however many there are.
        return int(moments[0]) if left == FULL and not certain else sure

    def _moments(
        self, waiting: Sequence[tuple[str, Entries]], limit: Limit, start: int, sure: int, over: int
    ) -> tuple[Times, Weights]:
        """The times of rows between both bounds, rising, and the weight of all rows up to each."""
        times, weights = [], []
        for name, entries in waiting:
            opened = entries[(entries["least"] <= over) & (entries["most"] > sure)]
            for place, weight in zip(places(opened), limit.weigh(opened) / opened["rows"], strict=True):
                found = self._times(name, place)
                times.append(found[(found > start) & (found <= over)])
                weights.append(np.full(len(times[-1]), weight))
        moments = np.concatenate(times)
        order = np.argsort(moments, kind="stable")
        moments, total = moments[order], np.cumsum(np.concatenate(weights)[order])
        last = np.append(moments[1:] != moments[:-1], np.ones(min(1, len(moments)), bool))
        return moments[last], total[last]  # rows of one time are admitted together


class _Folder:
    """The entries of one folder from a start on."""

    def __init__(self, reach: Reach) -> None:
        self.held = Held()
        self.read = reach.first
        self._reach = reach
        self._low = reach.low
        self._fresh: list[Entries] = []

    @property
    def fresh(self) -> Entries:
        """The entries that are in no offset yet. Entries without rows are included, because their low watermarks
        count."""
        if len(self._fresh) != 1:
            self._fresh = [np.concatenate(self._fresh)] if self._fresh else [NONE]
        return self._fresh[0]

    def take(self, entries: Entries, read: int, bound: int) -> None:
        known = int(np.searchsorted(entries["position"], self._reach.end))
        self._hold(entries[:known], bound)
        fresh = entries[known:].copy()
        if len(fresh):
            fresh["low"] = rising(fresh["low"].tolist(), self._low)
            self._low = int(fresh["low"][-1])
            self._fresh.append(fresh)
        self.read = max(self.read, read)

    def move_on(self, reach: Reach, bound: int) -> None:
        """Move the start to an end, and forget entries that are wholly admitted."""
        fresh = self.fresh
        looked_at = int(np.searchsorted(fresh["position"], reach.end))
        self.held.release(bound)
        self._hold(fresh[:looked_at], bound)
        self._fresh, self._reach = [fresh[looked_at:].copy()], reach

    def fresh_upto(self, end: int) -> Entries:
        return self.fresh[: int(np.searchsorted(self.fresh["position"], end))]

    def low_at(self, end: int) -> int:
        fresh = self.fresh_upto(end)
        return int(fresh["low"][-1]) if len(fresh) else self._reach.low

    def first_after(self, end: int, bound: int) -> int:
        """The lowest position with rows that are not admitted yet."""
        held = self.held.first_beyond(bound)
        if held is not None:
            return held
        fresh = self.fresh_upto(end)
        waiting = (fresh["rows"] > 0) & (fresh["most"] > bound)
        return int(fresh["position"][waiting.argmax()]) if waiting.any() else end

    def _hold(self, entries: Entries, bound: int) -> None:
        self.held.add(entries[(entries["rows"] > 0) & (entries["most"] > bound)])


def _unadmitted(pick: Pick, bound: int) -> Entries:
    """The entries of which a greater bound would admit more rows. Entries without event time are not among them."""
    return pick.entries[pick.above | (pick.entries["least"] > bound)]
