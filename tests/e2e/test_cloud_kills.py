"""kill -9 of Spark's driver, of a Python worker, of an executor and of the gateway, in the middle of the flow.

`pytest tests/e2e/test_cloud_kills.py --all-kills` kills each of them five times (some 10 minutes); without it the
driver and the gateway are killed once each.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from rove.cloud.compile import compile_plan
from rove.control.requests import AccountLine, QueryLine
from rove.runtime.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import WINDOWS_PY
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, windows

DEVICES = ("dev0", "dev1", "dev2")
RATE = 10
ROUND_S = 8.0  # from one kill to the next


class Cloud:
    """`rove cloud` as a process beside a cluster."""

    def __init__(self, cluster: Cluster, folder: Path, master: str) -> None:
        self._folder = folder
        self._command = [
            sys.executable, "-c", "from rove.cli import main; main()", "cloud",
            "--logs", str(folder / "gateway"), "--tables", str(folder / "tables"), "--state", str(folder / "state"),
            "--master", master, "--coordinator", cluster.url, "--keys", str(folder / "operator.keys"),
        ]  # fmt: skip
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        with open(self._folder / "cloud.log", "a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, env={**os.environ, **SETTINGS})
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


SETTINGS = {"ROVE__CLOUD__SPARK": '{"spark.sql.shuffle.partitions": "2"}'}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    found.destroy()


def kills(config: pytest.Config) -> list[list[str]]:
    if config.getoption("--all-kills"):
        return [[what] * 5 for what in ("driver", "python worker", "executor", "gateway")]
    return [["driver", "gateway"]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("victims", kills(metafunc.config), ids=lambda v: " ".join(dict.fromkeys(v)))


def test_every_result_is_in_the_table_once_whatever_dies(
    cluster: Cluster, tmp_path: Path, spark: Any, victims: list[str]
) -> None:
    go = tmp_path / "go"
    batches = round((len(victims) * ROUND_S + 10) * RATE)
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    specs = []
    for device in DEVICES:
        text = f"trains=generate:rows=20,rate={RATE},batches={batches},seed=7,step_us=10000,when={go}"
        specs.append(read_spec(text, COLUMNS, device))
        cluster.add(device, "device", parents=["gateway"], slots=64, sources=[text], columns={"trains": COLUMNS})
    cluster.start("gateway", *DEVICES)
    (tmp_path / "counted.py").write_text(WINDOWS_PY.format(columns=COLUMNS, where="cloud"))
    cluster.submit(tmp_path / "counted.py", "--sink", "table")
    master = "local-cluster[2,1,1024]" if "executor" in victims else "local[2]"
    cloud = Cloud(cluster, tmp_path, master)
    try:
        assert eventually(lambda: line(cluster).state == "running" and batch(cluster) >= -1, 60)
        go.touch()
        assert eventually(lambda: batch(cluster) >= 1, 90), (tmp_path / "cloud.log").read_text()
        for victim in victims:
            kill(cluster, cloud, victim)
            time.sleep(ROUND_S)
        rows = pa.Table.from_batches([b for spec in specs for b in generated(spec)])
        expected = compile_plan(windows("cloud"), {"trains": spark.createDataFrame(rows)}).toArrow()
        table = tmp_path / "tables" / "counted"
        done = eventually(lambda: settled(cluster) and table_of(spark, table).num_rows >= expected.num_rows, 120, 1.0)
        assert done, (tmp_path / "cloud.log").read_text()
        time.sleep(2)
        assert_same_rows(table_of(spark, table), expected, f"after {victims}")
        progress = line(cluster).spark
        assert progress is not None
        assert progress.dropped_rows == 0
        cloud.process.send_signal(signal.SIGTERM)
        assert cloud.process.wait(30) == 0
    finally:
        cloud.kill()


def kill(cluster: Cluster, cloud: Cloud, victim: str) -> None:
    match victim:
        case "driver":
            cloud.kill()
            cloud.start()
        case "gateway":
            cluster.kill("gateway")
            time.sleep(0.5)
            cluster.start("gateway")
        case "python worker":
            workers = cloud.children("pyspark.daemon")
            assert workers
            workers[-1].kill()
        case "executor":
            executors = cloud.children("CoarseGrainedExecutorBackend")
            assert executors
            executors[0].kill()


def line(cluster: Cluster) -> QueryLine:
    return cluster.client.ask("queries", None, list[QueryLine])[0]


def batch(cluster: Cluster) -> int:
    spark = line(cluster).spark
    return -2 if spark is None else spark.batch


def settled(cluster: Cluster) -> bool:
    lines = cluster.client.ask("status", None, list[AccountLine])
    return bool(lines) and not any(a.in_flight or a.buffered for a in lines)


def table_of(spark: Any, folder: Path) -> pa.Table:
    try:
        return spark.read.parquet(str(folder)).toArrow()
    except Exception:  # not there yet, or being written
        return pa.table({})
