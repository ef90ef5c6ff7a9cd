"""What a plan receives, as Spark reads it from the log: the columns that the plan reads, and the same rows."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.cloud.compile import compile_plan
from rove.cloud.source import register
from rove.cloud.stream import LogAt, streams_of
from rove.model.batch import Header
from rove.model.ids import Origin
from rove.model.schema import parse_schema, schema_text
from rove.plan.operators import Operator, Source, Watermark
from rove.plan.optimizer import optimize
from rove.plan.rules.prune_columns import prune_columns
from rove.plan.spark.cuts import legal_cuts
from rove.runtime.disk.disk import open_partition
from tests.cloud.patient import patiently
from tests.portable.rows import assert_same_rows

SCHEMA = parse_schema(
    "key string, ts timestamp, a bigint, b bigint, c double, d string, e boolean, f struct<lat: double, lon: double>"
)
ROWS = 1_000
NUMBERS = count()


def readings() -> pa.Table:
    numbers = range(ROWS)
    columns = {
        "key": [f"k{n % 7}" for n in numbers],
        "ts": [n * 100_000 for n in numbers],
        "a": list(numbers),
        "b": [n % 13 for n in numbers],
        "c": [n / 2 for n in numbers],
        "d": [f"text {n}" for n in numbers],
        "e": [n % 2 == 0 for n in numbers],
        "f": [{"lat": n / 10, "lon": -n / 10} for n in numbers],
    }
    return pa.table({f.name: pa.array(columns[f.name], f.type) for f in SCHEMA}, SCHEMA)


@pytest.fixture
def stream() -> Stream:
    return rove.Session.local().stream("s", schema=schema_text(SCHEMA))


@pytest.fixture
def log(spark: Any, tmp_path: Path) -> LogAt:
    """All readings, whole, in the log of a query, and the promise that nothing follows for a minute."""
    register(spark)
    with open_partition(tmp_path / "log" / "q" / "edge0", SCHEMA) as writer:
        for seq, batch in enumerate(readings().to_batches(max_chunksize=100)):
            first, *_, last = batch.column("ts").cast(pa.int64()).to_pylist()
            named = {"origin": Origin("s", "x"), "seq": seq, "through": seq, "rows": batch.num_rows}
            header = Header(**named, watermark=first, event_min=first, event_max=last)
            writer.append(header, batch.serialize(), first)
        closed = last + 60_000_000
        writer.append(
            Header(origin=Origin("s", "x"), seq=seq + 1, through=seq + 1, rows=0, watermark=closed), None, closed
        )
        writer.commit()
    return LogAt(path=str(tmp_path), query="q")


def in_spark(stream: Stream) -> Operator:
    """What is left for Spark of a query of which nothing but watermarks is done before."""
    cuts = [cut for cut in legal_cuts(optimize(stream.plan)) if len(cut.lower) == 1]
    return next(cut.upper for cut in cuts if isinstance(cut.lower[0][1], Source | Watermark))


def streamed(spark: Any, plan: Operator, frames: Any, folder: Path) -> pa.Table:
    name = f"found_{next(NUMBERS)}"
    writer = compile_plan(plan, frames).writeStream.format("memory").queryName(name)
    query = writer.option("checkpointLocation", str(folder / name)).trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.table(name).toArrow()


@pytest.mark.parametrize(
    ("query", "read"),
    [
        (lambda s: s.where("a > 3").select("key", "a"), ["key", "a"]),
        (lambda s: s.where("e").select("d"), ["d", "e"]),
        (lambda s: s.select("key", "a").union(s.where("b > 3").select("d", "c")), ["key", "a", "b", "c", "d"]),
        (
            lambda s: s.withWatermark("ts", "1 second").groupBy("key", F.session_window("ts", "2 seconds")).count(),
            ["key", "ts"],
        ),
    ],
    ids=["a filter and a select", "a filter by what is not selected", "a union of two parts", "sessions"],
)
def test_only_the_columns_that_a_plan_reads_are_read_and_the_rows_are_the_same(
    spark: Any, stream: Stream, log: LogAt, tmp_path: Path, query: Any, read: list[str]
) -> None:
    plan = prune_columns(in_spark(query(stream)))
    frames = streams_of(spark, plan, log)
    assert sorted(frames["edge0"].columns) == sorted(read)
    expected = compile_plan(query(stream).plan, {"s": spark.createDataFrame(readings())}).toArrow()
    assert_same_rows(patiently(lambda: streamed(spark, plan, frames, tmp_path)), expected, "narrowed")
