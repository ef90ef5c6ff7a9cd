"""Measures Spark's source of our log: rows a second, latency, the cost of a micro-batch, and how much less Spark reads
when the edge has computed partial results.

The same rows are written to a log and to Parquet files. Spark reads both as streams into a sink that does nothing, in
one session and in turns: a micro-batch of one, then a micro-batch of the other. A rate is rows over the time of a
trigger without the time Spark takes to write its checkpoint, which is the same for both. The first turns warm up. Then
each turn gives a ratio, and the median counts, because the machine has other work too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema
from rich.progress import Progress

import rove
from bench import cabs
from bench.report import check
from rove import functions as F
from rove.cloud.compile import compile_plan
from rove.data.fragment.local import run as run_edge
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.ids import Origin
from rove.model.schema import TIMESTAMP
from rove.plan.operators import Aggregate, Operator, Source
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import Cut, legal_cuts
from rove.runtime.disk.disk import LogWriter, open_partition

TURNS_WARM = 1
POLL_MS = 100  # how often the query that is not in turn looks for rows
ENTRY_ROWS, ENTRY_ROWS_SMALL = 8_192, 1_000
FILES_PER_BATCH = 4
BEGIN_US = 1_700_000_000_000_000
ROWS_PER_S = 1_000
PATIENCE_S = 120.0  # how long to wait for micro-batches
CAB_BATCH_ROWS = 60  # one hour of a taxi
RAW, PARTIAL = "raw-rows", "partial-results"  # names of queries as well
GOAL, LATENCY_GOAL, SAVED_GOAL = 0.8, 1.2, 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How much is measured, and how often."""

    batch_rows: int  # rows of a micro-batch
    turns: int
    turns_min: int  # the least number of turns
    turns_s: float  # no further turn begins after this time
    small_entries: bool  # also measure entries of 1,000 rows
    aggregates: bool  # also measure aggregates
    batches_of_one: int
    batches_late: int  # micro-batches whose latency is measured
    taxi_rows: int
    java_options: str = ""


SMOKE = Sizes(
    batch_rows=5_000,
    turns=1,
    turns_min=1,
    turns_s=0.0,
    small_entries=False,
    aggregates=True,
    batches_of_one=3,
    batches_late=2,
    taxi_rows=5_000,
    java_options="-XX:TieredStopAtLevel=1",  # the compiler that starts fastest
)
QUICK = Sizes(
    batch_rows=400_000,
    turns=15,
    turns_min=3,
    turns_s=6.0,
    small_entries=False,
    aggregates=False,
    batches_of_one=6,
    batches_late=6,
    taxi_rows=100_000,
)
FULL = Sizes(
    batch_rows=1_000_000,
    turns=15,
    turns_min=15,
    turns_s=0.0,
    small_entries=True,
    aggregates=True,
    batches_of_one=60,
    batches_late=80,
    taxi_rows=2_000_000,
)


@dataclass
class Bench:
    """One session, one folder, and the results so far."""

    spark: Any
    folder: Path
    sizes: Sizes
    data: Path | None
    checks: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """Run all parts, one after the other. `data` is the folder with taxi traces."""
    with tempfile.TemporaryDirectory() as folder, _session(sizes) as spark:
        bench = Bench(spark, Path(folder), sizes, data)
        with Progress(transient=True) as progress:
            for part in progress.track(PARTS, description="Spark reads the log"):
                part(bench)
    return {"bench": "cloud", "checks": bench.checks, "figures": bench.figures, "paper": {}}


@contextmanager
def _session(sizes: Sizes) -> Iterator[Any]:
    from rove.cloud.source import register
    from rove.cloud.start.session import spark_session, streaming_settings

    settings = {**streaming_settings(), "spark.driver.memory": "4g"}
    if sizes.java_options:
        settings["spark.driver.extraJavaOptions"] = sizes.java_options
    spark = spark_session("local[*]", settings, "rove-bench", record=True)
    register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def scan(bench: Bench) -> None:
    """Rows a second from the log against those from Parquet, all columns of numbers and of texts."""
    rates: dict[str, dict[str, float]] = {}
    for kind, made, name in (
        ("numbers", numbers, "source_vs_parquet"),
        ("texts", texts, "source_vs_parquet_strings"),
    ):
        rows = made(bench.sizes.batch_rows)
        ways = {"log": Log(bench, kind, rows, ENTRY_ROWS), "parquet": Parquet(bench, kind, rows)}
        if bench.sizes.small_entries:
            ways["log, entries of 1,000 rows"] = Log(bench, kind, rows, ENTRY_ROWS_SMALL)
        found = in_turns(bench, ways)
        ratios = [ours / theirs for ours, theirs in zip(found["log"], found["parquet"], strict=True)]
        bench.checks.append(check(name, median(ratios), GOAL))
        rates[kind] = {way: median(each) for way, each in found.items()}
        rates[kind] |= {"least ratio": min(ratios), "greatest ratio": max(ratios)}
    bench.figures["scan_million_rows_a_second"] = rates


