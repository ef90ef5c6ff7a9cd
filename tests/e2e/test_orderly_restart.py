"""A real device is stopped with SIGTERM and started again: rows that were delivered stay delivered."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rove.api.accounts import excess
from rove.control.asks.requests import AccountLine, QueryLine
from tests.e2e.cluster import Cluster, eventually
from tests.e2e.test_processes import WINDOWS_PY
from tests.runtime.queries import COLUMNS

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

DELIVERED = 2_000
WATCHED_S = 15


def of_tram(cluster: Cluster) -> dict[str, AccountLine]:
    """The accounts of the rows that each start of the device has made."""
    lines = cluster.client.ask("status", None, list[AccountLine])
    return {line.origin: line for line in lines if line.origin.startswith("trams/")}


@pytest.mark.parametrize("where", ["device", "edge"])
@pytest.mark.parametrize("keeps", [True, False])
def test_delivered_rows_stay_delivered_when_their_device_is_stopped_and_started_again(
    cluster: Cluster, tmp_path: Path, where: str, keeps: bool
) -> None:
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    cluster.add("edge", "edge", listen="tcp://127.0.0.1:0", parents=["gateway"])
    cluster.add(
        "tram",
        "device",
        parents=["edge"],
        sources=["trams=generate:rows=50,rate=20,step_us=1000"],
        columns={"trams": COLUMNS},
        **({"folder": str(tmp_path / "tram")} if keeps else {}),
    )
    cluster.start("gateway", "edge", "tram")
    assert eventually(lambda: "trams" in cluster.client.ask("streams", None, dict[str, str]), 60)
    text = (
        WINDOWS_PY.format(columns=COLUMNS, where=where).replace('"trains"', '"trams"').replace("5 seconds", "1 second")
    )
    (tmp_path / "riders.py").write_text(text)
    cluster.submit(tmp_path / "riders.py", "--sink", "log")
    running = lambda: [q.state for q in cluster.client.ask("queries", None, list[QueryLine])] == ["running"]  # noqa: E731
    assert eventually(running, 60)
    assert eventually(lambda: sum(line.delivered for line in of_tram(cluster).values()) >= DELIVERED, 60)

    cluster.end("tram")
    time.sleep(2)  # what it said last has come
    (origin,) = of_tram(cluster)
    before = of_tram(cluster)[origin]
    cluster.start("tram")
    assert eventually(lambda: len(of_tram(cluster)) == 2, 60), of_tram(cluster)

    def settled() -> bool:
        line = of_tram(cluster)[origin]
        return line.delivered >= before.delivered and line.in_flight == 0

    assert eventually(settled, 60), (before, of_tram(cluster))
    end = time.monotonic() + WATCHED_S
    while time.monotonic() < end:
        line = of_tram(cluster)[origin]
        assert line.delivered >= before.delivered, (before, line)
        assert excess(line) == 0
        time.sleep(1)
    line = of_tram(cluster)[origin]
    if keeps and where == "device":
        assert (line.lost, line.missing, line.delivered) == (0, 0, line.produced), "its windows are on its disk"
    else:
        assert line.lost <= before.open + before.in_flight, (before, line)
