"""Ten devices on the move over mobile networks, with every outage they had: nothing is lost.

`pytest tests/e2e/test_cellular.py --cellular` takes six minutes; with ROVE_DATA the links are measured ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rove.control.asks.requests import AccountLine
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cellular import CellularProxy, traces
from tests.e2e.cluster import Cluster, eventually, free_port
from tests.e2e.test_moves import compare, counted, submit
from tests.runtime.queries import COLUMNS

CELLS, DEVICES = ("west", "east"), tuple(f"dev{n}" for n in range(10))
SECONDS, RATE, ROWS = 300, 2, 40


def test_nothing_is_lost_whatever_the_mobile_network_does(cluster: Cluster, tmp_path: Path, spark: Any) -> None:
    links, go = traces(SECONDS, 2 * len(DEVICES)), tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    proxies = []
    for n, cell in enumerate(CELLS):
        port = free_port()
        proxies.append(CellularProxy(port, links[n::2]))
        listen = f"tcp://127.0.0.1:{port}"
        cluster.add(cell, "edge", listen=listen, advertise=proxies[-1].address, parents=["gateway"])
    made = f"rows={ROWS},rate={RATE},batches={RATE * SECONDS},seed=7,start_us=1000000,step_us=10000"
    text = f"trains=generate:{made},when={go}"
    for device in DEVICES:
        cluster.add(device, "device", parents=list(CELLS), slots=64, sources=[text], columns={"trains": COLUMNS})
    cluster.start("gateway", *CELLS, *DEVICES)
    submit(cluster)
    go.touch()

    def accounts() -> list[AccountLine]:
        lines = cluster.client.ask("status", None, list[AccountLine])
        return [line for line in lines if line.origin.startswith("trains/")]

    def settled() -> bool:
        whole = [line.produced == line.delivered == RATE * SECONDS * ROWS for line in accounts()]
        return len(whole) == 2 * len(DEVICES) and all(whole)

    assert eventually(settled, 2 * SECONDS, every_s=2), accounts()
    whole = len(DEVICES) * RATE * SECONDS * ROWS
    assert eventually(lambda: counted(tmp_path) == whole, SECONDS, every_s=2), "the last windows arrive"
    assert not any(line.lost or line.evicted or line.late for line in accounts())
    assert set(cluster.stop().values()) == {0}
    for proxy in proxies:
        proxy.close()
    assert sum(proxy.broken for proxy in proxies) > 0, "no link was ever broken: the test tests nothing"
    rows = [batch for device in DEVICES for batch in generated(read_spec(text, COLUMNS, device))]
    compare(tmp_path, rows, spark)
