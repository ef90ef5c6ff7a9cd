"""`writeStream` submits a query to the coordinator and returns a handle that knows the accounts of its rows."""

from __future__ import annotations

import re
from typing import Any

import pytest

import rove
from rove import functions as F
from rove.control.asks.requests import CloudAsk, CloudQuery, CloudSink, Named, Progress
from rove.model.errors import BadName, PlanError, RoveError, SetupError
from rove.model.ids import Origin, QueryId
from rove.model.messages import Tally, TroubleHere
from rove.plan.codec import decode
from rove.plan.operators import Filter, Received
from rove.plan.user_functions import by_name, by_value, decode_function
from tests.api.desk import COLUMNS, Desk

URL = "tcp://127.0.0.1:4700"
NO_FUNCTION = TroubleHere("this node has no function `f`", holds=True, final=True, lacks="f")


@pytest.fixture
def busy(desk: Desk) -> Any:
    return rove.Session(URL).stream("trains").where("boarding > 0")


def test_a_stream_the_coordinator_knows_needs_no_schema(desk: Desk) -> None:
    session = rove.Session(URL)
    assert session.stream("Trains").columns == ["train", "coach", "ts", "boarding"]
    assert session.sql("SELECT train FROM trains WHERE boarding > 3").columns == ["train"]
    with pytest.raises(PlanError, match="no stream `trams`; there are: trains; did you mean `trains`"):
        session.stream("trams")


def test_to_table_starts_a_query_that_ends_in_the_cloud(desk: Desk, busy: Any) -> None:
    query = busy.writeStream.option("strategy", "shortest_path").toTable("busy")
    found = desk.machine.queries[QueryId("busy")]
    record = found.record
    assert (query.name, record.strategy, record.sink.kind, record.sink.node) == ("busy", "shortest_path", "log", None)
    assert any(isinstance(op, Filter) for op in found.stages.operators)
    assert query.listed().state == "deploying"


def test_start_writes_files_on_a_node(desk: Desk, busy: Any) -> None:
    busy.writeStream.queryName("b").format("files").on("mast").outputMode("append").start("out/busy")
    sink = desk.machine.queries[QueryId("b")].record.sink
    assert (sink.kind, sink.node, sink.path) == ("file", "mast", "out/busy")


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        (lambda s: s.writeStream.queryName("my query"), "`my query` cannot name a query"),
        (lambda s: s.writeStream.toTable("../busy"), "`../busy` cannot name a table"),
        (lambda s: s.writeStream.format("log").toTable("../busy"), "`../busy` cannot name a query"),
        (lambda s: s.writeStream.queryName("b").format("postgres").start("a b"), "`a b` cannot name a table"),
        (lambda s: s.writeStream.queryName("b").format("files").on("a|b"), "`a|b` cannot name a node"),
        (lambda s: s.at("edge 7"), "`edge 7` cannot name a node"),
        (lambda s: s.session.stream("a b", schema="n int"), "`a b` cannot name a stream"),
        (lambda s: s.session.name("a/b", s), "`a/b` cannot name a stream"),
        (lambda s: s.session.stream("t", schema="n int", data={"tram~7": []}), "`tram~7` cannot name a node"),
        (lambda s: rove.Session.local(edges={"e": "the gateway"}), "`the gateway` cannot name a node"),
    ],
)
def test_names_that_nothing_can_have_are_refused(busy: Any, begin: Any, said: str) -> None:
    with pytest.raises(BadName, match=re.escape(said)):
        begin(busy)


@pytest.mark.parametrize(("value", "asked"), [(3, (3, False)), ("3", (3, False)), ("fold", (0, True))])
def test_what_a_query_would_rather_have_than_nothing_goes_to_the_devices(desk: Desk, value: Any, asked: Any) -> None:
    timed = rove.Session(URL).stream("trains").withWatermark("ts", "5 seconds").groupBy(F.window("ts", "1 minute"))
    timed.agg(F.sum("boarding")).writeStream.option("degrade", value).toTable("busy")
    record = desk.machine.queries[QueryId("busy")].record
    assert (record.thins, record.folds) == asked
    fragments = desk.machine.queries[QueryId("busy")].fragments
    assert {node: (f.thins, f.folds) for node, f in fragments.items() if f.feeds} == {"tram": asked}
    with pytest.raises(RoveError, match="there is a query `busy` already, with another degrade"):
        timed.agg(F.sum("boarding")).writeStream.toTable("busy")


