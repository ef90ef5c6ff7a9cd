"""kill -9 of Spark's driver, of a Python worker, of an executor and of the gateway, in the middle of the flow.

One query ends in a table of files, one is corrected in PostgreSQL, one goes to a user's function, all in one Spark.
`pytest tests/e2e/test_cloud_kills.py --all-kills` kills each of them five times (half an hour); without the flag there
is nothing here to run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from operator import gt
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from rove.cloud.compile import compile_plan
from rove.control.asks.requests import AccountLine, QueryLine
from rove.runtime.adapters.sources import generated, read_spec
from tests.cloud.postgres_server import Server
from tests.e2e import by_hand
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import WINDOWS_PY
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, windows

DEVICES = ("dev0", "dev1", "dev2")
RATE = 10
TIMES = 5
ROUND_S = {"driver": 20.0, "python worker": 8.0, "executor": 8.0, "gateway": 8.0}  # rows flow for as long after a kill
WAIT_S = 300.0  # at the most, for Spark to come up on a busy machine
BY_HAND = "by_hand.sqlite"
QUERIES = ("counted", "corrected", "stored")


class Cloud:
    """`rove cloud` as a process beside a cluster."""

    def __init__(self, cluster: Cluster, folder: Path, master: str) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "ROVE__CLOUD__SPARK": '{"spark.sql.shuffle.partitions": "2"}',
            "PYTHONPATH": str(Path(__file__).parents[2]),  # for the user's function
            by_hand.PLACE: str(folder / BY_HAND),
        }
        self._command = [
            sys.executable, "-c", "from rove.cli import main; main()", "cloud",
            "--logs", str(folder / "gateway"), "--tables", str(folder / "tables"), "--state", str(folder / "state"),
            "--master", master, "--coordinator", cluster.url, "--keys", str(cluster.join("spark", "cloud")),
        ]  # fmt: skip
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        with open(self._folder / "cloud.log", "a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment)
        return self.process

    def children(self, *words: str) -> list[psutil.Process]:
        """Processes below it whose command lines hold all these words."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = " ".join(child.cmdline())
            except psutil.Error:
                continue
            if all(word in line for word in words):
                found.append(child)
        return found

    def kill(self) -> None:
        if self.process.poll() is not None:
            return
        below = self.children()
        self.process.kill()
        self.process.wait()
        psutil.wait_procs(below, 20)


@pytest.mark.parametrize("victim", ["driver", "python worker", "executor", "gateway"])
def test_every_result_is_there_once_in_a_table_in_postgresql_and_by_a_function_whatever_dies(
    cluster: Cluster, tmp_path: Path, spark: Any, postgres: Server, victim: str
) -> None:
    go = tmp_path / "go"
    busy = min(4.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))  # others' work makes all of this slower
    batches = round((TIMES * ROUND_S[victim] + 10) * RATE * busy)
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    specs = []
    for device in DEVICES:
        text = f"trains=generate:start_us=1000000,rows=20,rate={RATE},batches={batches},seed=7,step_us=10000,when={go}"
        specs.append(read_spec(text, COLUMNS, device))
        cluster.add(device, "device", parents=["gateway"], slots=64, sources=[text], columns={"trains": COLUMNS})
    cluster.start("gateway", *DEVICES)
    in_postgres = f"killed_{victim.replace(' ', '_')}"
    for name, flags in {
        "counted": ("table",),
        "corrected": (
            *(f"postgres:{in_postgres}", "--mode", "update", "--option", "keys=window,train"),
            *("--option", f"url={postgres.url()}"),
        ),
        "stored": (f"foreachBatch:{by_hand.store.__module__}:{by_hand.store.__qualname__}",),
    }.items():
        (tmp_path / f"{name}.py").write_text(WINDOWS_PY.format(columns=COLUMNS, where="cloud"))
        cluster.submit(tmp_path / f"{name}.py", "--sink", *flags)
    master = "local-cluster[2,1,1024]" if victim == "executor" else "local[2]"
    cloud = Cloud(cluster, tmp_path, master)
    try:
        assert eventually(lambda: all(q.state == "running" and q.spark for q in lines(cluster)), WAIT_S)
        go.touch()
        assert eventually(lambda: all(b >= 1 for b in progress(cluster)), WAIT_S), (tmp_path / "cloud.log").read_text()
        rows = pa.Table.from_batches([b for spec in specs for b in generated(spec)])
        for number in range(TIMES):
            before = progress(cluster)
            kill(cluster, cloud, victim, number)
            time.sleep(ROUND_S[victim] / 2)  # it takes a while to be noticed
            eventually(partial(at_work_again, cluster, before, rows.num_rows), WAIT_S)
        expected = compile_plan(windows("cloud"), {"trains": spark.createDataFrame(rows)}).toArrow()
        found: dict[str, Callable[[], pa.Table]] = {
            "counted": lambda: table_of(spark, tmp_path / "tables" / "counted"),
            "corrected": lambda: windows_of(rows_in(postgres, in_postgres), expected.schema),
            "stored": lambda: windows_of(by_hand.stored(tmp_path / BY_HAND), expected.schema),
        }
        eventually(lambda: settled(cluster) and all(same(now(), expected) for now in found.values()), WAIT_S, 1.0)
        time.sleep(2)  # for what would be there twice
        for name, now in found.items():
            assert_same_rows(now(), expected, f"{name}, after {TIMES} of {victim}")
        assert [q.spark.dropped_rows for q in lines(cluster) if q.spark is not None] == [0] * len(QUERIES)
        cloud.process.send_signal(signal.SIGTERM)
        assert cloud.process.wait(30) == 0
    finally:
        cloud.kill()


