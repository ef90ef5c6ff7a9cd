"""Devices of real processes whose edge dies: they go on over another one, and back again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rove.cloud.compile import compile_plan
from rove.control.asks.requests import AccountLine, QueryLine
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import BUSY, BUSY_SQL, WINDOWS_PY, above_the_cut, counted_in, once
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, busy, in_log, windows

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

CELLS, DEVICES = ("west", "east"), ("dev0", "dev1", "dev2")
COUNTED = "gateway/log/counted/edge0"
BATCHES, RATE, ROWS = 240, 10, 20
HOOKS = """
def on_disconnect(parent):
    print("lost", parent, file=open("{file}", "a"))

def on_reconnect(parent, away_s):
    assert 0 < away_s < 60
    print("found", parent, file=open("{file}", "a"))
"""


def test_every_row_arrives_once_whichever_edge_is_dead(cluster: Cluster, tmp_path: Path, spark: Any) -> None:
    go = tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    for cell in CELLS:
        cluster.add(cell, "edge", listen="tcp://127.0.0.1:0", parents=["gateway"])
    text = f"trains=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=10000,when={go}"
    for device in DEVICES:
        (tmp_path / f"{device}.py").write_text(HOOKS.format(file=tmp_path / f"{device}.told"))
        given = {"sources": [text], "columns": {"trains": COLUMNS}, "hooks": str(tmp_path / f"{device}.py")}
        cluster.add(device, "device", parents=list(CELLS), slots=64, **given)
    rows = [batch for device in DEVICES for batch in generated(read_spec(text, COLUMNS, device))]
    cluster.start("gateway", *CELLS, *DEVICES)
    submit(cluster)
    go.touch()

    for dead, other in (CELLS, CELLS[::-1]):
        time.sleep(2)
        cluster.kill(dead)
        time.sleep(1)  # what was on its way from the edge has arrived
        before = arrived(tmp_path)
        assert eventually(lambda before=before: arrived(tmp_path) > before, 30), f"rows go on over {other}"
        cluster.start(dead)
        assert eventually(lambda: running(cluster), 30), "the dead one is back"

    assert eventually(lambda: settled(cluster), 60), cluster.client.ask("status", None, list[AccountLine])
    assert eventually(lambda: counted(tmp_path) == len(DEVICES) * BATCHES * ROWS, 60), "the last windows arrive"
    pairs = [(device, cell) for device in DEVICES for cell in CELLS]
    assert eventually(lambda: all(told(tmp_path, *pair)[-1:] == ["found"] for pair in pairs), 30), "all are back"
    assert set(cluster.stop().values()) == {0}
    compare(tmp_path, rows, spark)
    for device, cell in pairs:  # a machine that is slow may lose an edge more often than it is killed
        what = told(tmp_path, device, cell)
        assert what == ["lost", "found"] * max(1, len(what) // 2), f"{device} was told when {cell} went and came"


def told(folder: Path, device: str, cell: str) -> list[str]:
    """What a device was told of an edge, in order."""
    file = folder / f"{device}.told"
    said = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [what for what, parent in said if parent == cell]


def submit(cluster: Cluster) -> None:
    """A filter, and windows that are begun on the devices and merged in Spark."""
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    (cluster.folder / "busy.sql").write_text(BUSY_SQL)
    (cluster.folder / "counted.py").write_text(WINDOWS_PY.format(columns=COLUMNS, where="cloud"))
    cluster.submit(cluster.folder / "busy.sql")
    cluster.submit(cluster.folder / "counted.py")
    assert eventually(lambda: running(cluster), 120)


def compare(folder: Path, rows: list[pa.RecordBatch], spark: Any) -> None:
    """What has arrived of both is what Spark computes of all rows at once, and nothing was late."""
    frame = spark.createDataFrame(pa.Table.from_batches(rows))
    expected = compile_plan(busy(), {"trains": frame}).toArrow()
    assert_same_rows(once(folder / BUSY), expected, "a filter, in the gateway's log")
    partials = spark.createDataFrame(once(folder / COUNTED))
    merged = compile_plan(above_the_cut(windows("cloud")), {"edge0": partials}).toArrow()
    assert_same_rows(merged, compile_plan(windows("cloud"), {"trains": frame}).toArrow(), "windows begun on devices")
    assert in_log(folder / "gateway/log/counted/late-edge0")[0] == []


def counted(folder: Path) -> int:
    """Rows in the windows that have arrived."""
    return counted_in(folder / COUNTED, "__rows__n")


def lines(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def arrived(folder: Path) -> int:
    return sum(batch.num_rows for batch in in_log(folder / BUSY)[0])


def running(cluster: Cluster) -> bool:
    return all(query.state == "running" and not query.missing for query in lines(cluster))


def settled(cluster: Cluster) -> bool:
    found = cluster.client.ask("status", None, list[AccountLine])
    sources = [line for line in found if line.origin.startswith("trains/")]
    made = [line.produced == line.delivered == BATCHES * ROWS for line in sources]
    return len(made) == 2 * len(DEVICES) and all(made)