def test_a_handle_follows_a_query_to_its_end(desk: Desk, busy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    query = busy.writeStream.toTable("busy")
    for node, kind, parents in (("gateway", "gateway", ()), ("mast", "edge", ("gateway",))):
        desk.report(node, kind, parents, running={"busy": 1})
    assert query.listed().missing == ("tram",)
    made = Tally(query=QueryId("busy"), origin=Origin("trains", "tram"), produced=10, late=2, watermark=1)
    desk.report("tram", "device", ("mast",), ("trains",), running={"busy": 1}, tallies=(made,))
    assert (query.listed().state, query.isActive) == ("running", True)
    said = query.status
    assert (said["message"], said["isTriggerActive"], said["state"]) == ("running", False, "running")
    progress = query.lastProgress
    assert (progress["produced"], progress["in_flight"], progress["late"], progress["adds_up"]) == (10, 8, 2, True)
    assert [line["origin"] for line in progress["origins"]] == ["trains/tram"]
    query.explain()
    assert "Filter boarding > 0" in capsys.readouterr().out
    assert not query.awaitTermination(0)
    desk.report("mast", "edge", ("gateway",), running={"busy": 1}, troubles={"busy": (NO_FUNCTION,)})
    assert (query.listed().state, query.exception()) == ("held up", "mast: this node has no function `f` (for 0 s)")
    with pytest.raises(RoveError, match="query `busy` cannot go on: mast: this node has no function `f`"):
        query.awaitTermination()
    assert [each.id for each in rove.Session(URL).streams.active] == ["busy"]
    assert rove.Session(URL).streams.get("busy").id == query.id == "busy"
    with pytest.raises(PlanError, match="a query has no runs"):
        _ = query.runId
    desk.ask("progress", Progress(query="busy", state="running", lag_entries=9), Named)
    said = query.status
    assert (said["isDataAvailable"], said["isTriggerActive"]) == (True, True)
    query.stop()
    said = query.status
    assert (said["isDataAvailable"], said["isTriggerActive"], said["spark"]) == (False, False, None)
    assert not rove.Session(URL).streams.active
    assert query.awaitTermination(1)
    assert rove.Session(URL).query("busy").listed().state == "stopped"


def test_a_limit_below_zero_is_refused_here_and_on_a_network(desk: Desk) -> None:
    for session in (rove.Session(URL), rove.Session.local()):
        with pytest.raises(PlanError, match="a table has no first -1 rows"):
            session.table("seen", limit=-1)


def test_the_same_query_may_be_started_twice_and_another_of_its_name_not(desk: Desk, busy: Any) -> None:
    assert busy.writeStream.toTable("busy").name == busy.writeStream.toTable("busy").name
    with pytest.raises(RoveError, match="there is a query `busy` already, with another plan"):
        busy.where("coach = 1").writeStream.toTable("busy")


def test_columns_that_contradict_the_stream_are_refused(desk: Desk) -> None:
    other = rove.Session(URL).stream("trains", schema="train string, boarding bigint")
    with pytest.raises(RoveError, match=f"stream `trains` has columns {COLUMNS}"):
        other.writeStream.toTable("other")


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        (lambda w: w.format("kafka"), "no format `kafka`; there are: parquet, console"),
        (
            lambda w: w.option("checkpointLocation", "x"),
            "rove cloud keeps checkpoints in the folder given with --state",
        ),
        (lambda w: w.outputMode("complete"), "no output mode `complete`; there are: append, update"),
        (
            lambda w: w.format("files").queryName("q").on("e").outputMode("update").start("x"),
            "output modes .* are for Spark",
        ),
        (lambda w: w.format("console").queryName("q").on("e").start(), "`console` is in Spark, not on node `e`"),
        (lambda w: w.trigger(processingTime="soon"), "trigger `soon` is not a fixed length of time"),
        (
            lambda w: w.trigger(availableNow=True),
            r"trigger\(availableNow=…\) cannot be used here: sources here never end",
        ),
        (lambda w: w.trigger(once=True), r"trigger\(once=…\) cannot be used here: sources here never end"),
        (lambda w: w.trigger(continuous="1 second"), "Spark's continuous mode has no watermarks"),
        (lambda w: w.trigger(realTime="5 minutes"), "Spark's real-time mode has no sources in Python"),
        (lambda w: w.reliability("HIGH"), "writeStream.reliability does not exist yet"),
        (
            lambda w: w.option("returnTimeout.trams", "1 hour").toTable("t"),
            "the query reads no such stream; .*`trains`",
        ),
        (lambda w: w.option("degrade", 1), "option `degrade` must be `fold` or a whole number of at least 2, not `1`"),
        (
            lambda w: w.option("degrade", "fold").toTable("t"),
            "needs a window that can be computed in part before Spark",
        ),
        (lambda w: w.start("here"), "start needs a place"),
        (lambda w: w.format("files").start("here"), "the query has no name"),
        (lambda w: w.outputMode("update").toTable("t"), "a table of files cannot replace rows; for update mode choose"),
        (lambda w: w.format("files").toTable("t"), "a table is kept by Spark, not in files"),
    ],
)
def test_what_is_not_there_is_refused_by_name(busy: Any, steps: Any, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        steps(busy.writeStream)


def test_an_unknown_query_is_refused_at_once(desk: Desk) -> None:
    with pytest.raises(PlanError, match="no query `bussy`; there are: none"):
        rove.Session(URL).query("bussy")


def test_what_spark_does_with_the_rows_goes_with_the_query(desk: Desk, busy: Any) -> None:
    writer = busy.writeStream.outputMode("update").trigger(processingTime="2 seconds").option("keys", "train")
    writer.format("postgres").option("returnTimeout", "30 seconds").start("busy")
    record = desk.machine.queries[QueryId("busy")].record
    assert record.cloud == CloudSink(
        kind="postgres", name="busy", mode="update", trigger_ms=2_000, options={"keys": "train"}
    )
    assert (record.patience_us, record.patience_of) == (30_000_000, {})
    (asked,) = desk.ask("cloud", None, list[CloudQuery])
    (received,) = decode(asked.plan).operators
    assert isinstance(received, Received)
    assert (asked.query, asked.sink, asked.patience_us) == ("busy", record.cloud, 30_000_000)
    desk.ask("progress", Progress(query="busy", state="running", rows=7), Named)
    said = rove.Session(URL).query("busy").lastProgress["spark"]
    assert (said["state"], said["rows"]) == ("running", 7)
    for batch in (0, 1, 1, 2):
        desk.ask("progress", Progress(query="busy", state="running", rows=9, batch=batch), Named)
    assert [p.batch for p in rove.Session(URL).query("busy").recentProgress] == [-1, 0, 1, 2]


def take(rows: Any, batch: int) -> None:
    """A function that can be imported."""


def test_a_function_for_batches_goes_by_its_name_or_by_value(desk: Desk, busy: Any) -> None:
    busy.writeStream.foreachBatch(take).queryName("taken").start()
    (asked,) = desk.ask("cloud", CloudAsk(), list[CloudQuery])
    assert asked.sink.name == "take"
    assert decode_function(asked.sink.function, by_name) is take
    with pytest.raises(RoveError, match="Spark takes functions by name only"):
        busy.writeStream.foreachBatch(lambda rows, batch: None).queryName("refused").start()
    desk.ask("cloud", CloudAsk(trusts=True), list[CloudQuery])
    busy.writeStream.foreachBatch(lambda rows, batch: batch + 1).queryName("other").start()
    (_, asked) = desk.ask("cloud", CloudAsk(trusts=True), list[CloudQuery])
    assert decode_function(asked.sink.function, by_value)(None, 1) == 2


@pytest.mark.parametrize("url", ["", "coordinator:4700", "http://127.0.0.1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="is not an address of a coordinator; write it like tcp://"):
        rove.Session(url)
