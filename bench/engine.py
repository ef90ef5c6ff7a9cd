"""Compares the edge's engine with a bare loop of pyarrow kernels, Polars and Spark, on one core, over the same rows.

Q0 to Q2 read Nexmark's one wide table of events, as its SQL form does: a bid is `event_type = 2` and a struct. W is a
keyed tumbling count and max, H a hopping sum, Q8 a join of two streams within a window. The bare loops are what a good
engineer would write by hand for just that query. They do not name batches, check schemas or take snapshots. Polars runs
each query in one batch over all rows, and its result must be the engine's.

Rates are rows a second of processor time, the best of several runs that take turns; so other processes on the machine
count for little. A ratio is of two such rates. Spark is a process of its own, so there both times are
by the clock. It reads the same rows from its own memory, which is no slower than Parquet, and must give as many rows.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from rich.progress import Progress

import rove
from bench import bare, polars_batch
from bench.nexmark import NexmarkConfig, batches, generate
from bench.report import check
from rove.data.fragment.local import Arrival, LocalPipeline
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
JUDGED = 8_192  # the rows a batch that goals are set for
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
    """One query four ways; `rove` takes PySpark DataFrames as well."""

    name: str
    streams: tuple[str, ...]
    rove: Callable[..., Any]
    bare: Callable[..., int]
    polars: Callable[..., Any]
    limit: str


class Measured(NamedTuple):
    """One query at one size of batches: rows a second of processor time by way, and what else was found."""

    rates: dict[str, float]
    by_the_clock: float  # the engine's rows a second of real time

    def against(self, way: str) -> float:
        """How fast the engine is, compared with another way."""
        return self.rates["rove"] / self.rates[way]


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
    Query("q0", ("events",), q0, bare.q0, polars_batch.q0, "copying the strings of the bids that the filter keeps"),
    Query("q1", ("events",), q1, bare.q1, polars_batch.q1, "copying the strings of the bids that the filter keeps"),
    Query(
        "q2",
        ("events",),
        q2,
        bare.q2,
        polars_batch.q2,
        "two comparisons and a remainder; in small batches, kernel calls",
    ),
    Query("w", ("readings",), w, bare.w, polars_batch.w, "Arrow's hash aggregation"),
    Query("h", ("readings",), h, bare.h, polars_batch.h, "Arrow's sums a pane; for small batches, kernel calls"),
    Query("q8", ("person", "auction"), q8, bare.q8, polars_batch.q8, "looking keys up, and taking the matched rows"),
)


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """All queries at all batch sizes; `data` is not needed, Nexmark is generated."""
    pa.set_cpu_count(1)
    rows = generate_rows(sizes.events)
    found: dict[str, dict[int, Measured]] = {}
    with Progress(transient=True) as progress:
        task = progress.add_task("rove, bare kernels, Polars", total=len(QUERIES) * len(BATCH_ROWS))
        for query in QUERIES:
            found[query.name] = {}
            for size in BATCH_ROWS:
                repeats = sizes.repeats * (3 if size == JUDGED else 1)
                found[query.name][size] = measure(query, rows, size, repeats)
                progress.advance(task)
        task = progress.add_task("Spark, local[1]", total=len(QUERIES))
        spark = spark_rates(rows, sizes.spark_repeats, lambda: progress.advance(task))
    return report(found, spark)


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


def measure(query: Query, rows: Rows, size: int, repeats: int) -> Measured:
    """Run each way `repeats` times, in turns. Polars knows no batches, so it runs at one size only."""
    feed = interleaved(query, rows, size)
    total = sum(batch.num_rows for _, batch in feed)
    ways: dict[str, Callable[[], int]] = {"bare": lambda: query.bare(feed)}
    if size == JUDGED:
        plan = query.polars(*(polars_batch.frame(rows[n]) for n in query.streams))
        polars_batch.require_equal(collected(pipeline_of(query, rows), feed), plan.collect())
        ways["polars"] = lambda: plan.collect().height
    seconds: dict[str, list[float]] = {way: [] for way in (*ways, "rove")}
    shortest, counts = float("inf"), set()
    for _ in range(repeats):
        engine = pipeline_of(query, rows)
        for way, runner in (*ways.items(), ("rove", lambda p=engine: run_engine(p, feed))):
            gc.collect()
            clock, began = time.perf_counter(), time.process_time()
            counts.add(runner())
            seconds[way].append(time.process_time() - began)
            if way == "rove":
                shortest = min(shortest, time.perf_counter() - clock)
    if len(counts) != 1:
        raise AssertionError(f"{query.name}: the ways gave different row counts {sorted(counts)}")
    rates = {way: total / min(times) for way, times in seconds.items()}
    return Measured(rates, total / shortest)


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
    return sum(emitted.batch.rows for emitted in arrivals(pipeline, feed))


def collected(pipeline: LocalPipeline, feed: list[tuple[str, pa.RecordBatch]]) -> pa.Table:
    """What comes out of the engine, as one table."""
    found = [emitted.batch.data for emitted in arrivals(pipeline, feed)]
    return pa.Table.from_batches([data for data in found if data is not None])


def arrivals(pipeline: LocalPipeline, feed: list[tuple[str, pa.RecordBatch]]) -> Iterator[Arrival]:
    numbers = {stream: count() for stream, _ in feed}
    for stream, batch in feed:
        origin = Origin(stream, "device")
        yield from pipeline.process(stream, named(origin, next(numbers[stream]), batch))
    yield from pipeline.finish()


def spark_rates(rows: Rows, repeats: int, advance: Callable[[], None]) -> dict[str, float]:
    """Rows a second of Spark in batch over the same rows, held in Spark's memory; the best run after a warm-up."""
    from rove.cloud.start.session import spark_session

    spark = spark_session("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "4g"}, "rove-bench")
    needed = {**rows, "events": rows["events"].select(["event_type", "bid"])}  # what its optimizer would read of a file
    frames = {n: spark.createDataFrame(t).coalesce(1).cache() for n, t in needed.items()}
    for frame in frames.values():
        frame.write.format("noop").mode("overwrite").save()
    found = {}
    for query in QUERIES:
        frame = query.rove(*(frames[n] for n in query.streams))
        expected = run_engine(pipeline_of(query, rows), interleaved(query, rows, JUDGED))
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


def report(found: dict[str, dict[int, Measured]], spark: dict[str, float]) -> dict[str, Any]:
    rates = {name: {size: each.rates for size, each in sizes.items()} for name, sizes in found.items()}
    judged = {name: sizes[JUDGED] for name, sizes in found.items()}
    vs_bare = {n: {str(s): each.against("bare") for s, each in sizes.items()} for n, sizes in found.items()}
    vs_spark = {name: each.by_the_clock / spark[name] for name, each in judged.items()}
    goals = {"q0": 0.8, "q1": 0.8, "q2": 0.8, "w": 0.6}
    checks = [check(f"{n}_vs_bare_{JUDGED}", vs_bare[n][str(JUDGED)], goals.get(n)) for n in found]
    checks.append(check("q2_vs_bare_100", vs_bare["q2"]["100"], 0.33))
    goals = {"q2": 0.6, "w": 0.6, "h": 0.4, "q8": 0.4}
    checks += [check(f"{n}_vs_polars", each.against("polars"), goals.get(n)) for n, each in judged.items()]
    checks.append(check("min_vs_spark", min(vs_spark.values()), 1.0))
    millions = {
        name: {
            **{f"{way} {size}": r[way] / 1e6 for size, r in sizes.items() for way in ("bare", "rove")},
            "Polars": sizes[JUDGED]["polars"] / 1e6,
            "Spark": spark[name] / 1e6,
        }
        for name, sizes in rates.items()
    }
    figures = {
        "million_rows_a_second": millions,
        "rove_against_bare_by_rows_a_batch": vs_bare,
        "rove_against_spark": vs_spark,
        "microseconds_a_batch": {
            name: {str(size): size / r["rove"] * 1e6 for size, r in sizes.items()} for name, sizes in rates.items()
        },
        "what_limits": {q.name: q.limit for q in QUERIES},
        "curves": {
            name: {way: {str(size): r[way] for size, r in sizes.items()} for way in ("bare", "rove")}
            for name, sizes in rates.items()
        },
    }
    return {"bench": "engine", "checks": checks, "figures": figures, "paper": {}}
