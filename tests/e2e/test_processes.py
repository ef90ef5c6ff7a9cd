"""A whole network of processes: keys, disks, kill -9 of gateway and coordinator, a wire that is cut."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from rove.cloud.compile import compile_plan
from rove.control.asks.requests import AccountLine, QueryLine
from rove.plan.operators import Operator, Received
from rove.plan.rules.rewrite import with_inputs
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually, free_port
from tests.e2e.proxy import CuttingProxy
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, busy, in_log, windows

BUSY = "gateway/log/busy/out"
ANSWERS, PARTIALS = "edge1/answers", "gateway/log/cloud/edge0"
TREE = {"edge1": "gateway", "edge2": "edge1", "edge3": "edge1", "edge4": "edge2"}
DEVICES = {f"dev{n}": f"edge{n % 4 + 1}" for n in range(8)}
BATCHES, RATE = 240, 10

BUSY_SQL = "SELECT train, ts, boarding FROM trains WHERE boarding > 40"
WINDOWS_PY = """
import rove
from rove import functions as F

trains = rove.Session.local().stream("trains", schema="{columns}")
counted = (
    trains.withWatermark("ts", "5 seconds")
    .at("device")
    .groupBy(F.window("ts", "1 second"), "train")
    .agg(F.sum("boarding").alias("on"), F.count("*").alias("rows"))
    .at("{where}")
)
"""


def test_every_row_arrives_once_whatever_dies_or_is_cut(cluster: Cluster, tmp_path: Path, spark: Any) -> None:
    port = free_port()
    proxy = CuttingProxy(port)
    go = tmp_path / "go"
    listen, disk = f"tcp://127.0.0.1:{port}", str(tmp_path / "gateway")
    cluster.add("gateway", "gateway", listen=listen, advertise=proxy.address, folder=disk)
    for edge, parent in TREE.items():
        disk = str(tmp_path / "edge1") if edge == "edge1" else ""
        cluster.add(edge, "edge", listen="tcp://127.0.0.1:0", parents=[parent], slots=64, folder=disk)
    specs = []
    for device, edge in DEVICES.items():
        text = f"trains=generate:start_us=1000000,rows=20,rate={RATE},batches={BATCHES},seed=7,step_us=10000,when={go}"
        specs.append(read_spec(text, COLUMNS, device))
        cluster.add(device, "device", parents=[edge], slots=64, sources=[text], columns={"trains": COLUMNS})
    rows = {spec.origin: list(generated(spec)) for spec in specs}

    cluster.start("gateway", *TREE)
    (tmp_path / "busy.sql").write_text(BUSY_SQL)
    for name, where in (("cloud", "cloud"), ("edge", "edge1")):
        (tmp_path / f"{name}.py").write_text(WINDOWS_PY.format(columns=COLUMNS, where=where))
    cluster.start("dev0")  # a statement over streams needs one that is known
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 10)
    cluster.submit(tmp_path / "busy.sql")
    cluster.submit(tmp_path / "cloud.py")
    cluster.submit(tmp_path / "edge.py", "--sink", "file:answers", "--on", "edge1")
    cluster.start(*(device for device in DEVICES if device != "dev0"))
    assert eventually(lambda: all_run(cluster), 30), cluster.client.ask("queries", None, list[QueryLine])
    go.touch()

    time.sleep(3)
    cluster.kill("gateway")
    time.sleep(1)
    cluster.start("gateway")
    time.sleep(3)
    cluster.kill("coordinator")
    before = len(in_log(tmp_path / BUSY)[1])
    time.sleep(1)
    assert len(in_log(tmp_path / BUSY)[1]) > before  # nothing that flows waits for it
    cluster.start("coordinator")
    time.sleep(2)
    proxy.cut = True
    time.sleep(10)
    proxy.cut = False

    frame = spark.createDataFrame(pa.Table.from_batches([b for batches in rows.values() for b in batches]))
    passed = compile_plan(busy(), {"trains": frame}).toArrow()
    counted = compile_plan(windows("edge1"), {"trains": frame}).toArrow()
    assert eventually(lambda: sum(b.num_rows for b in in_log(tmp_path / BUSY)[0]) >= passed.num_rows, 40)
    assert eventually(lambda: settled(cluster), 40), cluster.client.ask("status", None, list[AccountLine])
    whole = frame.count()
    for folder, column in ((ANSWERS, "rows"), (PARTIALS, "__rows__n")):
        assert eventually(lambda f=folder, c=column: counted_in(tmp_path / f, c) == whole, 40), folder
    assert set(cluster.stop().values()) == {0}
    proxy.close()

    assert_same_rows(once(tmp_path / BUSY), passed, "a filter, in the gateway's log")
    assert_same_rows(once(tmp_path / ANSWERS), counted, "windows, in files of an edge node")
    assert in_log(tmp_path / "gateway/log/cloud/late-edge0")[0] == []
    partials = spark.createDataFrame(once(tmp_path / PARTIALS))
    merged = compile_plan(above_the_cut(windows("cloud")), {"edge0": partials})
    assert_same_rows(merged.toArrow(), counted, "windows, begun on devices and merged by Spark")


def above_the_cut(plan: Operator) -> Operator:
    """What is left for Spark when devices have computed partial results."""
    while not getattr(plan, "mode", ""):
        (plan,) = plan.inputs
    (partial,) = plan.inputs
    return with_inputs(plan, (Received("edge0", partial.schema, partial.traits),))


def all_run(cluster: Cluster) -> bool:
    """Whether everyone runs their part: a query that comes to a source late begins with what it makes from then on."""
    lines = cluster.client.ask("queries", None, list[QueryLine])
    nodes = {"busy": 13, "cloud": 13, "edge": 12}
    return all(q.state == "running" and not q.missing and not q.troubles and q.nodes == nodes[q.query] for q in lines)


def settled(cluster: Cluster) -> bool:
    """Whether every row that sources produced is accounted for, by the coordinator's own books."""
    lines = cluster.client.ask("status", None, list[AccountLine])
    produced = [line for line in lines if line.origin.startswith("trains/")]
    return len(produced) == 3 * len(DEVICES) and all(
        line.produced == BATCHES * 20 == line.delivered for line in produced
    )


def counted_in(folder: Path, column: str) -> int:
    """Rows in the windows of a log. The last ones are closed when a source ends, after its rows have gone."""
    return sum(sum(batch[column].to_pylist()) for batch in in_log(folder)[0])


def once(folder: Path) -> pa.Table:
    """The rows of a log, in which every name stands once."""
    batches, names = in_log(folder)
    names.sort()
    again = [b for a, b in pairwise(names) if a[0] == b[0] and b[1] <= a[2]]  # seqs of windows are too many to count
    assert again == []
    return pa.Table.from_batches(batches)
