"""A local session runs a whole network: devices, edges, a gateway, a coordinator and Spark."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rove
from rove import functions as F
from rove.api.local.world import LocalWorld
from rove.control.asks.requests import Named, QueryLine
from rove.data.worker import Worker
from rove.model.errors import DataError, PlanError, RoveError, SetupError
from rove.model.ids import NodeId, Origin
from rove.model.messages import Report

COLUMNS = "train string, ts timestamp, boarding int"


def rows(train: str) -> pa.Table:
    moments = pa.array([n * 700_000 for n in range(60)]).cast(pa.timestamp("us", "UTC"))
    return pa.table({"train": [train] * 60, "ts": moments, "boarding": pa.array(range(60), pa.int32())})


def test_a_query_ends_in_a_table_in_a_function_and_on_an_edge(spark: Any, tmp_path: Path) -> None:
    seen: dict[int, int] = {}
    with rove.Session.local(edges={"line": "gateway", "cell": "line"}) as session:
        data = {name: rows(name).to_batches(max_chunksize=8) for name in ("a", "b")}
        trains = session.stream("trains", schema=COLUMNS, data=data)
        counted = (
            trains.where("boarding > 3")
            .withWatermark("ts", "5 seconds")
            .groupBy(F.window("ts", "10 seconds"), "train")
            .agg(F.sum("boarding").alias("on"))
        )
        table = counted.writeStream.toTable("counted")
        taken = (
            trains.where("boarding % 2 = 0")
            .writeStream.foreachBatch(lambda frame, batch: seen.update({batch: frame.count()}))
            .queryName("taken")
            .start()
        )
        alerts = (
            trains.where("boarding > 50").writeStream.format("files").on("line").queryName("alerts").start("alerts")
        )
        least = 55
        mapped = (
            trains.mapInArrow(lambda batches: (b.slice(0, 2) for b in batches), COLUMNS)
            .at("cell")
            .inSpark(lambda frame: frame.where(frame.boarding >= least))
            .writeStream.toTable("mapped")
        )
        for query in (table, taken, alerts, mapped):
            query.processAllAvailable(120)
        assert sorted(map(repr, session.table("counted").to_pylist())) == sorted(
            map(repr, counted.toArrow().to_pylist())
        )
        late, faults = session.table("counted_late"), session.table("counted_faults")
        assert (late.num_rows, faults.num_rows) == (0, 0), "they have columns before there are rows"
        assert {"train", "ts", "boarding", "_origin"} <= set(late.column_names)
        assert {"train", "boarding", "fault_reason", "fault_operator"} <= set(faults.column_names)
        assert sum(seen.values()) == 60
        assert sorted(session.table("mapped")["boarding"].to_pylist()) == [56, 56, 57, 57]
        progress = table.lastProgress
        assert progress["adds_up"]
        assert progress["spark"]["dropped_rows"] == 0
        assert table.exception() is None
        assert {p.state for p in table.recentProgress} <= {"starting", "running"}
        assert sum(line.delivered for line in alerts.accounts) == 120
        with pytest.raises(SetupError, match="there is no table `other` yet"):
            session.table("other")
        folder = session.world.folder
    assert not folder.exists()
    with pytest.raises(SetupError, match="elsewhere"):
        _ = rove.Session("tcp://127.0.0.1:4700").world


def named(trains: Any, lines: Any) -> Any:
    return trains.where("boarding > 3").join(lines, on="train", how="left")


def by_line(trains: Any, lines: Any) -> Any:
    F = rove.functions_for(trains)
    timed = named(trains, lines).withWatermark("ts", "5 seconds")
    return timed.groupBy(F.window("ts", "10 seconds"), "line").agg(F.sum("boarding").alias("on"))


def test_streams_are_joined_with_a_table_in_spark(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"train": ["a", "c"], "line": ["U1", "U2"]}), tmp_path / "lines.parquet")
    frames = spark.createDataFrame(pa.concat_tables(map(rows, "ab"))), spark.read.parquet(str(tmp_path))
    with rove.Session.local() as session:
        data = {name: rows(name).to_batches(max_chunksize=8) for name in "ab"}
        trains = session.stream("trains", schema=COLUMNS, data=data)
        lines = session.read.parquet(str(tmp_path / "lines.parquet"))
        queries = {query: query(trains, lines).writeStream.toTable(query.__name__) for query in (named, by_line)}
        for query, running in queries.items():
            running.processAllAvailable(120)
            actual, expected = session.table(query.__name__), query(*frames).toArrow()
            assert sorted(map(repr, actual.to_pylist())) == sorted(map(repr, expected.to_pylist()))
            assert running.lastProgress["spark"]["dropped_rows"] == 0
        with pytest.raises(
            RoveError, match=r"Table .* is wanted at `edge`, but runs in Spark only: .*before this step"
        ):
            named(trains, lines).at("edge").writeStream.toTable("other")


def test_what_streaming_spark_refuses_is_refused_before_the_query_starts(spark: Any) -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data=rows("a"))
        numbered = trains.inSpark(lambda df: df.selectExpr("row_number() OVER (ORDER BY boarding) AS n"))
        with pytest.raises(PlanError, match="streaming Spark refuses this query: Window function"):
            numbered.writeStream.toTable("numbered")
        with pytest.raises(PlanError, match="use output mode `update`"):
            trains.groupBy("train").count().writeStream.toTable("totals")
        assert session.ask("queries", Named(name=""), list[QueryLine]) == []


def test_a_statement_runs_as_a_stream_with_what_only_spark_computes(spark: Any) -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data={n: rows(n) for n in ("a", "b")})
        session.name("timed", trains.withWatermark("ts", "5 seconds"))
        text = """
            SELECT window.start, count(DISTINCT train) AS n, count(*) FILTER (WHERE boarding > 5) AS busy
            FROM timed GROUP BY window(ts, '10 seconds')
        """
        exploded = (
            "SELECT train, x FROM trains LATERAL VIEW explode(array(boarding, -boarding)) e AS x WHERE boarding = 7"
        )
        queries = [session.sql(t).writeStream.toTable(n) for n, t in (("counted", text), ("twice", exploded))]
        for query in queries:
            query.processAllAvailable()
        counted = session.table("counted").sort_by("start")
        assert counted.column("n").to_pylist() == [2] * counted.num_rows
        assert counted.column("busy").to_pylist()[:2] == [18, 28]
        assert sorted(session.table("twice").column("x").to_pylist()) == [-7, -7, 7, 7]


def test_a_world_with_a_node_that_stays_broken_says_its_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = LocalWorld(tmp_path)
    assert len(world.nodes()) == 3

    def breaks(self: Worker) -> Report:
        raise KeyError("broken on purpose")

    monkeypatch.setattr(Worker, "report", breaks)
    world._thread.join(30)
    with pytest.raises(RoveError, match=r"ends: KeyError: 'broken on purpose', at Tick"):
        world.nodes()
    world.close()


def files(stream: Any, name: str) -> Any:
    return stream.writeStream.format("files").on("gateway").queryName(name).start(name)


def test_data_flows_when_all_queries_have_begun() -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data={"a": rows("a").to_batches(max_chunksize=8)})
        buses = session.stream("buses", schema=COLUMNS)
        queries = files(trains, "first"), files(buses, "second")
        seen = []

        def arrive() -> None:
            seen.append(session.world.gate.exists())
            batches = {Origin("buses", NodeId("b")): rows("b").to_batches(max_chunksize=8)}
            session.world.feed("buses", rows("b").schema, batches)

        late = threading.Timer(2, arrive)
        late.start()
        for query in queries:
            query.processAllAvailable(60)
            assert sum(line.delivered for line in query.accounts) == 60
        assert seen == [False], "the first query had begun long before"


def test_nobody_waits_for_a_query_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rove.api.troubles.PATIENCE_MS", 500)
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data={"a": rows("a").to_batches(max_chunksize=8)})
        first = files(trains, "first")
        files(session.stream("buses", schema=COLUMNS), "nobodys")
        first.processAllAvailable(60)
        assert sum(line.delivered for line in first.accounts) == 60


def test_waiting_for_rows_that_cannot_come_raises_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rove.api.local.world.PATIENCE_MS", 500)
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data={"a": rows("a").to_batches(max_chunksize=8)})
        divided = files(trains.selectExpr("train", "100 / boarding AS x"), "divided")
        with pytest.warns(UserWarning, match=r"rows of query `divided` could not be computed: a: .*division by zero"):
            divided.processAllAvailable(60)
        assert divided.listed().state == "running"
        stopped = files(trains.where("boarding > 3"), "stopped")
        stopped.stop()
        with pytest.raises(RoveError, match="query `stopped` was stopped, and no more rows come"):
            stopped.processAllAvailable(60)
        nobodys = files(session.stream("buses", schema=COLUMNS), "nobodys")
        with pytest.raises(
            RoveError, match=r"query `nobodys` waits for sources of `buses`.*; give the stream its data"
        ):
            nobodys.processAllAvailable(60)


def test_a_query_that_stops_at_its_first_fault_says_so_to_whom_waits() -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data={"a": rows("a").to_batches(max_chunksize=8)})
        stops = trains.selectExpr("100 / boarding AS x").writeStream.option("onFault", "stop").format("files")
        with pytest.raises(RoveError, match=r"query `stops` was stopped.*a row could not be computed on a: .*by zero"):
            stops.on("gateway").queryName("stops").start("stops").processAllAvailable(60)


def test_data_without_rows_has_been_processed_at_once() -> None:
    with rove.Session.local() as session:
        nothing = session.stream("trains", schema=COLUMNS, data={"a": rows("a").slice(0, 0)})
        files(nothing, "nothing").processAllAvailable(20)


def test_a_query_that_fails_in_spark_again_and_again_raises_and_goes_on_when_it_is_mended(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mended, seen = tmp_path / "mended", list[int]()

    def take(frame: Any, batch: int) -> None:
        if not mended.exists():
            raise ValueError("the sink is away")
        seen.append(frame.count())

    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data={"a": rows("a").to_batches(max_chunksize=8)})
        query = trains.where("boarding > 3").writeStream.foreachBatch(take).queryName("taken").start()
        with pytest.raises(
            RoveError, match=r"query `taken` cannot go on: Spark: ValueError: the sink is away \(3 failures"
        ):
            query.processAllAvailable(200)
        with pytest.raises(RoveError, match="the sink is away"):
            query.awaitTermination(5)
        line = query.listed()
        assert line.state == "held up"
        assert [(t.who, t.holds, t.final) for t in line.troubles] == [("Spark", True, True)]
        assert line.troubles[0].for_ms >= 1_000, "it counts from the first failure"
        mended.touch()
        while any(trouble.final for trouble in query.listed().troubles):
            time.sleep(0.2)
        query.processAllAvailable(200)
        assert (sum(seen), query.exception()) == (56, None)
    failed = [record.getMessage() for record in caplog.records if "failed in Spark" in record.getMessage()]
    assert len(failed) == 1, "it is logged once"
    assert "rove stop taken" in failed[0]


def test_a_row_at_fault_is_in_its_table_when_all_rows_have_arrived(spark: Any) -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema="n int", data=[{"n": 0}, {"n": 5}, {"n": 0}])
        query = trains.selectExpr("100 / n AS share").writeStream.toTable("shares")
        with pytest.warns(UserWarning, match="2 rows of query `shares` could not be computed"):
            query.processAllAvailable(120)
        assert session.table("shares")["share"].to_pylist() == [20.0]
        assert session.table("shares_faults")["n"].to_pylist() == [0, 0]


def test_a_table_without_rows_is_refused_by_name_and_so_is_what_spark_cannot_compute(
    spark: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with rove.Session.local() as session:
        words = session.stream("words", schema="s string", data=[{"s": "x"}])
        parsed = words.selectExpr("reflect('java.lang.Integer', 'parseInt', s) AS n")
        query = parsed.writeStream.toTable("numbers")
        with pytest.raises(RoveError, match=r'cannot go on: Spark: java.lang.\w+: For input string: "x"'):
            query.processAllAvailable(120)
        with pytest.raises(RoveError, match="table `numbers` has no rows yet"):
            session.table("numbers")
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "\tat " not in said


def test_what_spark_raises_without_pysparks_knowledge_is_an_error_in_one_line(spark: Any) -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int", data=[{"a": 1}])
    two = session.sql("SELECT a, (SELECT col1 FROM VALUES (1), (2)) AS q FROM t")
    with pytest.raises(DataError, match="Spark cannot compute this: More than one row returned by a subquery") as told:
        two.toArrow()
    assert len(str(told.value).splitlines()) == 1


def test_a_device_may_have_rows_of_two_streams() -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data=rows("a"))
        buses = session.stream("buses", schema=COLUMNS, data=rows("b").slice(0, 20))
        queries = files(trains, "first"), files(buses, "second"), files(trains.union(buses), "both")
        for query, expected in zip(queries, (60, 20, 80), strict=True):
            query.processAllAvailable(60)
            assert sum(line.delivered for line in query.accounts if "#" not in line.origin) == expected


def test_a_query_gets_all_rows_if_those_before_it_were_stopped() -> None:
    with rove.Session.local() as session:
        trains = session.stream("trains", schema=COLUMNS, data=rows("a"))
        first = files(trains, "first")
        first.processAllAvailable(60)
        beside = files(trains, "beside")
        with pytest.raises(RoveError, match="had flowed when query `beside` came, because another query runs"):
            beside.processAllAvailable(60)
        session.stream("trains", schema=COLUMNS, data=rows("a").slice(0, 5))
        with pytest.raises(RoveError, match="queries run over the data that `trains` had before; stop them first"):
            files(trains, "other")
        first.stop()
        beside.stop()
        other = files(trains, "other")
        other.processAllAvailable(60)
        assert sum(line.delivered for line in other.accounts) == 5
