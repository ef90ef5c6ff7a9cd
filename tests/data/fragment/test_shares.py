"""A device leaves an edge that holds its windows: what the edge has taken and what follows are one result."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rove.data.ends.wait_changes import changes_of
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.pipeline import Pipeline
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.log.segments.ledger import Lane
from rove.data.operators.lifting import LiftLogic
from rove.model.batch import Batch, HeaderKind, named
from rove.model.clock import END, MICROS_MIN
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import ANYWHERE, Begin, Fragment, plan_digest
from rove.plan import build
from rove.plan.codec import encode
from rove.plan.operators import Aggregate, Source, Watermark
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.sim.queries import SCHEMA, START_US, some_rows

D1, D2 = Origin("s", "d1"), Origin("s", "d2")
EDGE = Origin("q", "west", stage=2)
SECOND_US = 1_000_000
SOURCE, MARK, PARTIAL, FINAL = (Stage(n) for n in range(4))


def plan() -> Stages:
    """Rows of windows of five seconds by key, with a watermark of three seconds."""
    timed = Watermark(Source("s", SCHEMA), "ts", 3 * SECOND_US)
    results = [build.item(text) for text in ("count(*) AS n", "sum(value) AS total", "max(level) AS top")]
    groups = [build.item("window(ts, '5 seconds')"), build.item("key")]
    found = Stages.of({"out": optimize(build.grouped(timed, groups, results))})
    assert [type(op) for op in found.operators] == [Source, Watermark, Aggregate, Aggregate]
    return found


def rows_of(random: Random, device: Origin, count: int) -> list[Batch]:
    """Batches of a device. Some rows are late, some batches are empty."""
    found = []
    for n in range(count):
        data = some_rows(random, device.node, START_US + n * SECOND_US, random.choice((0, 1, 4)), 5 * SECOND_US)
        found.append(named(device, n, data))
    return [*found, named(device, count, None, END)]


class Edge:
    """An edge with the partial window of two devices, and the root that merges what it gives."""

    def __init__(self, begins: Stage) -> None:
        """On the edge is everything from operator `begins` on; the devices compute what is below."""
        self.stages, self.begins = plan(), begins
        self.lifts = {stage: (D1,) for stage in (MARK, PARTIAL) if stage >= begins}
        device = {Stage(n) for n in range(1, begins)}
        self.devices = {d: Pipeline(self.stages, {SOURCE: [d]}, {}, device, goes_on=True) for d in (D1, D2) if device}
        edge = set(self.lifts)
        self.edge = Pipeline(self.stages, {SOURCE: [D1, D2]}, {PARTIAL: EDGE}, edge, goes_on=True)
        makes = {FINAL: Origin("q", stage=FINAL)}
        self.root = Pipeline(self.stages, {PARTIAL: [EDGE]}, makes, {FINAL})
        self.out: list[Emitted] = []

    def made(self, batches: list[Batch]) -> list[tuple[Stage, Batch]]:
        """Batches as they leave their device."""
        found = []
        for batch in batches:
            device = self.devices.get(batch.header.origin)
            given = [Emitted(SOURCE, batch)] if device is None else device.process(SOURCE, batch)
            found += [(each.stage, each.batch) for each in given if not each.late]
        return found

    def at_edge(self, stage: Stage, batch: Batch) -> None:
        self.up(self.edge.process(stage, batch))

    def up(self, emitted: list[Emitted]) -> None:
        for each in emitted:
            if each.late:
                self.out.append(each)
            else:
                self.at_root(each.stage, each.batch)
        self.edge.validate()

    def at_root(self, stage: Stage, batch: Batch) -> None:
        self.out += self.root.process(stage, batch)
        self.root.validate()

    def moved(self) -> None:
        """The root takes the rows of the first device from now on."""
        makes = self.root.names()
        new = Pipeline(self.stages, {}, makes, {FINAL}, lifts=self.lifts)
        new.adopt(self.root)
        for stage in self.lifts:
            new.shares.lift(stage, D1)
        self.out += new.expect({SOURCE: [D1]})
        self.root = new

    def release(self) -> Begin:
        for stage in self.lifts:
            self.up(self.edge.shares.release(stage, D1))
        self.up(self.edge.leave(SOURCE, [D1]))
        return self.edge.shares.released[D1]

    def results(self) -> tuple[list[Any], int]:
        """The rows, and how many were late."""
        rows = [each.batch.data for each in self.out if not each.late and each.batch.data is not None]
        found = pa.Table.from_batches(rows, self.stages.operators[FINAL].schema).to_pylist()
        return sorted(found, key=str), sum(each.batch.rows for each in self.out if each.late)


def in_one_place(batches: list[Batch]) -> tuple[list[Any], int]:
    whole = Pipeline(plan(), {SOURCE: [D1, D2]}, {PARTIAL: EDGE, FINAL: Origin("q", stage=FINAL)})
    emitted = [each for batch in batches for each in whole.process(SOURCE, batch)]
    rows = [each.batch.data for each in emitted if not each.late and each.batch.data is not None]
    found = pa.Table.from_batches(rows, plan().operators[FINAL].schema).to_pylist()
    return sorted(found, key=str), sum(each.batch.rows for each in emitted if each.late)


@pytest.mark.parametrize("begins", [MARK, PARTIAL])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_of_a_device_that_has_left_its_edge_are_in_one_result(begins: Stage, seed: int) -> None:
    random = Random(seed)
    mine, other = (rows_of(random, d, random.randint(1, 20)) for d in (D1, D2))
    taken, acked = random.randint(0, len(mine)), 0
    acked = random.randint(0, taken)  # the device has not heard that the edge took the others
    world = Edge(begins)
    sent, others = world.made(mine), world.made(other)
    late = random.randint(0, taken)
    for stage, batch in sorted([*sent[:late], *others[: len(others) // 2]], key=lambda _: random.random() < 0.5):
        world.at_edge(stage, batch)
    world.moved()
    ways = [("edge", iter(sent[late:taken])), ("root", iter(sent[acked:])), ("other", iter(others[len(others) // 2 :]))]
    told = False
    while ways:
        kind, batches = random.choice(ways)
        found = next(batches, None)
        if found is None:
            ways.remove((kind, batches))
            if kind == "edge":
                begin, told = world.release(), True
                assert begin.next == taken
        elif kind == "root":
            world.at_root(*found)
            if random.random() < 0.2:
                world.at_root(*found)  # it comes twice
        else:
            world.at_edge(*found)
        if told and random.random() < 0.3:
            world.out += world.root.shares.begin(D1, world.edge.shares.released[D1])
            if sent and random.random() < 0.3:
                world.at_edge(*random.choice(sent[acked:] or sent))  # one that was on its way to the edge
    world.out += world.root.shares.begin(D1, world.edge.shares.released[D1])
    if not taken:  # nothing below the beginning
        assert world.edge.shares.released[D1].next == 0
    world.up(world.edge.finish())
    world.out += world.root.finish()
    rows, late_rows = in_one_place(sorted([*mine, *other], key=lambda b: (b.header.seq, b.header.origin)))
    found, found_late = world.results()
    assert found == rows
    assert found_late == late_rows or begins == PARTIAL, "late rows of a device are set aside there"
    delivered = sum(
        pipeline.counts[D1].delivered + pipeline.counts[D1].late
        for pipeline in (world.edge, world.root)
        if D1 in pipeline.counts
    )
    made = sum(batch.header.born for _, batch in sent)
    assert delivered == made + (0 if begins == MARK else sum(batch.header.belated for _, batch in sent))


def test_batches_that_come_before_it_is_known_where_they_begin_are_held() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(1), D1, 6))
    for stage, batch in sent[:3]:
        world.at_edge(stage, batch)
    world.moved()
    for stage, batch in sent[1:4]:
        world.at_root(stage, batch)
    assert [batch.header.seq for batch in world.root.held()] == [1, 2, 3]
    assert world.root.gaps(D1, 6) == []
    assert world.release() == Begin(3, sent[2][1].header.watermark)
    world.out += world.root.shares.begin(D1, Begin(3, sent[2][1].header.watermark))
    assert list(world.root.held()) == []
    assert world.root.took(D1, 3)
    assert not world.root.took(D1, 4)


def test_an_origin_whose_edge_has_lost_its_windows_begins_with_the_first_batch_that_is_there() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(2), D1, 6))
    world.moved()
    for stage, batch in (sent[4], sent[3]):
        world.at_root(stage, batch)
    world.out += world.root.shares.begin(D1, Begin(ANYWHERE, MICROS_MIN))
    assert world.root.took(D1, 4)
    assert {taker: spans for taker, origin, spans in world.root.taken() if origin == D1}["2"] == (3, 5)
    world.at_root(*sent[5])
    assert world.root.took(D1, 5)


def test_a_root_without_a_disk_that_has_started_again_goes_on_with_the_first_batch_that_comes() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(7), D1, 9))
    root = Pipeline(world.stages, {}, {FINAL: Origin("q", stage=FINAL)}, {FINAL}, forgets=True, lifts=world.lifts)
    root.shares.lift(PARTIAL, D1)
    root.expect({SOURCE: [D1]})
    root.shares.begin(D1, Begin(3, MICROS_MIN))
    for n in (1, 2):  # they are in windows of the edge
        root.process(*sent[n])
        assert root.duplicates == n
    root.process(*sent[5])  # the earlier start had taken those between
    root.process(*sent[6])
    assert root.took(D1, 6)
    assert list(root.held()) == []


def test_an_origin_goes_on_without_batches_that_are_with_a_node_that_has_died() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(8), D1, 9))
    world.moved()
    world.root.know({}, {D1})
    for n in (5, 6):
        world.at_root(*sent[n])
    world.out += world.root.shares.begin(D1, Begin(3, MICROS_MIN))
    assert list(world.root.held()) == []
    assert {taker: spans for taker, origin, spans in world.root.taken() if origin == D1}["2"] == (5, 7)


def test_batches_of_an_earlier_start_of_a_device_are_held_until_it_is_known_how_far_its_edge_came() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(9), D1, 5))
    earlier = Origin(D1.name, D1.node, 7)
    again = [(stage, Batch(replace(batch.header, origin=earlier), batch.data)) for stage, batch in sent]
    world.moved()
    for stage, batch in again[:3]:
        world.at_root(stage, batch)
    assert [batch.header.origin for batch in world.root.held()] == [earlier] * 3
    world.root.know({SOURCE: [earlier]})
    world.out += world.root.shares.begin(earlier, Begin(3, MICROS_MIN))
    assert list(world.root.held()) == []
    assert world.root.duplicates == 3


def test_an_operator_that_has_let_an_origin_go_passes_it_by_and_lets_it_go_once() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(3), D1, 4))
    world.at_edge(*sent[0])
    begin = world.release()
    assert begin.next == 1
    [passed] = world.edge.process(*sent[1])
    assert passed == Emitted(sent[1][0], sent[1][1], passes=True)
    assert world.edge.shares.release(PARTIAL, D1) == []
    assert world.edge.shares.released[D1] == begin


def test_batches_that_wait_on_an_edge_pass_by_when_it_lets_their_device_go() -> None:
    world = Edge(PARTIAL)
    sent = world.made(rows_of(Random(5), D1, 4))
    for n in (0, 2, 3):
        world.at_edge(*sent[n])
    emitted = world.edge.shares.release(PARTIAL, D1)
    assert emitted == [Emitted(stage, batch, passes=True) for stage, batch in sent[2:4]]
    assert world.edge.shares.released[D1].next == 1
    assert list(world.edge.held()) == []


def test_an_edge_that_all_devices_have_left_gives_what_it_has() -> None:
    """A device that stays is waited for; windows are complete without those that have left."""
    world = Edge(PARTIAL)
    for batches in (rows_of(Random(6), d, 12)[:-1] for d in (D1, D2)):
        for stage, batch in world.made(batches):
            world.edge.process(stage, batch)
    assert sum(count.open for count in world.edge.counts.values()) > 0
    given = [*world.edge.shares.release(PARTIAL, D1), *world.edge.leave(SOURCE, [D1])]
    assert not world.edge.shares.deserted()
    assert world.edge.counts[D1].open > 0
    given += [*world.edge.shares.release(PARTIAL, D2), *world.edge.leave(SOURCE, [D2])]
    assert world.edge.shares.deserted()
    assert all(count.open == 0 for count in world.edge.counts.values())
    assert {each.batch.header.origin for each in given} == {EDGE}


def test_a_lifted_batch_keeps_its_name_and_promises_the_start_of_its_pane() -> None:
    window = plan().operators[PARTIAL]
    assert isinstance(window, Aggregate)
    lift = LiftLogic(window)
    made = some_rows(Random(4), "d1", START_US, 5, 0)
    [gap, lifted] = lift.process(named(D1, 7, made, START_US + 7 * SECOND_US)).batches
    assert (gap.header.origin, gap.header.seq, gap.header.through, gap.rows) == (D1, 0, 6, 0)
    assert (lifted.header.origin, lifted.header.seq, lifted.header.born) == (D1, 7, 0)
    assert lifted.header.watermark == START_US + 5 * SECOND_US
    assert lifted.header.event_min == lifted.header.event_max == START_US
    assert lifted.data is not None
    assert lifted.data.schema == window.schema
    [last] = lift.process(named(D1, 8, None, END)).batches
    assert last.header.watermark == END


def test_a_restart_lets_origins_go_and_takes_them_at_the_same_places() -> None:
    """The changes are entries of the input log, before those of who is waited for."""
    text = encode(plan())
    fragment = Fragment(
        query=QueryId("q"),
        version=Version(2),
        plan=plan_digest(text),
        runs=(PARTIAL,),
        makes={PARTIAL: EDGE},
        waits={SOURCE: (D2,)},
        next=NodeId("gw"),
        sinks={},
        releases={PARTIAL: (D1,)},
        lifts={PARTIAL: (D2,)},
        begins={D2: Begin(5, START_US)},
    )
    kept: Frontier[Lane] = Frontier()
    running = RunningFragment(fragment, text)
    changes = list(changes_of(running, kept))
    assert [(c.kind, c.stage, c.origin) for c in changes] == [
        (HeaderKind.RELEASE, PARTIAL, D1),
        (HeaderKind.LIFT, PARTIAL, D2),
        (HeaderKind.EXPECT, SOURCE, D2),
        (HeaderKind.BEGIN, 0, D2),
    ]
    assert (changes[3].epoch, changes[3].watermark) == (6, START_US)
    for change in changes:
        kept.take(Lane(change.kind, change.stage, change.origin), change.seq, change.through)
    assert [(c.kind, c.origin) for c in changes_of(running, kept)] == [(HeaderKind.GONE, D1)]
