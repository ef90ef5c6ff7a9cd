"""A real device with a disk is killed, or stopped, while it is away: its next start sends what it kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rove.control.asks.requests import AccountLine, QueryLine
from rove.model.ids import Origin
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import BUSY, BUSY_SQL
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

BATCHES, RATE, ROWS = 60, 20, 200


def accounts(cluster: Cluster) -> list[AccountLine]:
    return cluster.client.ask("status", None, list[AccountLine])


def is_written(folder: Path) -> bool:
    """Whether nothing was written for a while, in which a device writes what has waited for a second."""
    before = sum(file.stat().st_size for file in folder.glob("*/busy/*"))
    time.sleep(4)
    return before == sum(file.stat().st_size for file in folder.glob("*/busy/*"))


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_what_a_device_had_kept_on_its_disk_outlives_it(cluster: Cluster, tmp_path: Path, end: str) -> None:
    go = tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    text = f"trains=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=10000,when={go}"
    cluster.add(
        "dev0",
        "device",
        parents=["gateway"],
        sources=[text],
        columns={"trains": COLUMNS},
        folder=str(tmp_path / "dev0"),
        memory_bytes=50_000,  # far less than it will have to keep
        disk_bytes=10_000_000,
        evict="fifo",
    )
    cluster.start("gateway", "dev0")
    (tmp_path / "busy.sql").write_text(BUSY_SQL)
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    cluster.submit(tmp_path / "busy.sql")
    running = lambda: all(q.state == "running" for q in cluster.client.ask("queries", None, list[QueryLine]))  # noqa: E731
    assert eventually(running, 30)

    cluster.kill("gateway")
    go.touch()
    made = lambda: sum(line.produced for line in accounts(cluster)) == BATCHES * ROWS  # noqa: E731
    assert eventually(made, 30), accounts(cluster)
    if end == "killed":
        assert eventually(lambda: is_written(tmp_path / "dev0" / "retention"), 60)
        cluster.kill("dev0")
    else:
        cluster.end("dev0")  # it writes what it has before it goes
    assert list((tmp_path / "dev0" / "retention").glob("*/busy/*.arrows"))
    cluster.start("dev0", "gateway")

    def settled() -> bool:
        found = accounts(cluster)
        return len(found) == 2 and all(line.produced == line.delivered == BATCHES * ROWS for line in found)

    assert eventually(settled, 60), accounts(cluster)
    assert eventually(lambda: not list((tmp_path / "dev0" / "retention").glob("*/busy/*.arrows")), 10), (
        "nothing is left"
    )
    assert all(line.lost == line.evicted == line.late == line.in_flight == 0 for line in accounts(cluster))
    assert set(cluster.stop().values()) == {0}
    rows = list(generated(read_spec(text, COLUMNS, "dev0")))
    once = as_rows([computed(busy(), {Origin("trains", "dev0"): rows})])
    assert as_rows(in_log(tmp_path / BUSY)[0]) == sorted(2 * once), "what both starts made, each row once"
