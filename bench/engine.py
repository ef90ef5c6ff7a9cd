"""Compares the edge's engine with a bare loop of pyarrow kernels and with Spark, on one core, over the same rows.

Q0 to Q2 read Nexmark's one wide table of events, as its SQL form does: a bid is `event_type = 2` and a struct. W is a
keyed tumbling count and max, H a hopping sum, Q8 a join of two streams within a window. The bare loops are what a good
engineer would write by hand for just that query. They do not name batches, check schemas or take snapshots.

Rates are the best of several interleaved runs; ratios are taken within one run. Spark reads the same rows from its own
memory, which is no slower than Parquet, and must give as many rows as the engine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from rich.progress import Progress

import rove
from bench import bare
from bench.nexmark import NexmarkConfig, batches, generate
from bench.report import check
from rove.data.fragment.local import LocalPipeline
from rove.model.batch import named
from rove.model.ids import Origin
from rove.plan.optimizer import optimize

BATCH_ROWS = (100, 1_000, 8_192, 65_536)
ROWS_OF = {
    100: 30_000,
    1_000: 200_000,
    8_192: 1_000_000,
    65_536: 1_000_000,
}  # small batches need fewer rows to time
DELAY = "2 seconds"

Rows = dict[str, pa.Table]


class Sizes(NamedTuple):
    """How much is measured, and how often."""

    events: int
    repeats: int
    spark_repeats: int


SMOKE = Sizes(events=2_000, repeats=1, spark_repeats=1)
QUICK = Sizes(events=200_000, repeats=3, spark_repeats=2)
FULL = Sizes(events=1_000_000, repeats=7, spark_repeats=5)


@dataclass(frozen=True)
class Query:
    """One query three ways. `spark` is the same function of PySpark DataFrames."""

    name: str
    streams: tuple[str, ...]
    rove: Callable[..., Any]
    bare: Callable[..., int]
    limit: str


def bids(events: Any) -> Any:
    return events.where("event_type = 2").select("bid.*")


def q0(events: Any) -> Any:
    return bids(events).select("auction", "bidder", "price", "dateTime", "extra")


def q1(events: Any) -> Any:
    return bids(events).selectExpr("auction", "bidder", "0.908D * price AS price", "dateTime", "extra")


def q2(events: Any) -> Any:
    return bids(events).where("auction % 123 = 0").select("auction", "price")


def w(readings: Any) -> Any:
    functions = rove.functions_for(readings)
    grouped = readings.withWatermark("ts", DELAY).groupBy(functions.window("ts", "10 seconds"), "key")
    return grouped.agg(functions.count("*").alias("n"), functions.max("value").alias("top"))


def h(readings: Any) -> Any:
    functions = rove.functions_for(readings)
    grouped = readings.withWatermark("ts", DELAY).groupBy(functions.window("ts", "10 seconds", "1 second"))
    return grouped.agg(functions.sum("value").alias("total"))


def q8(person: Any, auction: Any) -> Any:
    functions = rove.functions_for(person)
    window = functions.window("dateTime", "10 seconds").alias("w")
    people = person.withWatermark("dateTime", DELAY).select(window, "id", "name")
    sellers = auction.withWatermark("dateTime", DELAY).select(window, functions.col("seller").alias("id"), "reserve")
    return people.join(sellers, on=["w", "id"]).select("id", "name", "reserve", "w.start")


QUERIES = (
    Query("q0", ("events",), q0, bare.q0, "copying the strings of the bids that the filter keeps"),
    Query("q1", ("events",), q1, bare.q1, "copying the strings of the bids that the filter keeps"),
    Query("q2", ("events",), q2, bare.q2, "two comparisons and a remainder; below 1,000 rows, kernel calls"),
    Query("w", ("readings",), w, bare.w, "Arrow's hash aggregation"),
    Query("h", ("readings",), h, bare.h, "Arrow's sums a pane; for small batches, kernel calls"),
    Query("q8", ("person", "auction"), q8, bare.q8, "Arrow's hash join, and taking the matched rows"),
)


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """All queries at all batch sizes; `data` is not needed, Nexmark is generated."""
    pa.set_cpu_count(1)
    rows = generate_rows(sizes.events)
    rates: dict[str, dict[int, dict[str, float]]] = {}
    with Progress(transient=True) as progress:
        task = progress.add_task("rove and bare kernels", total=len(QUERIES) * len(BATCH_ROWS))
        for query in QUERIES:
            rates[query.name] = {}
            for size in BATCH_ROWS:
                rates[query.name][size] = measure(
                    query, rows, size, sizes.repeats * (3 if size == 8_192 else 1)
                )  # the one with goals
                progress.advance(task)
        task = progress.add_task("Spark, local[1]", total=len(QUERIES))
        spark = spark_rates(rows, sizes.spark_repeats, lambda: progress.advance(task))
    return report(rates, spark)


def generate_rows(events: int) -> Rows:
    """Nexmark at 10,000 events a second of event time, and readings of 1,000 keys made from its bids."""
    config = NexmarkConfig(events=events, rate=10_000.0, disorder_ms=500, seed=1)
    nexmark = generate(config)
    bid = nexmark.bid
    key = pa.compute.remainder(bid["bidder"], 1_000)
    readings = pa.table({"key": key, "ts": bid["dateTime"], "value": bid["price"]})
    return {
        "events": nexmark.events.combine_chunks(),
        "readings": readings.combine_chunks(),
        "person": nexmark.person,
        "auction": nexmark.auction,
    }


def measure(query: Query, rows: Rows, size: int, repeats: int) -> dict[str, float]:
    """Rows a second, bare and with the engine, each the best of `repeats` runs that take turns."""
    feed = interleaved(query, rows, size)
    total = sum(batch.num_rows for _, batch in feed)
    best = {"bare": float("inf"), "rove": float("inf")}
    counts = set()
    for _ in range(repeats):
        engine = pipeline_of(query, rows)
        for way, runner in (("bare", query.bare), ("rove", lambda f, p=engine: run_engine(p, f))):
            gc.collect()
            began = time.perf_counter()
            counts.add(runner(feed))
            best[way] = min(best[way], time.perf_counter() - began)
    if len(counts) != 1:
        raise AssertionError(f"{query.name}: bare loop and engine gave different row counts {sorted(counts)}")
    return {way: total / seconds for way, seconds in best.items()}


def interleaved(query: Query, rows: Rows, size: int) -> list[tuple[str, pa.RecordBatch]]:
    """The input as (stream, batch), several streams in step with each other's event time."""
    per_stream = {n: batches(rows[n].slice(0, ROWS_OF[size]), size) for n in query.streams}
    order = sorted((i / len(b), n, i) for n, b in per_stream.items() for i in range(len(b)))
    return [(n, per_stream[n][i]) for _, n, i in order]


