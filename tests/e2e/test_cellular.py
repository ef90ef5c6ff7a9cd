"""Ten devices on the move over mobile networks, with every outage they had: nothing is lost.

`pytest tests/e2e/test_cellular.py --cellular` takes six minutes; with ROVE_DATA the links are measured ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rove.cloud.compile import compile_plan
from rove.control.requests import AccountLine
from rove.runtime.sources import generated, read_spec
from tests.e2e.cellular import CellularProxy, traces
from tests.e2e.cluster import Cluster, eventually, free_port
from tests.e2e.test_moves import running
from tests.e2e.test_processes import BUSY, BUSY_SQL, WINDOWS_PY, above_the_cut, once
from tests.portable.rows import assert_same_rows
from tests.runtime.queries import COLUMNS, busy, in_log, windows

CELLS, DEVICES = ("west", "east"), tuple(f"dev{n}" for n in range(10))
SECONDS, RATE, ROWS = 300, 2, 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    found.destroy()


def test_nothing_is_lost_whatever_the_mobile_network_does(cluster: Cluster, tmp_path: Path, spark: Any) -> None:
    links, go = traces(SECONDS, 2 * len(DEVICES)), tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    proxies = []
    for n, cell in enumerate(CELLS):
        port = free_port()
        proxies.append(CellularProxy(port, links[n::2]))
        listen = f"tcp://127.0.0.1:{port}"
        cluster.add(cell, "edge", listen=listen, advertise=proxies[-1].address, parents=["gateway"])
    text = f"trains=generate:rows={ROWS},rate={RATE},batches={RATE * SECONDS},seed=7,step_us=10000,when={go}"
    for device in DEVICES:
        cluster.add(device, "device", parents=list(CELLS), slots=64, sources=[text], columns={"trains": COLUMNS})
    cluster.start("gateway", *CELLS, *DEVICES)
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    (tmp_path / "busy.sql").write_text(BUSY_SQL)
    (tmp_path / "counted.py").write_text(WINDOWS_PY.format(columns=COLUMNS, where="cloud"))
    cluster.submit(tmp_path / "busy.sql")
    cluster.submit(tmp_path / "counted.py")
    assert eventually(lambda: running(cluster), 120)
    go.touch()

    def accounts() -> list[AccountLine]:
        lines = cluster.client.ask("status", None, list[AccountLine])
        return [line for line in lines if line.origin.startswith("trains/")]

    def settled() -> bool:
        whole = [line.produced == line.delivered == RATE * SECONDS * ROWS for line in accounts()]
        return len(whole) == 2 * len(DEVICES) and all(whole)

    assert eventually(settled, 2 * SECONDS, every_s=2), accounts()
    assert not any(line.lost or line.evicted or line.late for line in accounts())
    assert set(cluster.stop().values()) == {0}
    for proxy in proxies:
        proxy.close()
    assert sum(proxy.broken for proxy in proxies) > 0, "no link was ever broken: the test tests nothing"
    rows = [batch for device in DEVICES for batch in generated(read_spec(text, COLUMNS, device))]
    frame = spark.createDataFrame(pa.Table.from_batches(rows))
    expected = compile_plan(busy(), {"trains": frame}).toArrow()
    assert_same_rows(once(tmp_path / BUSY), expected, "a filter, in the gateway's log")
    partials = spark.createDataFrame(once(tmp_path / "gateway/log/counted/edge0"))
    merged = compile_plan(above_the_cut(windows("cloud")), {"edge0": partials}).toArrow()
    assert_same_rows(merged, compile_plan(windows("cloud"), {"trains": frame}).toArrow(), "windows begun on devices")
    assert in_log(tmp_path / "gateway/log/counted/late-edge0")[0] == []
