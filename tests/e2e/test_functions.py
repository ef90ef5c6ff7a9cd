"""Functions defined in the query's file run at the edge and in Spark, in processes without that file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_cloud_kills import Cloud, lines, settled
from tests.runtime.queries import COLUMNS

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
    source = f"trains=generate:rows=20,rate=20,batches=40,seed=7,step_us=10000,when={tmp_path / 'go'}"
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
