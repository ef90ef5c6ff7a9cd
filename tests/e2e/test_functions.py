"""Functions defined in the query's file run at the edge and in Spark, in processes without that file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rove.control.asks.requests import AccountLine
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_cloud_kills import Cloud, lines, settled
from tests.runtime.queries import COLUMNS

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

QUERY_PY = """
import pyarrow.compute as pc

import rove

LEAST = 40


def crowded(batches):
    for batch in batches:
        yield kept(batch).select(["train", "boarding"])


def kept(batch):
    return batch.filter(pc.greater(batch["boarding"], LEAST))


def doubled(frame):
    return frame.selectExpr("train", "2 * boarding AS twice")


trains = rove.Session.local().stream("trains", schema="{columns}")
twice = trains.mapInArrow(crowded, "train string, boarding int").at("{where}").inSpark(doubled)
"""


def test_functions_of_a_query_file_run_where_they_are_trusted_and_are_refused_elsewhere(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"trains=generate:start_us=1000000,rows=20,rate=20,batches=40,seed=7,step_us=10000,when={tmp_path / 'go'}"
    disk, listen = str(tmp_path / "gateway"), "tcp://127.0.0.1:0"
    cluster.add("gateway", "gateway", listen=listen, folder=disk, trust_functions=True)
    cluster.add("trusting", "edge", listen=listen, parents=["gateway"], trust_functions=True)
    cluster.add("careful", "edge", listen=listen, parents=["trusting"])
    cluster.add("device", "device", parents=["careful"], sources=[source], columns={"trains": COLUMNS})
    cluster.start("gateway", "trusting", "careful", "device")
    for where in ("careful", "trusting"):
        (tmp_path / f"{where}.py").write_text(QUERY_PY.format(columns=COLUMNS, where=where))
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 20)

    refused = cluster.rove("submit", str(tmp_path / "careful.py"), "--sink", "table")
    assert refused.returncode == 1
    assert "`crowded` would be sent to `careful` by value" in refused.stderr
    cluster.submit(tmp_path / "trusting.py", "--sink", "table")
    cluster.submit(tmp_path / "trusting.py", "--sink", "table")  # the same bytes again: nothing changes

    monkeypatch.setenv("ROVE__CLOUD__TRUST_FUNCTIONS", "true")
    cloud = Cloud(cluster, tmp_path, "local[1]")
    try:
        assert eventually(lambda: lines(cluster)[0].state == "running", 30), lines(cluster)
        (tmp_path / "go").touch()
        rows = [n for b in generated(read_spec(source, COLUMNS, "device")) for n in b["boarding"].to_pylist()]
        expected, table = sorted(2 * n for n in rows if n > 40), tmp_path / "tables" / "trusting"
        done = eventually(lambda: settled(cluster) and twice_in(table) == expected, 120, 1.0)
        assert done, (tmp_path / "cloud.log").read_text()
        assert [(q.state, q.troubles) for q in lines(cluster)] == [("running", ())]
    finally:
        cloud.kill()


def twice_in(table: Path) -> list[int]:
    try:
        return sorted(pq.read_table(table)["twice"].to_pylist())
    except (OSError, KeyError, pa.ArrowInvalid):  # not there yet, or being written
        return []


MODULE = """
def crowded(batches):
    for batch in batches:
        yield batch.select(["train", "boarding"])
"""
BY_NAME = """
import fleet
import rove

trains = rove.Session.local().stream("trains", schema="{columns}")
crowded = trains.mapInArrow(fleet.crowded, "train string, boarding int"){at}
"""


def test_a_function_needs_to_be_installed_only_where_it_runs(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen, went = "tcp://127.0.0.1:0", tmp_path / "go"
    source = f"trains=generate:start_us=1000000,rows=20,rate=50,batches=10,seed=7,when={went}"
    cluster.add("gateway", "gateway", listen=listen, folder=str(tmp_path / "gateway"))
    cluster.add("edge", "edge", listen=listen, parents=["gateway"])
    cluster.add("device", "device", parents=["edge"], sources=[source], columns={"trains": COLUMNS})
    cluster.start("gateway", "device")
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "fleet.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    cluster.start("edge")
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 20)
    for name, at in (("hinted", '.at("edge")'), ("free", "")):  # the second is tried on the device first
        (tmp_path / f"{name}.py").write_text(BY_NAME.format(columns=COLUMNS, at=at))
        cluster.submit(tmp_path / f"{name}.py", "--name", name, "--sink", f"file:{name}", "--on", "gateway")
    assert eventually(lambda: [q.state for q in lines(cluster)] == ["running"] * 2, 20), lines(cluster)
    assert [q.troubles for q in lines(cluster)] == [(), ()]
    went.touch()
    assert eventually(lambda: counted(cluster) == (2 * 200, 2 * 200, 0), 20), (counted(cluster), lines(cluster))


def counted(cluster: Cluster) -> tuple[int, int, int]:
    """The rows of all queries that were produced, delivered and lost."""
    found = cluster.client.ask("status", None, list[AccountLine])
    return sum(a.produced for a in found), sum(a.delivered for a in found), sum(a.lost for a in found)
