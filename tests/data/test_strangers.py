"""Which origins operators wait for: batches of unknown origins pass on to a node that knows them."""

from __future__ import annotations

import re
from random import Random

import pyarrow as pa
import pytest
from msgspec.structs import replace

import rove
from rove import functions as F
from rove.control.members.accounts import account_lines, excess
from rove.control.members.ended import Ended
from rove.data.events import Command
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.clock import END
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Data, Fragment, Hello, Learned, Orders, Peer, Sink, Tally, Welcome
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages, stateful
from rove.sim.shelf import SimShelf
from tests.data.acks import heard
from tests.data.disk_driver import done_at_once
from tests.data.plans import named, plans_of
from tests.lines import line, lines

SCHEMA = parse_schema("key string, ts timestamp, value bigint")
KNOWN, STRANGER = Origin("s", "known"), Origin("s", "stranger")
UP = NodeId("up")
BELOW = Learned(0, ((NodeId("device"), "known"), (NodeId("device"), "stranger")))


def stages() -> Stages:
    stream = rove.Session.local().stream("s", schema="key string, ts timestamp, value bigint")
    counted = stream.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key").count()
    return Stages.of({"out": optimize(counted.plan)})


def part(next: NodeId | None, waits: tuple[Origin, ...] = (KNOWN,), knows: bool = False, less: int = 0) -> Fragment:
    """A query, all of it but the first `less` operators."""
    plan = stages()
    runs = tuple(Stage(n) for n in range(1 + less, len(plan.operators)))
    return Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=named(codec.encode(plan)),
        runs=runs,
        makes={n: Origin("q", stage=n) for n in runs if stateful(plan.operators[n])},
        waits={Stage(0): waits},
        knows={Stage(0): (STRANGER,)} if knows else {},
        next=next,
        sinks={} if next is not None else {runs[-1]: Sink(kind="discard")},
    )


def edge(next: NodeId | None, knows: bool = False) -> Worker:
    """A node with the whole query, that waits for one origin."""
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=(UP,)), 1)
    run, peers = part(next, knows=knows), (Peer(node=UP, address="there"),)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (run,), (), peers, plans=plans_of(run), learn=BELOW)), 0)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived("up", Welcome(PROTOCOL, UP, 7, 1, 0, 10**6)), 2)
    worker.handle(Tick(), 3)
    return worker


def told(worker: Worker, origin: Origin) -> list[Command]:
    """What is asked for when two rows of an origin have come, and when their ack was heard."""
    rows = pa.record_batch([["a", "b"], [0, 1], [1, 2]], schema=SCHEMA)
    header = Header(query="q", origin=origin, seq=0, through=0, rows=2, born=2)
    return worker.handle(Arrived(b"d", Data(1, header), encode_rows(rows)), 4) + heard(worker, b"d", 4)


def test_a_stranger_passes_by_as_it_came() -> None:
    (passed,) = told(edge(UP), STRANGER)
    assert line(passed) == f"to up: Data 1: q {STRANGER} 0, 2 rows"
    assert isinstance(passed, Send)
    assert isinstance(passed.message, Data)
    assert passed.message.header.born == 2
    assert passed.message.header.stage < stages().outputs[0][1]


def test_one_who_is_waited_for_is_taken() -> None:
    worker = edge(UP)
    (passed,) = lines(told(worker, KNOWN))
    assert re.fullmatch(r"to up: Data 1: q q#\d 0 to \d+, 0 rows", passed), "only event time goes on"
    assert worker.running()[QueryId("q")].pipeline.took(KNOWN, 0)


def test_one_who_is_known_is_taken_though_nobody_waits_for_it() -> None:
    worker = edge(UP, knows=True)
    assert told(worker, STRANGER) == []
    assert worker.running()[QueryId("q")].pipeline.took(STRANGER, 0)


@pytest.mark.parametrize("knows", [False, True])
def test_where_no_route_leads_on_a_stranger_is_refused_and_counted(knows: bool) -> None:
    worker = edge(None, knows)
    assert lines(told(worker, STRANGER)) == ([] if knows else ["to d: Refused, UnknownOrigin"])
    lost = sum(tally.lost for tally in worker.report().tallies)
    assert (lost, "UnknownOrigin" in worker.refused) == ((0, False) if knows else (2, True))


