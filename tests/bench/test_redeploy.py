"""The benchmark of redeployments, and the network that it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench.cores import CoreTime
from bench.redeploy import FULL, QUICK, SMOKE, points
from bench.streets import Shape, Streets, World, built
from bench.workloads import Filtered, Joined, Workload
from rove.control.deployment.holistic import Redeploy
from rove.model.ids import NodeId, Stage
from tests.bench.smoke import smoke

JOIN = Stage(8)


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("redeploy", tmp_path)
    assert set(values) == {
        "deploy_vs_hcqd_16src",
        "deploy_vs_hsqd_16src",
        "p95_changing_vs_calm_stateless",
        "p95_changing_vs_calm_stateful",
        "changes_completed",
        "rows_lost",
    }
    assert values["changes_completed"] == 1
    assert values["rows_lost"] == 0
    assert values["deploy_vs_hsqd_16src"] > 1, "four nodes are less work than all, on any machine"


@pytest.mark.parametrize("redeploy", ["incremental", "holistic_serial", "holistic_concurrent"])
@pytest.mark.parametrize("shape", ["tree", "full", "circle"])
@pytest.mark.parametrize("workload", [partial(Filtered, batch_s=0.1), partial(Joined, batch_s=0.1)])
def test_devices_move_and_every_result_arrives_with_its_latency(
    redeploy: Redeploy, shape: Shape, workload: Callable[[], Workload]
) -> None:
    streets = Streets(queries=2, sources=4, mobile=2, edges=3, shape=shape, between=1, workload=workload)
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
        assert world.latencies
        assert 0 < min(world.latencies) <= max(world.latencies) < 5_000_000
        world.stop()
        assert world.net.run_until(lambda: world.workload.missing() <= 0, 20)
        world.net.run_for(0.3)
        assert world.workload.missing() == 0, "nothing comes twice"
        assert world.workload.made > 0
        world.machine.validate()


def test_a_join_is_where_no_route_of_a_moving_device_can_avoid_it() -> None:
    for shape, where in (("tree", "gateway"), ("full", "edge0"), ("circle", "edge0")):
        streets = Streets(queries=1, sources=4, mobile=2, edges=3, shape=shape, workload=Joined)  # type: ignore[arg-type]
        with built(streets, "incremental") as world:
            assert hosts(world, JOIN) == {where}


def test_joins_climb_with_their_state_and_lose_nothing() -> None:
    workload = partial(Joined, batch_s=0.1, late=3, at="edge")
    streets = Streets(queries=2, sources=2, mobile=0, edges=2, between=3, climbs=True, workload=workload)
    with built(streets, "incremental") as world:
        world.start()
        world.net.run_for(1)
        for n in range(3):
            world.move()
            assert world.net.run_until(world.is_settled, 20)
            assert hosts(world, JOIN) == {f"edge0.{n}"}
            world.net.run_for(0.3)
        world.stop()
        assert world.net.run_until(lambda: world.workload.missing() <= 0, 20)
        world.net.run_for(0.3)
        assert world.workload.missing() == 0
        world.machine.validate()


def test_results_that_do_not_come_are_missing() -> None:
    streets = Streets(queries=1, sources=2, mobile=1, edges=2, workload=Joined)
    with built(streets, "incremental") as world:
        world.start()
        world.net.run_for(3)
        assert world.workload.missing() > 0, "a window is open"
        world.stop()
        assert world.net.run_until(lambda: world.workload.missing() <= 0, 20)


def test_every_figure_has_its_points_and_the_largest_is_judged() -> None:
    for sizes in (SMOKE, QUICK, FULL):
        found = list(points(sizes))
        judged = [point for point in found if point.judged]
        assert [point.streets.sources for point in judged] == [sizes.sources[-1]] * 2
        assert all(point.ways == ("ours", "HCQD", "HSQD") for point in judged)
        assert {point.figure.partition(", ")[0] for point in found} == {"stateless", "stateful", "climbing"}
        assert all(point.changes <= point.streets.between for point in found if point.streets.climbs)
    hard = {(point.figure, point.at) for point in points(QUICK)}
    assert {("stateful, interval", 0.25), ("stateful, mobile", 16), ("stateful, between", 8)} <= hard


def hosts(world: World, stage: Stage) -> set[str]:
    """The nodes where an operator of the first query is."""
    deployment = world.machine.deployments.query("q0").deployment
    assert deployment is not None
    return {node for node, part in deployment.tree.parts.items() if stage in part.hosts}


def test_the_time_of_a_core_is_what_was_used_of_it() -> None:
    clock = CoreTime()
    before = clock.now_us()
    assert clock.now_us() == before, "between two turns it stands still"
    clock.begin(before + 500)
    while clock.now_us() < before + 2_500:
        pass
    assert clock.end() == clock.now_us() >= before + 2_500
