"""What lies between the log and Spark: how fast rows come in, and what a micro-batch costs.

The same rows lie in a log and in Parquet files. Spark reads both as streams with `availableNow` into a sink that does
nothing, in turns, in one warm session, in micro-batches of the same size. A rate is rows over the time of a trigger
less what Spark takes to write its checkpoint, which is the same for both; the best micro-batch of several rounds
counts, since the machine has other work, too.
"""

from __future__ import annotations

import tempfile
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

BATCH_ROWS, BATCH_ROWS_QUICK = 1_000_000, 400_000
BATCHES, BATCHES_QUICK = 6, 3  # a query
ROUNDS, ROUNDS_QUICK = 4, 2
ENTRY_ROWS, ENTRY_ROWS_SMALL = 8_192, 1_000
FILES_PER_BATCH = 4
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
    def batch_rows(self) -> int:
        return BATCH_ROWS_QUICK if self.quick else BATCH_ROWS

    @property
    def rounds(self) -> int:
        return ROUNDS_QUICK if self.quick else ROUNDS

    @property
    def rows(self) -> int:
        return self.batch_rows * (BATCHES_QUICK if self.quick else BATCHES)


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
    rates: dict[str, dict[str, float]] = {}
    for kind, made, name in (
        ("numbers", numbers, "source_vs_parquet"),
        ("texts", texts, "source_vs_parquet_strings"),
    ):
        table = made(bench.rows)
        ways = {"log": _log(bench, table, kind, ENTRY_ROWS), "parquet": _parquet(bench, table, kind)}
        # The first kind warms Spark up for both.
        rates[kind] = _rates(bench, ways, rounds=bench.rounds + (kind == "numbers"))
        bench.checks.append(check(name, rates[kind]["log"] / rates[kind]["parquet"], GOAL))
        if not bench.quick:
            small = {"log, entries of 1,000 rows": _log(bench, table, kind, ENTRY_ROWS_SMALL)}
            rates[kind] |= _rates(bench, small, rounds=1)
    bench.figures["scan_million_rows_a_second"] = rates


def aggregate(bench: Bench) -> None:
    """The same under a count and a sum for each key. Parquet finds out by itself which columns that takes."""
    if bench.quick:
        return
    ways = {
        "log": lambda: _grouped(_log_stream(bench, "numbers", ENTRY_ROWS, columns="key,a")),
        "parquet": lambda: _grouped(_parquet_stream(bench, "numbers")),
    }
    bench.figures["aggregate_million_rows_a_second"] = _rates(bench, ways, "update")


def _grouped(frame: Any) -> Any:
    return frame.groupBy("key").agg({"*": "count", "a": "sum"})


def one_row(bench: Bench) -> None:
    """What a micro-batch costs in which there is next to nothing."""
    batches = 8 if bench.quick else 60
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


def _rates(
    bench: Bench, ways: dict[str, Callable[[], Any]], mode: str = "append", rounds: int | None = None
) -> dict[str, float]:
    """Million rows a second of each way, in the best micro-batch of several rounds; the very first ones warm up."""
    best = dict.fromkeys(ways, 0.0)
    for _ in range(rounds or bench.rounds):
        for way, frame in ways.items():
            best[way] = max(best[way], _rate(frame().writeStream.outputMode(mode), bench.rows))
    return best


def _rate(writer: Any, rows: int) -> float:
    """Million rows a second while Spark reads all there is, its own checkpoint left out."""
    with tempfile.TemporaryDirectory() as checkpoint:
        query = writer.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [(p["numInputRows"], p["durationMs"]) for p in query.recentProgress if p["numInputRows"]]
    if (read := sum(count for count, _ in batches)) != rows:
        raise AssertionError(f"Spark read {read} rows of {rows}")
    full = max(count for count, _ in batches) / 2
    return max(
        count / (spent["triggerExecution"] - spent["walCommit"] - spent["commitOffsets"]) / 1_000
        for count, spent in batches
        if count > full  # a small one at the end says nothing
    )


def _log(bench: Bench, table: pa.Table, kind: str, size: int) -> Callable[[], Any]:
    with open_partition(bench.folder / "log" / f"{kind}-{size}" / "out", table.schema) as writer:
        for seq, batch in enumerate(table.combine_chunks().to_batches(max_chunksize=size)):
            _append(writer, batch, seq, commit=writer.partition.pending_bytes > COMMIT_BYTES)
        writer.commit()
    return lambda: _log_stream(bench, kind, size)


def _log_stream(bench: Bench, kind: str, size: int, **options: str) -> Any:
    where = {"path": str(bench.folder), "query": f"{kind}-{size}", "maxRowsPerTrigger": str(bench.batch_rows)}
    return bench.spark.readStream.format("rove").options(**where, **options).load()


def _append(writer: LogWriter, rows: pa.RecordBatch, seq: int, commit: bool = True) -> None:
    writer.append(Header(origin="bench", seq=seq, through=seq, rows=rows.num_rows), rows.serialize())
    if commit:
        writer.commit()


def _parquet(bench: Bench, table: pa.Table, kind: str) -> Callable[[], Any]:
    folder = bench.folder / f"{kind}.parquet"
    folder.mkdir()
    size = bench.batch_rows // FILES_PER_BATCH
    for number in range(table.num_rows // size):
        pq.write_table(table.slice(number * size, size), folder / f"{number:03d}.parquet")
    return lambda: _parquet_stream(bench, kind)


def _parquet_stream(bench: Bench, kind: str) -> Any:
    folder = str(bench.folder / f"{kind}.parquet")
    reader = bench.spark.readStream.schema(bench.spark.read.parquet(folder).schema)
    return reader.option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(folder)
