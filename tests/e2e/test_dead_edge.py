"""An edge of real processes dies for good while devices send: the query goes on, and what the edge held is named."""

from __future__ import annotations

import json
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
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import above_the_cut, counted_in, once
from tests.runtime.queries import COLUMNS, in_log, trains

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

EDGES, DEVICES = ("west", "east"), ("dev0", "dev1", "dev2", "dev3")
COUNTED, LATE = "gateway/log/counted/edge0", "gateway/log/counted/late-edge0"
BATCHES, RATE, ROWS = 100, 4, 10
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


def test_an_edge_without_a_disk_that_stays_dead_costs_what_it_held_and_no_more(
    cluster: Cluster, tmp_path: Path, spark: Any
) -> None:
    go = tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    for edge in EDGES:
        cluster.add(edge, "edge", listen="tcp://127.0.0.1:0", parents=["gateway"])
    text = f"trains=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=25000,when={go}"
    for device in DEVICES:
        cluster.add(device, "device", parents=list(EDGES), slots=0, sources=[text], columns={"trains": COLUMNS})
    rows = [batch for device in DEVICES for batch in generated(read_spec(text, COLUMNS, device))]
    cluster.start("gateway", *EDGES, *DEVICES)
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    (tmp_path / "counted.py").write_text(WINDOWS.format(columns=COLUMNS))
    cluster.submit(tmp_path / "counted.py", "--option", "replaceTimeout=5 seconds")
    assert eventually(lambda: runs(cluster), 60), queries(cluster)
    go.touch()
    time.sleep(5)
    used = next(edge for edge in EDGES if edge in explained(cluster))
    cluster.kill(used)
    assert eventually(lambda: "dead" in cluster.rove("history", "counted").stdout, 60), cluster.rove("history").stdout
    assert used not in explained(cluster)
    before = counted_in(tmp_path / COUNTED, "__rows__n")
    assert eventually(lambda: counted_in(tmp_path / COUNTED, "__rows__n") > before, 30), "the query goes on"

    assert eventually(lambda: settled(cluster), 120), accounts(cluster)
    status = json.loads(cluster.rove("status", "--json").stdout)
    assert status["adds_up"]
    held = {line.origin: line.missing for line in accounts(cluster) if line.missing}
    assert held, "rows of its open windows died with it"
    assert all(line.missing_batches for line in accounts(cluster) if line.missing)
    late = sum(line.late for line in accounts(cluster))
    assert {node: code for node, code in cluster.stop().items() if code} == {used: -9}
    total = len(DEVICES) * BATCHES * ROWS
    assert counted_in(tmp_path / COUNTED, "__rows__n") + sum(held.values()) + late == total
    assert sum(batch.num_rows for batch in in_log(tmp_path / LATE)[0]) == late
    partials = spark.createDataFrame(once(tmp_path / COUNTED))
    merged = compile_plan(above_the_cut(windows()), {"edge0": partials}).toArrow()
    frame = spark.createDataFrame(pa.Table.from_batches(rows))
    most = by_window(compile_plan(windows(), {"trains": frame}).toArrow())
    assert all(n <= most[key] for key, n in by_window(merged).items()), "no row is in two results"


def by_window(table: pa.Table) -> dict[tuple[str, str], int]:
    return {(str(row["window"]), row["train"]): row["rows"] for row in table.to_pylist()}


def windows() -> Operator:
    counts = F.sum("boarding").alias("on"), F.count("*").alias("rows")
    found = trains().withWatermark("ts", "5 seconds").groupBy(F.window("ts", "1 second"), "train")
    return optimize(found.agg(*counts).plan)


def explained(cluster: Cluster) -> str:
    return cluster.client.ask("explain", Named(name="counted"), Named).name


def queries(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def runs(cluster: Cluster) -> bool:
    return all(query.state == "running" and not query.missing and query.nodes >= 6 for query in queries(cluster))


def accounts(cluster: Cluster) -> list[AccountLine]:
    found = cluster.client.ask("status", None, list[AccountLine])
    return [line for line in found if line.origin.startswith("trains/")]


def settled(cluster: Cluster) -> bool:
    """Whether every row was made, and is delivered, late or missing."""
    lines = accounts(cluster)
    arrived = all(
        line.produced == BATCHES * ROWS == line.delivered + line.late + line.missing and not line.buffered
        for line in lines
    )
    return len(lines) == len(DEVICES) and arrived
