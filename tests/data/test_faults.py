"""A batch that could not be computed is its query's trouble, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

import rove
from rove.data.rows import encode_rows
from rove.data.worker import Worker
from rove.model.events import Arrived
from rove.model.ids import QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Orders, Sink
from rove.plan import codec
from rove.plan.stages import Stages
from tests.data.plans import named
from tests.data.test_worker import COLUMNS, ORIGIN, data, edge, fragment, linked, orders, rows

Q = QueryId("q")


def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise ValueError("no such sensor")


def wordy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise ValueError("x" * 1_000_000)


def fine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def running(worker: Worker, function: object, version: int) -> None:
    mapped = rove.Session.local().stream("s", schema=COLUMNS).mapInArrow(function, COLUMNS)  # type: ignore[arg-type]
    plan = named(codec.encode(Stages.of({"out": mapped.plan})))
    sinks = {Stage(1): Sink(kind="discard")}
    worker.handle(
        orders(replace(fragment(), plan=plan, version=Version(version), runs=(Stage(1),), sinks=sinks)), version
    )


def troubles(worker: Worker) -> list[str]:
    return [trouble.text for found in (worker.report().troubles or {}).values() for trouble in found]


def test_the_trouble_names_the_function_and_the_batch_until_the_query_has_another_plan_or_leaves() -> None:
    worker = edge()
    conn = linked(worker)
    running(worker, broken, 2)
    assert troubles(worker) == []
    worker.handle(Arrived(conn, data(1, 0), encode_rows(rows())), 5)
    first = f"batch 0 of `{ORIGIN}`: mapInArrow function `broken` raised ValueError: no such sensor"
    assert troubles(worker) == [f"rows that cannot be computed go to the fault table; the first: {first}"]
    worker.handle(Arrived(conn, data(2, 1), encode_rows(rows())), 6)
    assert f"the first: {first}" in troubles(worker)[0]  # its words stay the same
    running(worker, broken, 3)
    assert troubles(worker)
    running(worker, fine, 4)
    assert troubles(worker) == []
    running(worker, broken, 5)
    worker.handle(Arrived(conn, data(3, 2), encode_rows(rows())), 7)
    assert troubles(worker)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), None, "", (Q,))), 8)
    assert troubles(worker) == []


def test_a_text_of_a_user_is_cut() -> None:
    worker = edge()
    conn = linked(worker)
    running(worker, wordy, 2)
    worker.handle(Arrived(conn, data(1, 0), encode_rows(rows())), 5)
    assert len(troubles(worker)[0]) < 1_000
