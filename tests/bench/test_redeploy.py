"""The benchmark of redeployments, and the network that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cores import CoreTime
from bench.streets import Shape, Streets, built
from rove.control.deployment.holistic import Redeploy
from rove.model.ids import NodeId
from tests.bench.smoke import smoke


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("redeploy", tmp_path)
    assert set(values) == {
        "deploy_vs_hcqd_16src",
        "deploy_vs_hsqd_16src",
        "p95_changing_vs_calm_stateless",
        "changes_completed",
        "rows_lost",
    }
    assert values["changes_completed"] == 1
    assert values["rows_lost"] == 0
    assert values["deploy_vs_hsqd_16src"] > 1, "four nodes are less work than all, on any machine"


@pytest.mark.parametrize("redeploy", ["incremental", "holistic_serial", "holistic_concurrent"])
@pytest.mark.parametrize("shape", ["tree", "full", "circle"])
def test_devices_move_and_every_batch_arrives_with_its_latency(redeploy: Redeploy, shape: Shape) -> None:
    streets = Streets(queries=2, sources=3, mobile=2, edges=3, shape=shape, between=1, batch_s=0.1)
    with built(streets, redeploy) as world:
        topology = world.machine.membership.topology
        assert topology.neighbours(NodeId("d0.0")) == ("edge0",)
        assert len(topology.neighbours(NodeId("gateway"))) == (3 if shape == "tree" else 1)
        world.start()
        for n in range(4):
            world.move()
            assert not world.is_settled()
            assert world.net.run_until(world.is_settled, 20)
            assert topology.neighbours(NodeId("d0.0")) == (f"edge{(n + 1) % 3}",)
            assert topology.neighbours(NodeId("d1.1")) == (f"edge{(n + 3) % 3}",)
            world.net.run_for(0.3)
        world.stop()
        made = sum(world.made.values())
        assert world.net.run_until(lambda: world.delivered() >= made, 20)
        assert world.delivered() == made
        assert len(world.latencies) == made // streets.batch_rows
        assert 0 < min(world.latencies) <= max(world.latencies) < 5_000_000
        world.machine.validate()


def test_the_time_of_a_core_is_what_was_used_of_it() -> None:
    clock = CoreTime()
    before = clock.now_us()
    assert clock.now_us() == before, "between two turns it stands still"
    clock.begin(before + 500)
    while clock.now_us() < before + 2_500:
        pass
    assert clock.end() == clock.now_us() >= before + 2_500