@pytest.mark.parametrize("leaves", [False, True])
def test_who_is_waited_for_stays_so_when_more_runs_here(leaves: bool) -> None:
    first = part(UP, (KNOWN, STRANGER), less=1)
    before = RunningFragment(first, plans_of(first)[first.plan])
    before.expect(before.fragment.waits)
    waits = {Stage(0): (KNOWN,)} if leaves else before.fragment.waits
    second = replace(part(UP), waits=waits, version=Version(2))
    after = before.update(second, plans_of(second)[second.plan])
    assert after is not before
    assert after.pipeline.waited() == {Stage(0): (KNOWN, STRANGER)}
    emitted = after.expect(waits) + after.pipeline.leave(Stage(0), [Origin("s", "other")])
    assert emitted == []
    waited = {name for step in after.pipeline._with_memory if step.waits is not None for name in step.waits.waited()}
    assert KNOWN in waited
    assert (STRANGER in waited) == (not leaves)


def test_what_is_lost_in_a_second_run_is_lost_once_however_often_the_node_starts_anew() -> None:
    shelf, past = SimShelf(Random(1)), Ended()
    rows = pa.record_batch([["a", "b"], [0, 1], [1, 2]], schema=SCHEMA)
    stranger = Header(query="q", origin=STRANGER, seq=0, through=0, rows=2, born=2)
    made = Tally(query=QueryId("q"), origin=STRANGER, produced=2)
    for start in (1, 2, 3):
        worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), start, durable=True)

        def obey(commands: list[Command], worker: Worker = worker) -> None:
            done_at_once(worker, shelf, commands, 0)

        run = part(None)
        orders = Orders(PROTOCOL, (run,), (), (), plans=plans_of(run), learn=BELOW)
        obey(worker.handle(Arrived("coordinator", orders), 0))
        if start == 1:
            worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
            obey(worker.handle(Tick(), 1))
            obey(worker.handle(Arrived(b"d", Data(1, stranger), encode_rows(rows)), 2))
        for now in (3, 4, 5):
            obey(worker.handle(Tick(), now))
        report = worker.report()
        assert worker.refused == {"UnknownOrigin": 1}
        accounts = account_lines((made, *past.tallies(), *report.tallies), 0, {STRANGER})
        assert [(each.produced, each.lost) for each in accounts if each.origin == str(STRANGER)] == [(2, 2)]
        past.over(NodeId("gateway"), start, report.tallies, (), report.running)


def test_rows_that_an_operator_loses_add_up_before_their_maker_has_reported_them() -> None:
    shelf = SimShelf(Random(1))
    rows = pa.record_batch([["a", "b"], [0, 1], [1, 2]], schema=SCHEMA)
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 1, durable=True)
    run = part(None)
    orders = Orders(PROTOCOL, (run,), (), (), plans=plans_of(run), learn=BELOW)
    done_at_once(worker, shelf, worker.handle(Arrived("coordinator", orders), 0), 0)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    for seq in range(2):
        header = Header(query="q", origin=STRANGER, seq=seq, through=seq, rows=2, born=2)
        worker.handle(Arrived(b"d", Data(seq + 1, header), encode_rows(rows)), seq + 1)
        done_at_once(worker, shelf, worker.handle(Tick(), seq + 1), 0)
    reported = Tally(query=QueryId("q"), origin=STRANGER, produced=2, made=1)
    (found,) = account_lines((reported, *worker.report().tallies), 0, {STRANGER})
    assert (found.produced, found.lost, excess(found)) == (4, 4, 0)


def test_what_operators_have_counted_stays_counted_when_a_node_leaves_the_query() -> None:
    worker = edge(UP)
    told(worker, KNOWN)
    last = Header(query="q", origin=KNOWN, seq=1, through=1, watermark=END)  # all windows close
    worker.handle(Arrived(b"d", Data(2, last)), 4)
    heard(worker, b"d", 4)
    for orders in (Orders(PROTOCOL, (), (), leave=(QueryId("q"),)), Orders(PROTOCOL, (), (QueryId("q"),))):
        worker.handle(Arrived("coordinator", orders), 5)
        assert [(t.delivered, t.lost) for t in worker.report().tallies if t.origin == KNOWN] == [(2, 0)]
