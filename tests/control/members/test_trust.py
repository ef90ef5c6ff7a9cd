"""Functions by value are sent only to nodes that allow them, and the coordinator reads none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle
import msgspec
import pyarrow as pa
import pytest

import rove
from rove.control.asks.requests import CloudAsk, CloudQuery, CloudSink, Submit, Submitted
from rove.model.errors import RoveError
from rove.model.ids import QueryId
from rove.model.messages import Sink
from rove.plan.codec import encode
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.api.desk import COLUMNS, Desk
from tests.plan.test_codec_functions import Trap

TABLE = CloudSink(kind="table", name="t")


def trains() -> Any:
    return rove.Session.local().stream("trains", schema=COLUMNS)


def submit(desk: Desk, stream: Any, cloud: CloudSink | None = None, pickled: Any = cloudpickle.dumps) -> Submitted:
    plan = encode(Stages.of({"out": optimize(stream.plan)}), pickled)
    return desk.ask("submit", Submit(name="q", plan=plan, sink=Sink(kind="log"), cloud=cloud), Submitted)


def halved(batches: Any) -> Any:
    return (b.slice(0, b.num_rows // 2) for b in batches)


def nameless() -> Any:
    """A function that nobody can import."""
    return lambda batches: halved(batches)


def test_a_node_that_does_not_take_functions_by_value_is_named_at_once() -> None:
    desk = Desk()
    desk.line_up()
    at_edge = trains().mapInArrow(nameless(), COLUMNS).at("mast")
    with pytest.raises(RoveError, match=r"`<lambda>` would be sent to `mast` by value.*trust_functions"):
        submit(desk, at_edge)
    assert desk.machine.queries == {}
    assert desk.machine.deployments.load.slots == {}
    desk.line_up(trusts=True)
    assert "Map <lambda>" in submit(desk, at_edge).text
    assert set(desk.machine.queries[QueryId("q")].fragments) == {"tram", "mast", "gateway"}


def test_spark_says_whether_it_takes_functions_by_value_when_it_asks() -> None:
    desk = Desk()
    desk.line_up()
    in_spark = trains().inSpark(nameless())
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    with pytest.raises(RoveError, match="rove cloud --trust-functions"):
        submit(desk, in_spark, TABLE)
    desk.ask("cloud", CloudAsk(trusts=True), list[CloudQuery])
    submit(desk, in_spark, TABLE)
    assert [q.query for q in desk.ask("cloud", CloudAsk(trusts=True), list[CloudQuery])] == ["q"]


def test_where_spark_has_not_been_heard_a_query_is_taken() -> None:
    desk = Desk()
    desk.line_up()
    assert submit(desk, trains().inSpark(nameless()), TABLE).version == 1


def test_a_function_by_name_goes_anywhere() -> None:
    desk = Desk()
    desk.line_up()
    assert submit(desk, trains().mapInArrow(pa.compute.negate, COLUMNS), pickled=None).version == 1


def test_the_coordinator_reads_no_function_not_even_after_a_restart(tmp_path: Path) -> None:
    desk = Desk()
    desk.line_up(trusts=True)
    file = tmp_path / "ran"
    submit(desk, trains().mapInArrow(nameless(), COLUMNS).at("mast"), pickled=lambda _: cloudpickle.dumps(Trap(file)))
    query = desk.machine.queries[QueryId("q")]
    kept = [("plan", query.record.plan, query.plan), ("query", "q", msgspec.msgpack.encode(query.record))]
    again = Desk()
    again.machine.restore(kept)
    assert QueryId("q") in again.machine.queries
    assert not file.exists()
