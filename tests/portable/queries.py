"""All portable queries, and small tables to run them on.

A query is a function from DataFrames, chosen by parameter name from `tables()`, to a DataFrame. It must give
the same rows in batch Spark, in streaming Spark, and in Rove at any placement.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import rove
from bench.nexmark import TIMESTAMP, NexmarkConfig, generate
from rove.plan.operators import Operator
from tests.portable.nexmark_queries import NEXMARK_QUERIES, NOT_EXPRESSIBLE
from tests.portable.sensor_queries import SENSOR_QUERIES
from tests.portable.window_queries import WINDOW_QUERIES

__all__ = ["NOT_EXPRESSIBLE", "QUERIES", "STATIC", "frames_of", "inputs", "plan_of", "readings", "tables"]

QUERIES: tuple[Callable[..., Any], ...] = (*NEXMARK_QUERIES, *SENSOR_QUERIES, *WINDOW_QUERIES)
# Tables that are whole before a query starts, also when the others are streams.
STATIC = ("side_input",)

READINGS = 1500
SENSORS = ["dock-1", "Dock-2", " gate-3 ", "pläne-4", "roof-5", "roof-6", "", None]
TAGS = ["red", "green", "blue", "", None]
# A leap year's 28th of February, one minute before midnight.
READINGS_START_US, READINGS_SPAN_US, READINGS_DISORDER_US = 1_709_164_740_000_000, 200_000_000, 3_000_000
READINGS_SCHEMA = pa.schema(
    [
        ("sensor", pa.string()),
        ("ts", TIMESTAMP),
        ("value", pa.float64()),
        ("level", pa.int32()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
        ("ok", pa.bool_()),
        ("amount", pa.decimal128(10, 2)),
        ("day", pa.date32()),
    ]
)
# Q14's dayTime ends three minutes in; auctions last 333 seconds at most, a person comes every five seconds.
NEXMARK = NexmarkConfig(
    events=4000,
    rate=10.0,
    seed=7,
    disorder_ms=3000,
    start_us=1_436_918_400_000_000 + (18 * 60 + 57) * 60_000_000,
    person_extra_bytes=10,
    auction_extra_bytes=10,
    bid_extra_bytes=20,
)


def inputs(query: Callable[..., Any]) -> tuple[str, ...]:
    """The tables that a query takes, in the order of its parameters."""
    return tuple(inspect.signature(query).parameters)


def plan_of(query: Callable[..., Any]) -> Operator:
    """The plan of a query over streams, and over tables that Spark knows by name."""
    session = rove.Session.local()
    given = {n: tables()[n].schema for n in inputs(query)}
    plan: Operator = query(
        *(session.read.schema(s).table(n) if n in STATIC else session.stream(n, schema=s) for n, s in given.items())
    ).plan
    return plan


def frames_of(spark: Any, query: Callable[..., Any]) -> dict[str, Any]:
    """The tables of a query as DataFrames; those that it reads by name get it."""
    frames = {n: spark.createDataFrame(tables()[n]) for n in inputs(query)}
    for name in STATIC:
        if name in frames:
            frames[name].createOrReplaceTempView(name)
    return frames


@cache
def tables() -> dict[str, pa.Table]:
    """The rows that every query is run on."""
    nexmark = generate(NEXMARK)
    keys = np.arange(0, 100, 2)
    side_input = pa.table({"key": pa.array(keys), "value": [f"value of {key}" for key in keys]})
    return {
        "person": nexmark.person,
        "auction": nexmark.auction,
        "bid": nexmark.bid,
        "side_input": side_input,
        "readings": readings(READINGS, seed=7),
    }


def readings(rows: int, seed: int) -> pa.Table:
    """Sensor readings in order of arrival: up to three seconds late, nulls in all but `ts`, some NaN.

    >>> readings(3, seed=1).schema == READINGS_SCHEMA
    True
    """
    random = np.random.default_rng([seed, 5])

    def null(share: float = 0.06) -> np.ndarray:
        return random.random(rows) < share

    times = np.sort(random.integers(0, READINGS_SPAN_US, rows))
    times = times[np.argsort(times + random.integers(0, READINGS_DISORDER_US, rows), kind="stable")]
    value = random.integers(1, 8000, rows) / 8
    value[random.random(rows) < 0.02] = np.nan
    cents = pa.array(random.integers(-500_000, 5_000_000, rows), mask=null())
    hundredth = pa.scalar("0.01").cast(pa.decimal128(3, 2))
    where = [pa.array(random.normal(middle, 0.5, rows)) for middle in (53.5, 10.0)]
    columns = [
        pa.array(SENSORS).take(pa.array(random.integers(0, len(SENSORS), rows))),
        pa.array(READINGS_START_US + times).cast(TIMESTAMP),
        pa.array(value, mask=null(), from_pandas=False),
        pa.array(random.integers(0, 10, rows).astype(np.int32), mask=null()),
        _tags(random, rows, null()),
        pa.StructArray.from_arrays(where, ["lat", "lon"], mask=pa.array(null())),
        pa.array(random.random(rows) < 0.7, mask=null()),
        pc.multiply(cents.cast(pa.decimal128(19, 0)), hundredth).cast(pa.decimal128(10, 2)),
        pa.array((19_770 + random.integers(0, 20, rows)).astype(np.int32), mask=null()).cast(pa.date32()),
    ]
    return pa.table(columns, schema=READINGS_SCHEMA)


def _tags(random: np.random.Generator, rows: int, null: np.ndarray) -> pa.Array:
    lengths = np.where(null, 0, random.integers(0, 4, rows))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = pa.array(TAGS).take(pa.array(random.integers(0, len(TAGS), offsets[-1])))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(null))
