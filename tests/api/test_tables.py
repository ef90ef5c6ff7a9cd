"""Tables that Spark reads: their plans, and what is refused when the query is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rove
from rove.cloud.compile import compile_plan
from rove.control.asks.requests import TableRows
from rove.model.errors import ParseError, PlanError, SchemaMismatch
from rove.plan.build import JOINS
from rove.plan.operators import Table, walk


@pytest.fixture
def session() -> Any:
    return rove.Session.local()


@pytest.fixture
def trains(session: Any) -> Any:
    return session.stream("trains", schema="train string, stop int, ts timestamp")


@pytest.fixture
def stops(session: Any) -> Any:
    return session.read.schema("stop int, name string").table("stops")


def test_a_reader_tells_the_plan_what_spark_is_told(session: Any) -> None:
    read = session.read.format("csv").schema("stop int").option("header", True).options(sep=";").load("/data/stops.csv")
    assert read.plan == Table(
        "/data/stops.csv", pa.schema([("stop", pa.int32())]), "csv", (("header", "true"), ("sep", ";"))
    )


def test_parquet_that_is_here_says_its_columns_itself(session: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"stop": pa.array([1], pa.int32()), "name": ["Jungfernstieg"]}), tmp_path / "stops.parquet")
    for path in (tmp_path, tmp_path / "stops.parquet"):
        assert session.read.parquet(str(path)).dtypes == [("stop", "int"), ("name", "string")]


def test_a_type_that_spark_has_not_is_refused_with_the_way_out(session: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"stop": pa.array([1], pa.uint64())}), tmp_path / "stops.parquet")
    with pytest.raises(ParseError, match="unsupported Arrow type uint64"):
        session.read.parquet(str(tmp_path))
    assert session.read.schema("stop bigint").parquet(str(tmp_path)).columns == ["stop"]


def test_columns_that_cannot_be_looked_up_have_to_be_said(session: Any) -> None:
    for read in (
        lambda r: r.parquet("s3://far/stops"),
        lambda r: r.format("csv").load("x.csv"),
        lambda r: r.table("t"),
    ):
        with pytest.raises(PlanError, match=r"cannot be found out here; name them: session\.read\.schema"):
            read(session.read)


def test_a_table_can_have_a_name_in_sql(session: Any, trains: Any, stops: Any) -> None:
    session.name("stops", stops)
    joined = session.sql("SELECT train, name FROM trains JOIN stops USING (stop)")
    assert any(isinstance(op, Table) for op in walk(joined.plan))
    assert joined.columns == ["train", "name"]


ALONE: list[Callable[[Any], Any]] = [
    lambda stops: stops.toArrow(),
    lambda stops: stops.where("stop > 1").writeStream.toTable("t"),
    lambda stops: stops.join(stops.withColumnRenamed("name", "other"), on="stop").writeStream.toTable("t"),
]


@pytest.mark.parametrize("run", ALONE)
def test_a_table_alone_is_refused(stops: Any, run: Callable[[Any], Any]) -> None:
    with pytest.raises(PlanError, match="reads only tables, which Spark can do without Rove; join a stream"):
        run(stops)


def test_a_union_of_a_stream_and_a_table_is_refused(trains: Any, stops: Any) -> None:
    with pytest.raises(PlanError, match="Spark has no union of a stream and a table"):
        trains.select("stop").union(stops.select("stop"))


@pytest.mark.parametrize("how", sorted(set(JOINS.values())))
def test_joins_with_tables_are_refused_where_spark_refuses_them(spark: Any, trains: Any, stops: Any, how: str) -> None:
    from pyspark.errors import AnalysisException

    rate = spark.readStream.format("rate").load().selectExpr("CAST(value AS int) AS stop", "'S1' AS train")
    table = spark.createDataFrame([(1, "Jungfernstieg")], "stop int, name string")
    for name, (left, right), ours in (
        ("left", (rate, table), lambda: trains.join(stops, "stop", how)),
        ("right", (table, rate), lambda: stops.join(trains, "stop", how)),
    ):
        query, refused = left.join(right, "stop", how).writeStream.format("noop"), False
        try:
            query.start().stop()
        except AnalysisException:
            refused = True
        if refused:
            with pytest.raises(PlanError, match=f"a {how} join with the table on the .* never ends; use one of inner"):
                ours()
        else:
            assert ours().columns, name


def test_spark_opens_a_table_with_the_options_it_was_given(
    spark: Any, session: Any, trains: Any, tmp_path: Path
) -> None:
    (tmp_path / "stops.csv").write_text("stop;name\n1;Jungfernstieg\n2;Sternschanze\n")
    reader = session.read.format("csv").schema("stop int, name string").options(header=True, sep=";")
    stops = reader.load(str(tmp_path / "stops.csv"))
    frames = {"trains": spark.createDataFrame([("S1", 2, None)], "train string, stop int, ts timestamp")}
    found = compile_plan(trains.join(stops, "stop").select("train", "name").plan, frames)
    assert found.toArrow().to_pylist() == [{"train": "S1", "name": "Sternschanze"}]


def test_a_table_of_other_types_than_the_query_was_written_for_is_refused(spark: Any, trains: Any, stops: Any) -> None:
    spark.createDataFrame([(1, "Jungfernstieg")], "stop bigint, name string").createOrReplaceTempView("stops")
    frames = {"trains": spark.createDataFrame([], "train string, stop int, ts timestamp")}
    with pytest.raises(SchemaMismatch, match="`stop` of table `stops` is bigint, but the query was written for int"):
        compile_plan(trains.join(stops, "stop").plan, frames)


@pytest.mark.parametrize("rows", [b"", b"\xff\xff\xff\xff" + bytes(60), b"rows"])
def test_what_is_no_table_is_an_error_that_says_so(rows: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    found = TableRows(id="a", ready=True, rows=rows)
    session = rove.Session("tcp://127.0.0.1:1")
    monkeypatch.setattr(session, "ask", lambda verb, body, kind: found)
    with pytest.raises(rove.RoveError, match="is no table"):
        session.table("busy")