def kill(cluster: Cluster, cloud: Cloud, victim: str, number: int) -> None:
    match victim:
        case "driver":
            cloud.kill()
            cloud.start()
        case "gateway":
            cluster.kill("gateway")
            time.sleep(0.5)
            cluster.start("gateway")
        case "python worker":
            kind = ("pyspark.daemon", "streaming_source_runner")[number % 2]  # one that reads, one that plans
            workers = cloud.children(kind)
            assert workers
            workers[-1 - number // 2 % len(workers)].kill()
        case "executor":
            executors = cloud.children("CoarseGrainedExecutorBackend")
            assert executors
            executors[0].kill()


def lines(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def progress(cluster: Cluster) -> list[int]:
    """The last micro-batch of every query."""
    return [-2 if q.spark is None else q.spark.batch for q in lines(cluster)]


def at_work_again(cluster: Cluster, before: list[int], rows: int) -> bool:
    """Whether all queries have come further, or devices have made all their rows."""
    lines = cluster.client.ask("status", None, list[AccountLine])
    made = sum(a.produced for a in lines if a.query == QUERIES[0] and a.origin.startswith("trains/"))
    return all(map(gt, progress(cluster), before)) or made == rows


def settled(cluster: Cluster) -> bool:
    lines = cluster.client.ask("status", None, list[AccountLine])
    return bool(lines) and not any(a.in_flight > a.open or a.buffered for a in lines)


def table_of(spark: Any, folder: Path) -> pa.Table:
    try:
        return spark.read.parquet(str(folder)).toArrow()
    except Exception:  # not there yet, or being written
        return pa.table({})


def rows_in(postgres: Server, table: str) -> list[tuple[Any, ...]]:
    if postgres.ask(f"SELECT to_regclass('{table}')") == [(None,)]:
        return []
    micros = "(extract(epoch FROM window_{0}) * 1000000)::bigint"
    return postgres.ask(f'SELECT {micros.format("start")}, {micros.format("end")}, train, "on", rows FROM {table}')


def windows_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows that begin with the two ends of a window, with a window."""
    starts, ends, *others = zip(*rows, strict=True) if rows else ((), (), *(() for _ in schema.names[1:]))
    window = schema.field("window").type
    both = [pa.array(found, pa.int64()).cast(part.type) for found, part in zip((starts, ends), window, strict=True)]
    arrays = [pa.array(found, kind) for found, kind in zip(others, schema.types[1:], strict=True)]
    return pa.Table.from_arrays([pa.StructArray.from_arrays(both, fields=list(window)), *arrays], names=schema.names)


def same(actual: pa.Table, expected: pa.Table) -> bool:
    try:
        assert_same_rows(actual, expected, "")
    except AssertionError:
        return False
    return True
