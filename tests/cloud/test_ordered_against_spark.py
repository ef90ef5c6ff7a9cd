"""Scans and count windows, which only the edge runs, against what Spark's window functions say in batch."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.model.schema import parse_schema
from tests.portable.rows import assert_same_rows

SCHEMA = parse_schema("key string, ts timestamp, value double, amount bigint, cost decimal(8,2)")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Rows whose times are all different, so that their order is the same for everyone."""
    random = Random(3)
    rows = 600
    times = [1_700_000_000_000_000 + i * 100_000 for i in range(rows)]
    columns = [
        [random.choice(["a", "b", "c", None]) for _ in range(rows)],
        times,
        [random.choice([random.randrange(800) / 8, None, float("nan")]) for _ in range(rows)],
        [random.choice([random.randrange(-(2**40), 2**40), None]) for _ in range(rows)],
        [random.choice([pa.scalar("1.25").cast(pa.decimal128(8, 2)).as_py(), None]) for _ in range(rows)],
    ]
    arrays = [pa.array(c, f.type, from_pandas=False) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@pytest.fixture
def readings(table: pa.Table) -> Any:
    parts = {f"o{i}": table.take(pa.arange(i, table.num_rows, 2)).to_batches(max_chunksize=37) for i in range(2)}
    return rove.Session.local().stream("readings", SCHEMA, data=parts).withWatermark("ts", "5 seconds")


AGGREGATES = {
    "n": "count(*)",
    "seen": "count(value)",
    "total": "sum(amount)",
    "costs": "sum(cost)",
    "low": "min(value)",
    "high": "max(value)",
    "last": "max(key)",
    "mean": "avg(amount)",
    "spread": "stddev(amount)",
}


@pytest.mark.parametrize("by", ["key", ""], ids=["by key", "over all"])
def test_a_scan_is_sparks_running_aggregate(spark: Any, table: pa.Table, readings: Any, by: str) -> None:
    aggregates = [F.expr(text).alias(name) for name, text in AGGREGATES.items()]
    actual = readings.scan(*aggregates, by=by or ()).toArrow()
    over = f"OVER ({'PARTITION BY key' if by else ''} ORDER BY ts ROWS UNBOUNDED PRECEDING)"
    running = [f"{text} {over} AS {name}" for name, text in AGGREGATES.items()]
    assert_same_rows(actual, spark.createDataFrame(table).selectExpr("*", *running).toArrow(), "scan")


@pytest.mark.parametrize("by", ["key", ""], ids=["by key", "over all"])
def test_a_count_window_is_sparks_group_of_so_many_rows(spark: Any, table: pa.Table, readings: Any, by: str) -> None:
    size = 7
    aggregates = [F.expr(text).alias(name) for name, text in AGGREGATES.items()]
    actual = readings.countWindow(size, by=by or (), every="2 seconds").agg(*aggregates).toArrow()
    number = f"(row_number() OVER ({'PARTITION BY key' if by else ''} ORDER BY ts) - 1) div {size} AS number"
    keys = [by] if by else []
    expected = (
        spark.createDataFrame(table)
        .selectExpr("*", number)
        .groupBy("number", *keys)
        .agg(*(_spark(f"{text} AS {name}") for name, text in {"ts": "max(ts)", **AGGREGATES}.items()))
        .where(f"n = {size}")
        .select("ts", *keys, *AGGREGATES)
    )
    assert_same_rows(actual, expected.toArrow(), "count window")


def _spark(text: str) -> Any:
    from pyspark.sql import functions as spark_functions

    return spark_functions.expr(text)
