"""Functions that loop or end their process, on a real device: they lose their own batches, and all else goes on."""

from __future__ import annotations

from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rove.control.asks.requests import AccountLine, QueryLine
from rove.model.ids import Origin
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import BUSY_SQL
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

BATCHES, ROWS = 40, 20
SOURCE = f"trains=generate:start_us=1000000,rows={ROWS},rate=20,batches={BATCHES},seed=7,step_us=10000,when="

QUERY_PY = """
import os

import pyarrow.compute as pc
import pytest

import rove


def loops(batches):
    while True:
        pass


def exits(batches):
    os._exit(3)


def crowded(batches):
    for batch in batches:
        yield batch.filter(pc.greater(batch["boarding"], 40)).select(["train", "boarding"])


trains = rove.Session.local().stream("trains", schema="{columns}")
mapped = trains.mapInArrow({function}, "train string, boarding int").at("device")
"""


def start(cluster: Cluster, folder: Path, names: list[str], **settings: object) -> None:
    """A device and a gateway that run a query without a function and one for each of these functions."""
    disk = str(folder / "gateway")
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=disk, trust_functions=True)
    source = {"sources": [f"{SOURCE}{folder / 'go'}"], "columns": {"trains": COLUMNS}}
    cluster.add("dev0", "device", parents=["gateway"], slots=64, trust_functions=True, **source, **settings)
    cluster.start("gateway", "dev0")
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    (folder / "busy.sql").write_text(BUSY_SQL)
    cluster.submit(folder / "busy.sql")
    for function in names:
        (folder / f"{function}.py").write_text(QUERY_PY.format(columns=COLUMNS, function=function))
        cluster.submit(folder / f"{function}.py")
    assert eventually(lambda: all(q.state == "running" and not q.missing for q in queries(cluster)), 60)
    (folder / "go").touch()


def queries(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def accounts(cluster: Cluster) -> dict[str, tuple[int, int, int]]:
    """What was produced, delivered and faulted, by query."""
    lines = cluster.client.ask("status", None, list[AccountLine])
    return {line.query: (line.produced, line.delivered, line.faulted) for line in lines}


def made() -> list[pa.RecordBatch]:
    return list(generated(read_spec(SOURCE.removesuffix(",when="), COLUMNS, "dev0")))


def crowded() -> list[tuple[object, ...]]:
    return as_rows(b.filter(pc.greater(b["boarding"], 40)).select(["train", "boarding"]) for b in made())


def functions_of(cluster: Cluster, node: str) -> list[psutil.Process]:
    """The processes of functions beside a node."""
    return psutil.Process(cluster.pid(node)).children()


def test_bad_functions_lose_their_own_batches_and_end_with_a_killed_node(cluster: Cluster, tmp_path: Path) -> None:
    start(cluster, tmp_path, ["loops", "exits", "crowded"], function_ms=2_000)
    whole = BATCHES * ROWS
    good, bad = (whole, whole, 0), (whole, 0, whole)
    expected = {"busy": good, "crowded": good, "loops": bad, "exits": bad}
    assert eventually(lambda: accounts(cluster) == expected, 120), accounts(cluster)

    once = as_rows([computed(busy(), {Origin("trains", "dev0"): made()})])
    assert as_rows(in_log(tmp_path / "gateway/log/busy/out")[0]) == once
    assert as_rows(in_log(tmp_path / "gateway/log/crowded/out")[0]) == crowded()
    troubles = {q.query: str(q.troubles) for q in queries(cluster)}
    assert (troubles["busy"], troubles["crowded"]) == ("()", "()")
    for name, what in (("loops", "took longer than 2 s"), ("exits", "ended its process with exit code 3")):
        assert "batch 0 of `trains/dev0" in troubles[name]
        assert f"mapInArrow function `{name}` " in troubles[name]
        assert what in troubles[name]

    beside = functions_of(cluster, "dev0")
    assert beside
    cluster.kill("dev0")
    assert eventually(lambda: not any(each.is_running() for each in beside), 5), beside


@pytest.mark.parametrize(("functions", "processes"), [("inline", 0), ("process", 1)])
def test_functions_run_inside_a_node_that_is_told_so_or_in_a_process_that_ends_with_their_query(
    cluster: Cluster, tmp_path: Path, functions: str, processes: int
) -> None:
    start(cluster, tmp_path, ["crowded"], functions=functions)
    whole = BATCHES * ROWS
    assert eventually(lambda: set(accounts(cluster).values()) == {(whole, whole, 0)}, 60), accounts(cluster)
    assert as_rows(in_log(tmp_path / "gateway/log/crowded/out")[0]) == crowded()
    assert len(functions_of(cluster, "dev0")) == processes
    assert functions_of(cluster, "gateway") == []  # a function is read where it runs
    assert cluster.rove("stop", "crowded").returncode == 0
    assert eventually(lambda: not functions_of(cluster, "dev0"), 30)
    assert set(cluster.stop().values()) == {0}
