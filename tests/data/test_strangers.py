"""Batches of origins that an operator here does not wait for: they pass by to where they are known, or are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.data.fragment import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Data, Fragment, Hello, Orders, Peer, Sink, Welcome
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages, stateful

SCHEMA = parse_schema("key string, ts timestamp, value bigint")
KNOWN, STRANGER = Origin("s/known"), Origin("s/stranger")
UP = NodeId("up")


def stages() -> Stages:
    stream = rove.Session.local().stream("s", schema="key string, ts timestamp, value bigint")
    counted = stream.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key").count()
    return Stages.of({"out": optimize(counted.plan)})


def edge(next: NodeId | None, knows: bool = False) -> Worker:
    """A node with the whole query, that waits for one origin."""
    plan = stages()
    runs = tuple(Stage(n) for n in range(1, len(plan.operators)))
    part = Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=codec.encode(plan),
        runs=runs,
        makes={n: Origin(f"q/{n}") for n in runs if stateful(plan.operators[n])},
        waits={Stage(0): (KNOWN,)},
        knows={Stage(0): (STRANGER,)} if knows else {},
        next=next,
        sinks={} if next is not None else {runs[-1]: Sink(kind="discard")},
    )
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=(UP,)), 1)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (part,), (), (Peer(node=UP, address="there"),))), 0)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived("up", Welcome(PROTOCOL, UP, 7, 1, 0, 10**6)), 2)
    worker.handle(Tick(), 3)
    return worker


def told(worker: Worker, origin: Origin) -> list[Data]:
    """What goes on when two rows of an origin have come."""
    rows = pa.record_batch([["a", "b"], [0, 1], [1, 2]], schema=SCHEMA)
    header = Header(query="q", origin=origin, seq=0, through=0, rows=2, born=2)
    said = worker.handle(Arrived(b"d", Data(1, header), encode_rows(rows)), 4)
    return [c.message for c in said if isinstance(c, Send) and isinstance(c.message, Data)]


def test_a_stranger_passes_by_as_it_came() -> None:
    (passed,) = told(edge(UP), STRANGER)
    assert (passed.header.origin, passed.header.rows, passed.header.born) == (STRANGER, 2, 2)
    assert passed.header.stage < stages().outputs[0][1]


def test_one_who_is_waited_for_is_taken() -> None:
    worker = edge(UP)
    assert all(message.header.rows == 0 for message in told(worker, KNOWN)), "only event time goes on"
    assert worker.running()[QueryId("q")].pipeline.took(KNOWN, 0)


def test_one_who_is_known_is_taken_though_nobody_waits_for_it() -> None:
    worker = edge(UP, knows=True)
    assert told(worker, STRANGER) == []
    assert worker.running()[QueryId("q")].pipeline.took(STRANGER, 0)


@pytest.mark.parametrize("knows", [False, True])
def test_where_no_road_leads_on_a_stranger_is_refused_and_counted(knows: bool) -> None:
    worker = edge(None, knows)
    told(worker, STRANGER)
    lost = sum(tally.lost for tally in worker.report().tallies)
    assert (lost, "UnknownOrigin" in worker.refused) == ((0, False) if knows else (2, True))
