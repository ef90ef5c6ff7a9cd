"""Which rows a micro-batch holds: every row once, none too early, and none after Spark's watermark has passed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.cloud.source.admission import Admission, Limit, Pick, Rule, bound_after, rising
from rove.cloud.source.entries import ENTRY, Entries, Place, places
from rove.cloud.source.offset import Offset, Reach
from rove.model.clock import END, MICROS_MIN
from tests.depth import examples

MS = 1_000
Row = tuple[str, int, int]  # folder, position, number in its entry


def entry(position: int, times: list[int | None], low: int = MICROS_MIN) -> Place:
    known = [t for t in times if t is not None]
    least, most = (min(known), max(known)) if known else (MICROS_MIN, MICROS_MIN)
    values = dict.fromkeys(Place._fields, 0) | {
        "position": position, "rows": len(times), "length": 10 * len(times), "least": least, "most": most, "low": low,
    }  # fmt: skip
    return Place(**values)


@dataclass
class Log:
    """Folders in memory: entries, and the time of each of their rows."""

    folders: dict[str, list[Place]] = field(default_factory=dict)
    rows: dict[tuple[str, int], list[int | None]] = field(default_factory=dict)

    def add(self, folder: str, times: list[int | None], low: int) -> None:
        entries = self.folders.setdefault(folder, [])
        self.rows[folder, len(entries)] = times
        entries.append(entry(len(entries), times, low))

    def times(self, folder: str, place: Place) -> np.ndarray:
        return np.array([place.least if t is None else t for t in self.rows[folder, place.position]], np.int64)

    def start(self) -> Offset:
        return Offset({name: Reach(0, 0) for name in self.folders})

    def read(self, pick: Pick, start: Offset, end: Offset) -> dict[Row, int]:
        """The rows of a pick, with the times that count for them."""
        found = {}
        for place, above, upto in zip(places(pick.entries), pick.above, pick.upto, strict=True):
            for number, time in enumerate(self.times(pick.folder, place).tolist()):
                if not (above and time <= start.bound) and not (upto and time > end.bound):
                    found[pick.folder, place.position, number] = time
        return found

    def admitted(self, offset: Offset) -> set[Row]:
        """The law, row by row."""
        return {
            (folder, place.position, number)
            for folder, reach in offset.folders.items()
            for place in self.folders[folder][: reach.end]
            for number, time in enumerate(self.times(folder, place).tolist())
            if time <= offset.bound
        }


@dataclass
class Query:
    """A query's source over a log that grows, and what Spark has seen of it."""

    log: Log
    rule: Rule
    limit: Limit | None = None
    seen: dict[Row, int] = field(default_factory=dict)
    newest: int = MICROS_MIN
    batches: list[dict[Row, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at = self.log.start()
        self.restart()

    def restart(self) -> None:
        self.admission = Admission(self.rule, self.log.times)
        self.admission.seek(self.at)
        self.read = {name: reach.first for name, reach in self.at.folders.items()}

    def take(self, name: str, most: int = 1_000) -> None:
        found = self.log.folders[name][self.read[name] : self.read[name] + most]
        self.read[name] += len(found)
        self.admission.take(name, columns(found), self.read[name])

    def take_all(self) -> None:
        for name in self.log.folders:
            self.take(name)

    def run(self, heartbeat: bool = True) -> dict[Row, int]:
        """One micro-batch, checked against the law, and Spark's watermark behind it."""
        start = self.at
        end = self.admission.plan(self.limit).end
        found: dict[Row, int] = {}
        for pick in self.admission.picks(end):
            found |= self.log.read(pick, start, end)
        assert set(found) == self.log.admitted(end) - self.log.admitted(start)
        watermark = self.newest // MS * MS - self.rule.delay_us
        assert all(t >= watermark for t in found.values() if t > MICROS_MIN)
        assert not set(found) & set(self.seen)
        self.seen |= found
        beat = [end.bound] if heartbeat and end.bound > start.bound else []
        self.newest = max([self.newest, *found.values(), *beat])
        for name, reach in end.folders.items():
            below = {(name, p.position, n) for p in self.log.folders[name][: reach.first] for n in range(p.rows)}
            assert below <= set(self.seen), "what is below `first` is not needed any more"
            assert reach.first <= reach.end
        self.at = Offset.from_json(end.to_json())
        assert self.at == end
        self.admission.seek(self.at)
        self.batches.append(found)
        return found


def columns(found: list[Place]) -> Entries:
    return np.array(found, ENTRY)


def rows_of(log: Log) -> set[Row]:
    return {(folder, p.position, n) for folder, entries in log.folders.items() for p in entries for n in range(p.rows)}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Log, Rule, Random]:
    """Folders filled by origins that keep their promises; some are silent for long, some start late."""
    random = draw(st.randoms(use_true_random=False))
    log = Log()
    for folder in ("one", "two")[: draw(st.integers(1, 2))]:
        promises = [MICROS_MIN] * random.randint(1, 3)
        log.folders[folder] = []
        for _ in range(draw(st.integers(0, 14))):
            who = random.randrange(len(promises))
            oldest = max(promises[who], 0)
            times: list[int | None] = [
                oldest + random.randrange(9_000) // 500 * 500 for _ in range(random.choice([0, 1, 3, 5]))
            ]
            if times and random.random() < 0.2:
                times[random.randrange(len(times))] = None
            if random.random() < 0.7:
                promises[who] = oldest + random.randrange(6_000)
            log.add(folder, times, min(promises))
        if draw(st.booleans()):
            log.add(folder, [], END)
    delay = draw(st.sampled_from([0, MS, 5 * MS]))
    return log, Rule(delay_us=delay, span_us=2 * MS), random


@pytest.mark.deep
@settings(max_examples=examples(120), deadline=None)
@given(worlds(), st.sampled_from([None, Limit(rows=1), Limit(rows=4), Limit(bytes=35), Limit(rows=6, bytes=50)]))
def test_every_row_comes_once_and_none_after_spark_has_given_it_up(
    world: tuple[Log, Rule, Random], limit: Limit | None
) -> None:
    log, rule, random = world
    query = Query(log, rule, limit)
    for _ in range(60):
        for name in log.folders:
            query.take(name, random.choice([0, 1, 2, 5]))
        query.run(heartbeat=random.random() < 0.5)
        if random.random() < 0.1:
            query.restart()
    query.take_all()
    for _ in range(200):
        before = query.at
        query.run()
        if query.at == before:
            break
    ended = all(entries and entries[-1].low == END for entries in log.folders.values())
    if ended:
        assert set(query.seen) == rows_of(log)


@pytest.mark.deep
@settings(max_examples=examples(80), deadline=None)
@given(worlds(), st.integers(1, 6))
def test_a_limit_holds_unless_rows_of_one_time_are_more(world: tuple[Log, Rule, Random], most: int) -> None:
    log, rule, random = world
    query = Query(log, rule, Limit(rows=most))
    for _ in range(80):
        for name in log.folders:
            query.take(name, random.choice([0, 3, 20]))
        found = query.run()
        if len(found) > most:
            whole = len({row[:2] for row in found}) == 1  # an entry that its position lets in is not divided
            assert whole or len(set(found.values())) == 1


@pytest.mark.deep
@settings(max_examples=examples(60), deadline=None)
@given(worlds(), st.sampled_from([None, Limit(rows=3)]))
def test_what_lies_between_two_offsets_is_the_same_after_a_crash(
    world: tuple[Log, Rule, Random], limit: Limit | None
) -> None:
    log, rule, random = world
    query = Query(log, rule, limit)
    for _ in range(20):
        for name in log.folders:
            query.take(name, random.choice([0, 1, 4]))
        start = query.at
        found = query.run()
        again = Admission(rule, log.times)
        assert again.seek(start)
        for name, reach in start.folders.items():
            again.take(name, columns(log.folders[name][reach.first :]), len(log.folders[name]))
        assert {k: v for p in again.picks(query.at) for k, v in log.read(p, start, query.at).items()} == found


def test_rows_wait_for_an_origin_that_is_away_and_come_in_its_time() -> None:
    log = Log()
    log.add("f", [10 * MS, 20 * MS], MICROS_MIN)
    query = Query(log, Rule(delay_us=2 * MS))
    query.take("f")
    assert not query.run()
    log.add("f", [5 * MS], 6 * MS)
    query.take("f")
    assert set(query.run().values()) == {5 * MS}
    log.add("f", [], 9 * MS)
    query.take("f")
    assert set(query.run().values()) == {10 * MS}
    assert query.at.folders["f"] == Reach(0, 3, 9 * MS)
    log.add("f", [], 30 * MS)
    query.take("f")
    assert set(query.run().values()) == {20 * MS}
    assert query.at.folders["f"].first == 4


def test_one_folder_waits_for_the_other() -> None:
    log = Log()
    log.add("near", [10 * MS], 10 * MS)
    log.folders["far"] = []
    query = Query(log, Rule())
    query.take_all()
    assert not query.run()
    log.add("far", [], 12 * MS)
    query.take_all()
    assert set(query.run().values()) == {10 * MS}


def test_the_end_closes_the_windows_of_the_newest_row_and_no_later_ones() -> None:
    rule = Rule(delay_us=5 * MS, span_us=10 * MS)
    assert bound_after(MICROS_MIN, END, 100 * MS, rule) == 116 * MS
    assert bound_after(MICROS_MIN, END, MICROS_MIN, rule) == MICROS_MIN
    assert bound_after(200 * MS, END, 100 * MS, rule) == 200 * MS


def test_a_low_watermark_never_falls_but_an_end_is_taken_back_by_those_who_join() -> None:
    assert rising([5, 3, 7, END, 4, 2, 9], MICROS_MIN) == [5, 5, 7, END, 4, 4, 9]


def test_an_origin_that_joins_after_the_end_is_waited_for() -> None:
    log = Log()
    log.add("f", [100 * MS], END)
    query = Query(log, Rule())
    query.take("f")
    assert len(query.run()) == 1
    log.add("f", [300 * MS], MICROS_MIN)
    query.take("f")
    assert not query.run()
    log.add("f", [], 400 * MS)
    query.take("f")
    assert len(query.run()) == 1


def test_a_limit_among_overlapping_entries_opens_only_those_that_it_falls_into() -> None:
    log = Log()
    for n in range(50):
        log.add("f", [1_000 * MS * n + t * MS for t in range(0, 3_000, 30)], MICROS_MIN)
    log.add("f", [], 10**9)
    opened: list[int] = []

    def times(folder: str, place: Place) -> np.ndarray:
        opened.append(place.position)
        return log.times(folder, place)

    query = Query(log, Rule(), Limit(rows=1_000))
    query.admission = Admission(query.rule, times)
    query.admission.seek(query.at)
    query.take("f")
    while query.run():
        assert len(query.batches[-1]) <= 1_000
        assert len(set(opened)) <= 10
        opened.clear()
    assert set(query.seen) == rows_of(log)
    assert len(query.batches) <= 9


def test_held_entries_cost_nothing_until_their_time_comes() -> None:
    """A day of entries behind an origin that is away: a trigger looks at pages, not at entries."""
    query = Query(Log({"f": []}), Rule())
    many = np.zeros(200_000, ENTRY)
    many["position"] = np.arange(len(many))
    many["rows"], many["low"] = 1, MICROS_MIN
    many["least"] = many["most"] = MS + np.arange(len(many)) * MS
    query.admission.take("f", many, len(many))
    end = query.admission.plan().end
    query.admission.seek(end)
    last = columns([entry(len(many), [], 10 * MS)])
    query.admission.take("f", last, len(many) + 1)
    plan = query.admission.plan()
    assert plan.rows == 10
    assert plan.end.folders["f"] == Reach(10, len(many) + 1, 10 * MS)
