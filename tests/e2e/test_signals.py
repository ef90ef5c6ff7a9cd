"""What signals do to a process of Rove."""

from __future__ import annotations

import os
import signal

from tests.e2e.cluster import Cluster, eventually


def test_a_process_says_where_it_is_when_asked_and_goes_on(cluster: Cluster) -> None:
    os.kill(cluster.pid("coordinator"), signal.SIGUSR1)
    log = cluster.folder / "coordinator.log"
    assert eventually(lambda: "most recent call first" in log.read_text(), 20)
    assert "in run_coordinator" in log.read_text()
    assert cluster.client.ask("streams", None, dict[str, str]) == {}
    assert cluster.stop() == {"coordinator": 0}