def aggregate(bench: Bench) -> None:
    """The same with a count and a sum for each key. For Parquet, Spark itself prunes the columns that are not
    needed."""
    if not bench.sizes.aggregates:
        return
    rows = numbers(bench.sizes.batch_rows)
    ways = {
        "log": Log(bench, "grouped", rows, ENTRY_ROWS, columns="key,a"),
        "parquet": Parquet(bench, "grouped", rows),
    }
    found = in_turns(bench, ways, _grouped, "update")
    bench.figures["aggregate_million_rows_a_second"] = {way: median(each) for way, each in found.items()}


def _grouped(frame: Any) -> Any:
    return frame.groupBy("key").agg({"*": "count", "a": "sum"})


def one_row(bench: Bench) -> None:
    """The cost of a micro-batch with almost no rows."""
    batches = bench.sizes.batches_of_one
    row = numbers(1).to_batches()[0]
    with open_partition(bench.folder / "log" / "drops" / "out", row.schema) as writer:
        _append(writer, row, 0)
        frame = bench.spark.readStream.format("rove").options(path=str(bench.folder), query="drops").load()
        query = frame.writeStream.format("noop").option("checkpointLocation", str(bench.folder / "drops")).start()
        for seq in range(1, batches):
            query.processAllAvailable()
            _append(writer, row, seq)
        query.processAllAvailable()
        progress = [p["durationMs"] for p in query.recentProgress if p["numInputRows"]]
        query.stop()
    warm = progress[len(progress) // 3 :]
    parts = ("triggerExecution", "latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets")
    bench.figures["batch_of_one_row_ms"] = {part: float(median(p.get(part, 0) for p in warm)) for part in parts}


@dataclass(frozen=True)
class Taken:
    """A micro-batch's latency from the making of rows to their result: the mean, and that of the newest row."""

    rows: int
    mean_ms: float
    newest_ms: float


def latency(bench: Bench) -> None:
    """The latency from the making of a row to its result, at 1,000 rows a second, compared with Spark's own rate source
    at the same time and with the same settings. The rate source emits rows by whole seconds, so its newest rows show
    the time of a trigger alone."""
    batches = bench.sizes.batches_late
    rates = bench.spark.readStream.format("rate").option("rowsPerSecond", ROWS_PER_S).load()
    with _ticking(bench) as ticks:
        begun = {
            way: Taking(bench, frame, way)
            for way, frame in (("rove", ticks), ("rate", rates.selectExpr("timestamp AS ts")))
        }
        found = {"rove": begun["rove"].warm(batches), "rate": begun["rate"].warm(batches // 2)}
        for taking in begun.values():
            taking.query.stop()
    middles = {way: _middle([(t.mean_ms, t.rows) for t in taken]) for way, taken in found.items()}
    bench.figures["row_to_result_ms"] = middles
    bench.figures["newest_row_to_result_ms"] = {way: median(t.newest_ms for t in taken) for way, taken in found.items()}
    bench.checks.append(check("latency_vs_rate", middles["rove"] / middles["rate"], LATENCY_GOAL, at_least=False))


def _middle(weighed: list[tuple[float, int]]) -> float:
    """The median of values, weighted by their rows."""
    half, seen = sum(rows for _, rows in weighed) / 2, 0
    for value, rows in sorted(weighed):
        seen += rows
        if seen >= half:
            return value
    raise AssertionError("nothing was measured")


@contextmanager
def _ticking(bench: Bench) -> Iterator[Any]:
    """The log of a gateway that appends and syncs every tenth of a second, as devices bring rows."""
    schema = pa.schema([("ts", TIMESTAMP)])
    ended = threading.Event()

    def produce(writer: LogWriter) -> None:
        seq = 0
        while not ended.wait(0.1):
            now = time.time_ns() // 1_000
            moments = pa.array(now - np.arange(ROWS_PER_S // 10)[::-1] * 1_000).cast(TIMESTAMP)
            _append(writer, pa.RecordBatch.from_arrays([moments], schema=schema), seq)
            seq += 1

    with open_partition(bench.folder / "log" / "ticks" / "out", schema) as writer:
        thread = threading.Thread(target=produce, args=(writer,))
        thread.start()
        try:
            yield bench.spark.readStream.format("rove").options(path=str(bench.folder), query="ticks").load()
        finally:
            ended.set()
            thread.join()


class Taking:
    """A query that notes how late the rows of each micro-batch are."""

    def __init__(self, bench: Bench, frame: Any, name: str) -> None:
        self._found: list[Taken] = []
        self._grew = threading.Condition()
        writer = frame.writeStream.foreachBatch(self._take)
        self.query = writer.option("checkpointLocation", str(bench.folder / f"{name}-at")).start()

    def _take(self, rows: Any, batch: int) -> None:
        count, mean, newest = rows.selectExpr("count(*)", "avg(unix_micros(ts))", "max(unix_micros(ts))").collect()[0]
        now = time.time_ns() / 1e3
        with self._grew:
            if count:
                self._found.append(Taken(count, (now - mean) / 1e3, (now - newest) / 1e3))
            self._grew.notify()

    def warm(self, batches: int) -> list[Taken]:
        """Wait for that many micro-batches. Returns the second half of them."""
        with self._grew:
            if not self._grew.wait_for(lambda: len(self._found) >= batches, PATIENCE_S):
                raise AssertionError(f"{len(self._found)} of {batches} micro-batches: {self.query.exception()}")
            return self._found[len(self._found) // 2 :]


def savings(bench: Bench) -> None:
    """How full each taxi was, hour by hour: all rows in Spark, and partial results of the edge merged there."""
    table, real = cabs.points(bench.sizes.taxi_rows, bench.data)
    sent = {"cabs": cabs.by_cab(table, CAB_BATCH_ROWS)}
    found: dict[str, Any] = {"real": real}
    answers = []
    for way, cut in _ways(by_the_hour()).items():
        begun = time.process_time()
        rows = run_edge(dict(cut.lower), sent)["edge0"].rows
        edge_s = time.process_time() - begun
        size = _keep(bench, way, rows)
        frame = bench.spark.read.format("rove").options(path=str(bench.folder), query=way).load()
        before = _cpu_s()
        answers.append(sorted(map(repr, compile_plan(cut.upper, {"edge0": frame}).toArrow().to_pylist())))
        found[way] = {"rows": rows.num_rows, "bytes": size, "edge_cpu_s": edge_s, "spark_cpu_s": _cpu_s() - before}
    if answers[0] != answers[1]:
        raise AssertionError("both ways must give the same answer")
    bench.figures["taxis"] = found
    bench.checks.append(check("bytes_into_spark_saved", found[RAW]["bytes"] / found[PARTIAL]["bytes"], SAVED_GOAL))


def by_the_hour() -> Operator:
    """Rows and occupied rows of each taxi, every hour."""
    stream = rove.Session.local().stream("cabs", schema=cabs.COLUMNS).withWatermark("ts", "5 minutes")
    counted = stream.groupBy(F.window("ts", "1 hour"), "cab")
    return optimize(counted.agg(F.count("*").alias("rows"), F.sum("occupied").alias("occupied")).plan)


def _ways(plan: Operator) -> dict[str, Cut]:
    """The plan cut right behind its source, and between the two halves of its aggregate."""
    found = {}
    for cut in legal_cuts(plan):
        ((_, lower),) = cut.lower
        if isinstance(lower, Source):
            found[RAW] = cut
        elif isinstance(lower, Aggregate) and lower.mode == "partial":
            found[PARTIAL] = cut
    return dict(sorted(found.items(), reverse=True))


def _keep(bench: Bench, query: str, rows: pa.Table) -> int:
    """Write rows into a log. Returns their bytes."""
    total = 0
    with open_partition(bench.folder / "log" / query / "out", rows.schema) as writer:
        for seq, batch in enumerate(rows.combine_chunks().to_batches(max_chunksize=ENTRY_ROWS)):
            total += batch.serialize().size
            _append(writer, batch, seq)
    return total


def _cpu_s() -> float:
    """CPU seconds of this process and all below it: Spark's Java, and its Python workers."""
    own = psutil.Process()
    times = [p.cpu_times() for p in (own, *own.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


PARTS: tuple[Callable[[Bench], None], ...] = (scan, aggregate, one_row, latency, savings)


def numbers(rows: int) -> pa.Table:
    """Readings: eight columns of numbers and times."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "key": random.integers(0, 1_000, rows),
            "ts": pa.array(BEGIN_US + np.arange(rows) * 100).cast(TIMESTAMP),
            "a": random.random(rows),
            "b": random.random(rows) * 100,
            "c": random.integers(0, 2**40, rows),
            "d": random.integers(0, 100, rows).astype(np.int32),
            "e": random.random(rows).astype(np.float32),
            "f": random.integers(0, 5, rows),
        }
    )


def texts(rows: int) -> pa.Table:
    """Half of these columns, and four texts: a few states, hundreds of places, thousands of devices, and unique
    names."""
    random = np.random.default_rng(2)
    states = ["ok", "warning", "error", "unknown", "maintenance"]
    places = [f"place-{n:03d}-{'x' * (n % 9)}" for n in range(200)]
    devices = [f"device-{n:06d}" for n in range(5_000)]
    table = numbers(rows).select(["key", "ts", "a", "c"])
    for name, among in (("state", states), ("place", places), ("device", devices)):
        chosen = pa.array(random.integers(0, len(among), rows))
        table = table.append_column(name, pa.array(among).take(chosen))
    digits = pa.py_buffer(random.bytes(8 * rows).hex().encode())
    traces = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, digits])
    return table.append_column("trace", traces.cast(pa.binary()).cast(pa.string()))


class Log:
    """Rows in a log. Every feed appends the same rows again."""

    def __init__(self, bench: Bench, kind: str, rows: pa.Table, size: int, **options: str) -> None:
        self._spark, self._options = bench.spark, {"path": str(bench.folder), "query": f"{kind}-{size}", **options}
        batches = rows.combine_chunks().to_batches(max_chunksize=size)
        self._entries = [(batch.num_rows, batch.serialize()) for batch in batches]
        settings = LogSettings(pending_bytes=2 * sum(payload.size for _, payload in self._entries))  # one commit a feed
        self._writer = open_partition(bench.folder / "log" / f"{kind}-{size}" / "out", rows.schema, settings)
        self._seq = 0

    def feed(self) -> None:
        for rows, payload in self._entries:
            self._writer.append(Header(origin=Origin("bench"), seq=self._seq, through=self._seq, rows=rows), payload)
            self._seq += 1
        self._writer.commit()

    def frame(self) -> Any:
        return self._spark.readStream.format("rove").options(**self._options).load()

    def close(self) -> None:
        self._writer.close()


class Parquet:
    """The same rows in Parquet files. Every feed makes a folder of files."""

    def __init__(self, bench: Bench, kind: str, rows: pa.Table) -> None:
        self._spark, self._folder, self._fed = bench.spark, bench.folder / f"{kind}.parquet", 0
        self._made = bench.folder / f"{kind}.made"
        self._made.mkdir()
        size = -(-rows.num_rows // FILES_PER_BATCH)
        for number in range(FILES_PER_BATCH):
            pq.write_table(rows.slice(number * size, size), self._made / f"{number}.parquet")
        self._folder.mkdir()
        self._schema = from_arrow_schema(rows.schema)

    def feed(self) -> None:
        shutil.rmtree(
            self._folder / str(self._fed), ignore_errors=True
        )  # files that were read need not be listed again
        whole = self._made.with_suffix(".next")  # all files come at once
        shutil.copytree(self._made, whole, copy_function=os.link)
        self._fed += 1
        whole.rename(self._folder / str(self._fed))

    def frame(self) -> Any:
        return self._spark.readStream.schema(self._schema).parquet(f"{self._folder}/*")

    def close(self) -> None:
        shutil.rmtree(self._folder)


def in_turns(
    bench: Bench, ways: dict[str, Log | Parquet], over: Callable[[Any], Any] = lambda frame: frame, mode: str = "append"
) -> dict[str, list[float]]:
    """Million rows a second of each way in each turn, without the first turns."""
    begun = time.monotonic()
    delay = bench.spark.conf.get("spark.sql.streaming.pollingDelay")
    bench.spark.conf.set("spark.sql.streaming.pollingDelay", f"{POLL_MS}ms")
    queries = {}
    for way, made in ways.items():
        writer = over(made.frame()).writeStream.outputMode(mode).format("noop")
        queries[way] = writer.option("checkpointLocation", str(bench.folder / f"at-{uuid4()}")).start()
    for made in ways.values():
        made.feed()
    for query in queries.values():  # the first time, Spark loads and compiles: both at once
        query.processAllAvailable()
    for turn in range(TURNS_WARM + bench.sizes.turns):
        if turn >= TURNS_WARM + bench.sizes.turns_min and time.monotonic() - begun > bench.sizes.turns_s:
            break
        for way, made in ways.items():
            made.feed()
            queries[way].processAllAvailable()
    bench.spark.conf.set("spark.sql.streaming.pollingDelay", delay)
    found = {}
    for way, query in queries.items():
        found[way] = [_rate(p, bench.sizes.batch_rows) for p in query.recentProgress if p["numInputRows"]][
            1 + TURNS_WARM :
        ]
        query.stop()
        ways[way].close()
    return found


def _rate(progress: Any, rows: int) -> float:
    """Million rows a second in a micro-batch, without the time of Spark's checkpoint."""
    if progress["numInputRows"] != rows:
        raise AssertionError(f"Spark read {progress['numInputRows']} rows of {rows} at once")
    spent = progress["durationMs"]
    return float(rows / (spent["triggerExecution"] - spent["walCommit"] - spent["commitOffsets"]) / 1_000)


def _append(writer: LogWriter, rows: pa.RecordBatch, seq: int) -> None:
    writer.append(Header(origin=Origin("bench"), seq=seq, through=seq, rows=rows.num_rows), rows.serialize())
    writer.commit()
