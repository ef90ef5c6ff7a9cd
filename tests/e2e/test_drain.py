"""An edge of real processes is drained while devices send: its windows move with their state, and no row is lost."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rove.cloud.compile import compile_plan
from rove.control.asks.requests import AccountLine, NodeLine, QueryLine
from rove.plan.optimizer import optimize
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import once
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, in_log, trains

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

DEVICES = tuple(f"dev{n}" for n in range(20))
BATCHES, RATE, ROWS = 60, 4, 10
WINDOWS = """
import rove
from rove import functions as F

trains = rove.Session.local().stream("trains", schema="{columns}")
counted = (
    trains.withWatermark("ts", "5 seconds")
    .groupBy(F.window("ts", "1 second"), "train")
    .agg(F.sum("boarding").alias("on"), F.count("*").alias("rows"))
    .at("edge")
)
"""
COUNTED = "gateway/log/counted/out"


@pytest.mark.parametrize("disk", [True, False])
def test_a_keyed_window_leaves_its_edge_while_twenty_devices_send(
    cluster: Cluster, tmp_path: Path, spark: Any, disk: bool
) -> None:
    go = tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    for edge, parent in (("hill", "gateway"), ("mast", "hill")):
        folder = {"folder": str(tmp_path / edge)} if disk else {}
        cluster.add(edge, "edge", listen="tcp://127.0.0.1:0", parents=[parent], **folder)
    text = f"trains=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=10000,when={go}"
    for device in DEVICES:
        cluster.add(device, "device", parents=["mast"], slots=0, sources=[text], columns={"trains": COLUMNS})
    rows = [batch for device in DEVICES for batch in generated(read_spec(text, COLUMNS, device))]
    cluster.start("gateway", "hill", "mast", *DEVICES)
    (tmp_path / "counted.py").write_text(WINDOWS.format(columns=COLUMNS))
    cluster.submit(tmp_path / "counted.py")
    assert eventually(lambda: _running(cluster), 60), cluster.client.ask("queries", None, list[QueryLine])
    go.touch()
    time.sleep(5)

    drained = cluster.rove("drain", "mast", "--wait", "5", "--json")
    assert json.loads(drained.stdout)["left"] == {"counted": ""}, "devices below it know no other way"
    assert drained.returncode == 1
    assert _states(cluster)["mast"] == "draining"
    again = cluster.rove("drain", "mast")
    assert again.returncode == 1
    assert "being drained already" in again.stderr

    assert eventually(lambda: _settled(cluster), 90), cluster.client.ask("status", None, list[AccountLine])
    assert eventually(lambda: _counted(tmp_path) == len(DEVICES) * BATCHES * ROWS, 60), "the last windows arrive"
    assert set(cluster.stop().values()) == {0}
    frame = spark.createDataFrame(pa.Table.from_batches(rows))
    assert_same_rows(once(tmp_path / COUNTED), compile_plan(_windows(), {"trains": frame}).toArrow(), "moved windows")


def _windows() -> Any:
    from rove import functions as F

    counts = F.sum("boarding").alias("on"), F.count("*").alias("rows")
    return optimize(
        trains().withWatermark("ts", "5 seconds").groupBy(F.window("ts", "1 second"), "train").agg(*counts).plan
    )


def _running(cluster: Cluster) -> bool:
    found = cluster.client.ask("queries", None, list[QueryLine])
    return all(query.state == "running" and not query.missing and query.nodes == 23 for query in found)


def _states(cluster: Cluster) -> dict[str, str]:
    return {line.node: line.state for line in cluster.client.ask("topology", None, list[NodeLine])}


def _settled(cluster: Cluster) -> bool:
    found = cluster.client.ask("status", None, list[AccountLine])
    sources = [line for line in found if line.origin.startswith("trains/")]
    return len(sources) == len(DEVICES) and all(line.produced == line.delivered == BATCHES * ROWS for line in sources)


def _counted(folder: Path) -> int:
    return sum(sum(batch["rows"].to_pylist()) for batch in in_log(folder / COUNTED)[0])