def pipeline_of(query: Query, rows: Rows) -> LocalPipeline:
    """The query, planned and compiled."""
    session = rove.Session.local()
    plan = query.rove(*(session.stream(n, schema=rows[n].schema) for n in query.streams)).plan
    return LocalPipeline({"out": optimize(plan)}, {n: [Origin(n, "device")] for n in query.streams})


def run_engine(pipeline: LocalPipeline, feed: list[tuple[str, pa.RecordBatch]]) -> int:
    """The engine as a worker runs it: named batches in, named batches out; the rows that came out."""
    out, numbers = 0, {stream: count() for stream, _ in feed}
    for stream, batch in feed:
        for emitted in pipeline.process(stream, named(Origin(stream, "device"), next(numbers[stream]), batch)):
            out += emitted.batch.rows
    return out + sum(emitted.batch.rows for emitted in pipeline.finish())


def spark_rates(rows: Rows, repeats: int, advance: Callable[[], None]) -> dict[str, float]:
    """Rows a second of Spark in batch over the same rows, held in Spark's memory; the best run after a warm-up."""
    from rove.cloud.session import spark_session

    spark = spark_session("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "4g"}, "rove-bench")
    needed = {**rows, "events": rows["events"].select(["event_type", "bid"])}  # what its optimizer would read of a file
    frames = {n: spark.createDataFrame(t).coalesce(1).cache() for n, t in needed.items()}
    for frame in frames.values():
        frame.write.format("noop").mode("overwrite").save()
    found = {}
    for query in QUERIES:
        frame = query.rove(*(frames[n] for n in query.streams))
        expected = run_engine(pipeline_of(query, rows), interleaved(query, rows, 8_192))
        if (counted := frame.count()) != expected:
            raise AssertionError(f"{query.name}: Spark gave {counted} rows, the engine {expected}")
        best = float("inf")
        for _ in range(repeats):
            began = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            best = min(best, time.perf_counter() - began)
        found[query.name] = sum(rows[n].num_rows for n in query.streams) / best
        advance()
    spark.stop()
    return found


def report(rates: dict[str, dict[int, dict[str, float]]], spark: dict[str, float]) -> dict[str, Any]:
    def against_bare(name: str, size: int) -> float:
        return rates[name][size]["rove"] / rates[name][size]["bare"]

    goals = {"q0": 0.8, "q1": 0.8, "q2": 0.8, "w": 0.6}
    checks = [check(f"{q.name}_vs_bare_8192", against_bare(q.name, 8_192), goals.get(q.name)) for q in QUERIES]
    checks.append(check("q2_vs_bare_100", against_bare("q2", 100), 0.33))
    checks.append(check("min_vs_spark", min(rates[q.name][8_192]["rove"] / spark[q.name] for q in QUERIES), 1.0))
    millions = {
        q.name: {
            **{f"{way} {size}": rates[q.name][size][way] / 1e6 for size in BATCH_ROWS for way in ("bare", "rove")},
            "Spark": spark[q.name] / 1e6,
        }
        for q in QUERIES
    }
    ratios = {q.name: {str(size): against_bare(q.name, size) for size in BATCH_ROWS} for q in QUERIES}
    batch_us = {q.name: {str(size): size / rates[q.name][size]["rove"] * 1e6 for size in BATCH_ROWS} for q in QUERIES}
    curves = {
        q.name: {way: {str(size): rates[q.name][size][way] for size in BATCH_ROWS} for way in ("bare", "rove")}
        for q in QUERIES
    }
    figures = {
        "million_rows_a_second": millions,
        "rove_against_bare_by_rows_a_batch": ratios,
        "microseconds_a_batch": batch_us,
        "what_limits": {q.name: q.limit for q in QUERIES},
        "curves": curves,
    }
    return {"bench": "engine", "checks": checks, "figures": figures, "paper": {}}
