"""What lies between the log and Spark: how fast rows come in, and what a micro-batch costs.

The same rows lie in a log and in Parquet files. Spark reads both as streams with `availableNow` into a sink that does
nothing, in turns, in one warm session. A rate is rows over the time of the trigger less what Spark takes to write its
checkpoint, which is the same for both; the best of several rounds counts, since the machine has other work, too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import Progress

from bench.report import check
from rove.model.batch import Header
from rove.model.schema import TIMESTAMP
from rove.runtime.disk import LogWriter, open_partition

ROWS, ROWS_QUICK = 6_000_000, 1_500_000
ENTRY_ROWS, ENTRY_ROWS_SMALL = 8_192, 1_000
PARQUET_FILES = 8
COMMIT_BYTES = 32 * 1024 * 1024
BEGIN_US = 1_700_000_000_000_000
GOAL = 0.8


@dataclass
class Bench:
    """One session, one folder, and what was found."""

    spark: Any
    folder: Path
    quick: bool
    checks: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 5


def run(quick: bool, data: Path | None) -> dict[str, Any]:
    """All parts, one after the other; `data` is not needed by the scan."""
    with tempfile.TemporaryDirectory() as folder, _session() as spark:
        bench = Bench(spark, Path(folder), quick)
        with Progress(transient=True) as progress:
            for part in progress.track(PARTS, description="Spark reads the log"):
                part(bench)
    return {"bench": "cloud", "checks": bench.checks, "figures": bench.figures, "paper": {}}


@contextmanager
def _session() -> Iterator[Any]:
    from rove.cloud.session import spark_session, streaming_settings
    from rove.cloud.source import register

    spark = spark_session("local[*]", {**streaming_settings(), "spark.driver.memory": "4g"}, "rove-bench")
    register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def scan(bench: Bench) -> None:
    """Rows a second from the log against those from Parquet, all columns of numbers and of texts."""
    rows = ROWS_QUICK if bench.quick else ROWS
    rates: dict[str, dict[str, float]] = {}
    for kind, table, name in (
        ("numbers", numbers(rows), "source_vs_parquet"),
        ("texts", texts(rows), "source_vs_parquet_strings"),
    ):
        small = kind == "numbers" or not bench.quick
        ways = {"log": _log(bench, table, kind, ENTRY_ROWS), "parquet": _parquet(bench, table, kind)}
        if small:
            ways["log, entries of 1,000 rows"] = _log(bench, table, kind, ENTRY_ROWS_SMALL)
        found = rates[kind] = _rates(bench, ways, rows)
        bench.checks.append(check(name, found["log"] / found["parquet"], GOAL))
    bench.figures["scan_million_rows_a_second"] = rates


def aggregate(bench: Bench) -> None:
    """The same under a count and a sum for each key. Parquet finds out by itself which columns that takes."""
    rows = ROWS_QUICK if bench.quick else ROWS

    def grouped(frame: Any) -> Any:
        return frame.groupBy("key").agg({"*": "count", "a": "sum"})

    log = _options(bench, "numbers", ENTRY_ROWS)
    ways = {
        "log": lambda: grouped(bench.spark.readStream.format("rove").options(**log, columns="key,a").load()),
        "parquet": lambda: grouped(_parquet_stream(bench, "numbers")),
    }
    bench.figures["aggregate_million_rows_a_second"] = _rates(bench, ways, rows, "update")


def one_row(bench: Bench) -> None:
    """What a micro-batch costs in which there is next to nothing."""
    batches = 15 if bench.quick else 60
    query_folder = bench.folder / "log" / "drops" / "out"
    with open_partition(query_folder, numbers(1).schema) as writer:
        _append(writer, numbers(1), 0)
        frame = bench.spark.readStream.format("rove").options(path=str(bench.folder), query="drops").load()
        query = frame.writeStream.format("noop").option("checkpointLocation", str(bench.folder / "drops")).start()
        for seq in range(1, batches):
            query.processAllAvailable()
            _append(writer, numbers(1), seq)
        query.processAllAvailable()
        progress = [p["durationMs"] for p in query.recentProgress if p["numInputRows"]]
        query.stop()
    warm = progress[len(progress) // 3 :]
    parts = ("triggerExecution", "latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets")
    bench.figures["batch_of_one_row_ms"] = {part: float(median(p.get(part, 0) for p in warm)) for part in parts}


PARTS: tuple[Callable[[Bench], None], ...] = (scan, aggregate, one_row)


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
    """Half of that, and four texts: a few states, hundreds of places, thousands of devices, and names all different."""
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


def _rates(bench: Bench, ways: dict[str, Callable[[], Any]], rows: int, mode: str = "append") -> dict[str, float]:
    """Million rows a second of each way, the best of several rounds after one that warms up."""
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(bench.rounds + 1):
        for way, frame in ways.items():
            seconds = _seconds(frame().writeStream.outputMode(mode), rows)
            best[way] = min(best[way], seconds) if turn else best[way]
    return {way: rows / seconds / 1e6 for way, seconds in best.items()}


def _seconds(writer: Any, rows: int) -> float:
    """How long Spark takes for all there is, its own checkpoint left out."""
    with tempfile.TemporaryDirectory() as checkpoint:
        options = {"checkpointLocation": checkpoint}
        query = writer.format("noop").options(**options).trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]]
    if (read := sum(p["numInputRows"] for p in progress)) != rows:
        raise AssertionError(f"Spark read {read} rows of {rows}")
    spent = [p["durationMs"] for p in progress]
    return float(sum(d["triggerExecution"] - d["walCommit"] - d["commitOffsets"] for d in spent)) / 1_000


def _options(bench: Bench, kind: str, size: int) -> dict[str, str]:
    return {"path": str(bench.folder), "query": f"{kind}-{size}"}


def _log(bench: Bench, table: pa.Table, kind: str, size: int) -> Callable[[], Any]:
    options = _options(bench, kind, size)
    with open_partition(bench.folder / "log" / options["query"] / "out", table.schema) as writer:
        for seq, batch in enumerate(table.combine_chunks().to_batches(max_chunksize=size)):
            _append(writer, batch, seq, commit=writer.partition.pending_bytes > COMMIT_BYTES)
        writer.commit()
    return lambda: bench.spark.readStream.format("rove").options(**options).load()


def _append(writer: LogWriter, rows: pa.Table | pa.RecordBatch, seq: int, commit: bool = True) -> None:
    batch = rows if isinstance(rows, pa.RecordBatch) else rows.to_batches()[0]
    writer.append(Header(origin="bench", seq=seq, through=seq, rows=batch.num_rows), batch.serialize())
    if commit:
        writer.commit(time.time_ns() // 1_000)


def _parquet(bench: Bench, table: pa.Table, kind: str) -> Callable[[], Any]:
    folder = bench.folder / f"{kind}.parquet"
    folder.mkdir()
    size = -(-table.num_rows // PARQUET_FILES)
    for number in range(PARQUET_FILES):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet")
    return lambda: _parquet_stream(bench, kind)


def _parquet_stream(bench: Bench, kind: str) -> Any:
    folder = str(bench.folder / f"{kind}.parquet")
    return bench.spark.readStream.schema(bench.spark.read.parquet(folder).schema).parquet(folder)
