"""Two devices of real processes swap edges that hold their partial windows, and swap back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rove import functions as F
from rove.cloud.compile import compile_plan
from rove.control.asks.requests import AccountLine, Named, QueryLine
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually, free_port
from tests.e2e.proxy import ChoosyProxy
from tests.e2e.test_processes import above_the_cut, counted_in, once
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, in_log, trains

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

CELLS, DEVICES = ("west", "east"), ("dev0", "dev1")
COUNTED = "gateway/log/counted/edge0"
BATCHES, RATE, ROWS = 200, 8, 20
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


@pytest.mark.parametrize("disk", [True, False])
def test_two_devices_swap_edges_that_hold_their_partial_windows(
    cluster: Cluster, tmp_path: Path, spark: Any, disk: bool
) -> None:
    go, proxies = tmp_path / "go", dict[str, ChoosyProxy]()
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    for cell in CELLS:
        port = free_port()
        proxies[cell] = ChoosyProxy(port)
        folder = {"folder": str(tmp_path / cell)} if disk else {}
        listen, advertise = f"tcp://127.0.0.1:{port}", proxies[cell].address
        cluster.add(cell, "edge", listen=listen, advertise=advertise, parents=["gateway"], **folder)
    text = f"trains=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=10000,when={go}"
    for device in DEVICES:
        cluster.add(device, "device", parents=list(CELLS), slots=0, sources=[text], columns={"trains": COLUMNS})
    rows = [batch for device in DEVICES for batch in generated(read_spec(text, COLUMNS, device))]
    cluster.start("gateway", *CELLS, *DEVICES)
    pids = [cluster.pid(device) for device in DEVICES]

    def at(first: str, second: str) -> None:
        """Each device reaches one edge alone."""
        for cell, proxy in proxies.items():
            proxy.away = frozenset(p for p, here in zip(pids, (first, second), strict=True) if here != cell)

    at("west", "east")
    time.sleep(12)  # until both have said so, also on a busy machine
    (tmp_path / "counted.py").write_text(WINDOWS.format(columns=COLUMNS))
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    cluster.submit(tmp_path / "counted.py")
    assert eventually(lambda: _runs(cluster), 60), _lines(cluster)
    assert "have left" not in _explained(cluster)
    go.touch()
    for here in (("east", "west"), ("west", "east"), ("east", "west")):
        time.sleep(3)
        before = _counted(tmp_path)
        at(*here)
        assert eventually(lambda before=before: _counted(tmp_path) > before, 30), "rows go on at once"
    assert eventually(lambda: "rows of `dev0`, `dev1` are taken at `gateway`" in _explained(cluster), 30)

    assert eventually(lambda: _settled(cluster), 90), cluster.client.ask("status", None, list[AccountLine])
    assert eventually(lambda: _counted(tmp_path) == len(DEVICES) * BATCHES * ROWS, 60), "the last windows arrive"
    assert set(cluster.stop().values()) == {0}
    for proxy in proxies.values():
        proxy.close()
    partials = spark.createDataFrame(once(tmp_path / COUNTED))
    merged = compile_plan(above_the_cut(_windows()), {"edge0": partials}).toArrow()
    frame = spark.createDataFrame(pa.Table.from_batches(rows))
    assert_same_rows(merged, compile_plan(_windows(), {"trains": frame}).toArrow(), "windows of devices that swapped")
    assert in_log(tmp_path / "gateway/log/counted/late-edge0")[0] == []
    made = {origin.node for origin, _, _ in in_log(tmp_path / COUNTED)[1]}
    assert {*CELLS, *DEVICES} <= made, "edges gave windows, and the rest came batch by batch"


def _windows() -> Operator:
    counts = F.sum("boarding").alias("on"), F.count("*").alias("rows")
    windows = trains().withWatermark("ts", "5 seconds").groupBy(F.window("ts", "1 second"), "train")
    return optimize(windows.agg(*counts).plan)


def _counted(folder: Path) -> int:
    return counted_in(folder / COUNTED, "__rows__n")


def _explained(cluster: Cluster) -> str:
    return cluster.client.ask("explain", Named(name="counted"), Named).name


def _lines(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def _runs(cluster: Cluster) -> bool:
    return all(query.state == "running" and not query.missing and query.nodes == 5 for query in _lines(cluster))


def _settled(cluster: Cluster) -> bool:
    found = cluster.client.ask("status", None, list[AccountLine])
    sources = [line for line in found if line.origin.startswith("trains/")]
    return len(sources) == len(DEVICES) and all(line.produced == line.delivered == BATCHES * ROWS for line in sources)
