"""An edge of real processes that runs a join is killed with -9 while devices send."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.cloud.compile import compile_plan
from rove.control.asks.requests import AccountLine, Named, QueryLine
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import once
from tests.portable.rows import assert_same_rows

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

EDGES, DEVICES = ("hill", "mast"), ("dev0", "dev1", "dev2", "dev3")
STREAMS = {"trains": "train string, ts timestamp, boarding int", "doors": "train string, ts timestamp, opened int"}
BATCHES, RATE, ROWS = 80, 4, 4
PAIRED = "gateway/log/paired/out"
QUERY = """
import rove
from rove import functions as F

session = rove.Session.local()
trains = session.stream("trains", schema="{trains}").withWatermark("ts", "5 seconds")
doors = session.stream("doors", schema="{doors}").withWatermark("ts", "5 seconds")
left = trains.select(F.window("ts", "1 second").alias("w"), "train", F.col("ts").alias("a"), "boarding")
right = doors.select(F.window("ts", "1 second").alias("w"), "train", F.col("ts").alias("b"), "opened")
paired = left.join(right, ["w", "train"]).at("edge")
"""


def test_an_edge_that_is_killed_with_open_windows_of_a_join_joins_every_row_once(
    cluster: Cluster, tmp_path: Path, spark: Any
) -> None:
    go = begin(cluster, tmp_path)
    assert "Join" in where(cluster, "mast")
    go()
    for _ in range(2):
        time.sleep(4)
        cluster.kill("mast")
        time.sleep(1)
        cluster.start("mast")
    assert eventually(lambda: settled(cluster), 90), accounts(cluster)
    assert set(cluster.stop().values()) == {0}
    assert_same_rows(once(tmp_path / PAIRED), expected(spark), "pairs of an edge that was killed")


def begin(cluster: Cluster, folder: Path) -> Callable[[], None]:
    """A gateway, two edges, four devices below one of them, and the join, which runs. Returns what lets rows flow."""
    go = folder / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(folder / "gateway"))
    for edge, parent in zip(EDGES, ("gateway", *EDGES), strict=False):
        cluster.add(edge, "edge", listen="tcp://127.0.0.1:0", parents=[parent], folder=str(folder / edge))
    for device in DEVICES:
        texts = [f"{text},when={go}" for text in sources()]
        cluster.add(device, "device", parents=["mast"], slots=0, sources=texts, columns=STREAMS)
    cluster.start("gateway", *EDGES, *DEVICES)
    assert eventually(lambda: cluster.client.ask("streams", None, dict[str, str]).keys() == STREAMS.keys(), 30)
    (folder / "paired.py").write_text(QUERY.format(**STREAMS))
    cluster.submit(folder / "paired.py")
    assert eventually(lambda: running(cluster), 60), queries(cluster)
    return go.touch


def sources() -> list[str]:
    return [
        f"{stream}=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=62500"
        for stream in STREAMS
    ]


def expected(spark: Any) -> pa.Table:
    """What Spark gives over all rows."""
    frames = {}
    for text, (stream, columns) in zip(sources(), STREAMS.items(), strict=True):
        made = [batch for device in DEVICES for batch in generated(read_spec(text, columns, device))]
        frames[stream] = spark.createDataFrame(pa.Table.from_batches(made))
    return compile_plan(plan(), frames).toArrow()


def plan() -> Operator:
    session = rove.Session.local()
    trains = session.stream("trains", schema=STREAMS["trains"]).withWatermark("ts", "5 seconds")
    doors = session.stream("doors", schema=STREAMS["doors"]).withWatermark("ts", "5 seconds")
    left = trains.select(F.window("ts", "1 second").alias("w"), "train", F.col("ts").alias("a"), "boarding")
    right = doors.select(F.window("ts", "1 second").alias("w"), "train", F.col("ts").alias("b"), "opened")
    return optimize(left.join(right, ["w", "train"]).plan)


def where(cluster: Cluster, node: str) -> str:
    """What a node runs of the query, as a user reads it."""
    text = cluster.client.ask("explain", Named(name="paired"), Named).name
    return "\n".join(line for line in text.splitlines() if line.startswith(node))


def queries(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def running(cluster: Cluster) -> bool:
    return all(
        query.state == "running" and not query.missing and query.nodes == 3 + len(DEVICES) for query in queries(cluster)
    )


def accounts(cluster: Cluster) -> list[AccountLine]:
    found = cluster.client.ask("status", None, list[AccountLine])
    return [line for line in found if line.origin.split("/")[0] in STREAMS]


def settled(cluster: Cluster) -> bool:
    lines = accounts(cluster)
    arrived = all(line.produced == line.delivered == BATCHES * ROWS for line in lines)
    return len(lines) == len(STREAMS) * len(DEVICES) and arrived
