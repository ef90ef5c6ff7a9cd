"""Queries of one node that begin alike compute their rows once, and each gets the rows that it would get alone."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rove
from rove.data.events import Command, Produced
from rove.data.operators import shared_results
from rove.data.operators.filter import FilterLogic
from rove.data.operators.shared_results import SharedResults, key_of
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Data, Fragment, Orders, Peer, Welcome
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages, stateless
from tests.data.plans import named, plans_of

COLUMNS = "key string, a bigint, b bigint"
ORIGIN, WEST = Origin("s", "device"), NodeId("west")
BEGINNINGS = ("a > 1", "b > 1", "a > 1 AND b > 1", "a % 2 = 0", "true")
ENDINGS = (("key", "a"), ("a + b AS c",), ("key", "a", "b"), ("upper(key) AS u", "b"))


def stream() -> Any:
    return rove.Session.local().stream("s", schema=COLUMNS)


def plan(where: str, columns: tuple[str, ...]) -> Stages:
    return Stages.of({"out": optimize(stream().where(where).selectExpr(*columns).plan)})


def rows(values: list[int]) -> pa.RecordBatch:
    columns = [pa.array([f"k{v}" for v in values]), pa.array(values, pa.int64()), pa.array(values[::-1], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=parse_schema(COLUMNS))


def fragment(number: int, stages: Stages) -> Fragment:
    return Fragment(
        query=QueryId(f"q{number}"),
        version=Version(1),
        plan=named(codec.encode(stages)),
        runs=tuple(Stage(n) for n, op in enumerate(stages.operators) if stateless(op)),
        makes={},
        waits={Stage(0): (ORIGIN,)},
        next=WEST,
        sinks={},
        feeds=(ORIGIN,),
    )


def device(*fragments: Fragment) -> Worker:
    """A device that has reached its parent, and runs these fragments."""
    worker = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(WEST,)), 1)
    worker.add_source("s", ORIGIN, COLUMNS)
    peers = (Peer(node=WEST, address="there"),)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, fragments, (), peers, plans=plans_of(*fragments))), 0)
    worker.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 1 << 40)), 1)
    return worker


def sent(commands: list[Command]) -> dict[str, list[tuple[int, bytes]]]:
    """The batches that were sent, by query: how many rows, and their bytes."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for each in commands:
        if isinstance(each, Send) and isinstance(each.message, Data):
            header = each.message.header
            found.setdefault(header.query, []).append((header.rows, bytes(each.payload or b"")))
    return found


@given(
    st.lists(st.tuples(st.sampled_from(BEGINNINGS), st.sampled_from(ENDINGS)), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1, max_size=4),
)
def test_each_query_gets_what_it_would_get_alone(queries: list[Any], batches: list[list[int]]) -> None:
    fragments = [fragment(n, plan(*query)) for n, query in enumerate(queries)]
    together, alone = device(*fragments), [device(each) for each in fragments]
    for values in batches:
        data = rows(values)
        found = sent(together.handle(Produced(ORIGIN, data, 0), 2))
        expected = [sent(worker.handle(Produced(ORIGIN, data, 0), 2)) for worker in alone]
        assert found == {query: batch for each in expected for query, batch in each.items()}


def test_queries_that_begin_alike_compute_their_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[pa.RecordBatch] = []
    apply = FilterLogic.apply
    monkeypatch.setattr(FilterLogic, "apply", lambda self, data: (applied.append(data), apply(self, data))[1])
    same, other = plan("a > 1", ("key", "a", "b")), plan("b > 1", ("key", "a", "b"))
    worker = device(fragment(0, same), fragment(1, same), fragment(2, other), fragment(3, same))
    found = sent(worker.handle(Produced(ORIGIN, rows([1, 2, 3]), 0), 2))
    assert len(applied) == 2
    assert found["q0"] == found["q1"] == found["q3"] != found["q2"]


def test_results_are_forgotten_at_the_next_event() -> None:
    stages = plan("a > 1", ("key", "a", "b"))
    worker = device(fragment(0, stages), fragment(1, stages))
    data = rows([1, 2, 3])
    seen = weakref.ref(data)
    worker.handle(Produced(ORIGIN, data, 0), 2)
    worker.handle(Produced(ORIGIN, rows([1]), 0), 3)
    del data
    gc.collect()
    assert seen() is None


def test_never_more_results_are_kept_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_results, "RESULTS_MAX", 3)
    shared, many = SharedResults(), [rows([n]) for n in range(10)]
    for data in many:
        assert shared.through(b"key", [], data) is data
        assert shared.encoded(data) is not None
    assert len(shared._computed) <= 3
    assert len(shared._encoded) <= 3


def test_what_is_below_a_run_is_a_part_of_its_key() -> None:
    def last(query: Any) -> list[Operator]:
        return [Stages.of({"out": query.plan}).operators[-1]]

    other = rove.Session.local().stream("t", schema=COLUMNS)
    keys = [
        key_of(last(stream().where("a > 1"))),
        key_of(last(stream().where("b > 1").where("a > 1"))),
        key_of(last(other.where("a > 1"))),
    ]
    assert len(set(keys)) == 3
    assert key_of(last(stream().where("a > 1"))) == keys[0]


def test_a_users_function_is_not_shared() -> None:
    called = stream().mapInArrow(lambda batches: batches, COLUMNS).where("a > 1")
    assert key_of([Stages.of({"out": called.plan}).operators[-1]]) == b""


def test_rows_of_an_operator_with_state_are_not_shared() -> None:
    timed = rove.Session.local().stream("s", schema="ts timestamp, a bigint").withWatermark("ts", "1 second")
    counted = timed.scan(rove.functions.count("*").alias("n")).where("n > 1")
    assert key_of([Stages.of({"out": counted.plan}).operators[-1]]) == b""
