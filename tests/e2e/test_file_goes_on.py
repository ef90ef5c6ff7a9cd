"""A real device that reads a file is killed again and again: every row of the file arrives once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rove.control.asks.requests import AccountLine, QueryLine
from rove.model.ids import Origin
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import BUSY, BUSY_SQL
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log

BATCHES, RATE, ROWS = 80, 20, 50


@pytest.mark.parametrize(
    "disk_bytes", [pytest.param(0, id="memory"), pytest.param(10_000_000, id="disk", marks=pytest.mark.slow)]
)
def test_every_row_of_a_file_arrives_once_however_often_its_device_is_killed(
    cluster: Cluster, tmp_path: Path, disk_bytes: int
) -> None:
    made = read_spec(f"trains=generate:rows={ROWS},batches={BATCHES},start_us=1000000,step_us=10000", COLUMNS, "dev0")
    pq.write_table(pa.Table.from_batches(list(generated(made))), tmp_path / "rows.parquet")
    go = tmp_path / "go"
    text = f"trains=file:{tmp_path / 'rows.parquet'},rows={ROWS},rate={RATE},when={go}"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    more = {"disk_bytes": disk_bytes} if disk_bytes else {}
    device = {"parents": ["gateway"], "sources": [text], "folder": str(tmp_path / "dev0"), **more}
    cluster.add("dev0", "device", columns={"trains": COLUMNS}, **device)
    cluster.start("gateway", "dev0")
    (tmp_path / "busy.sql").write_text(BUSY_SQL)
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    cluster.submit(tmp_path / "busy.sql")
    running = lambda: all(q.state == "running" for q in cluster.client.ask("queries", None, list[QueryLine]))  # noqa: E731
    assert eventually(running, 30)
    go.touch()

    def accounts() -> list[AccountLine]:
        return cluster.client.ask("status", None, list[AccountLine])

    def delivered() -> int:
        return sum(line.delivered for line in accounts())

    for part in (1, 2, 3):
        assert eventually(lambda part=part: delivered() >= part * BATCHES * ROWS // 5, 60), accounts()
        if part == 2:  # what it makes now waits, in memory or on its disk
            cluster.kill("gateway")
            assert not eventually(lambda: False, 2)
        cluster.kill("dev0")
        cluster.start("dev0", *(["gateway"] if part == 2 else []))
    assert eventually(lambda: delivered() == BATCHES * ROWS, 60), accounts()
    cluster.end("dev0")
    cluster.start("dev0")  # the file was read to its end: nothing comes any more
    assert not eventually(lambda: delivered() != BATCHES * ROWS, 3), accounts()
    (line,) = accounts()
    assert (line.produced, line.in_flight, line.lost, line.late, line.missing) == (BATCHES * ROWS, 0, 0, 0, 0), line
    assert set(cluster.stop().values()) == {0}
    want = as_rows([computed(busy(), {Origin("trains", "dev0"): list(generated(read_spec(text, COLUMNS, "dev0")))})])
    assert as_rows(in_log(tmp_path / BUSY)[0]) == want
