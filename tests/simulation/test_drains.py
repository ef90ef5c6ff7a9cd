"""Edges that are drained while rows flow, in worlds where nodes die and links break. These seeds failed once."""

from __future__ import annotations

import pytest

from rove.model.ids import NodeId, QueryId
from rove.plan import build
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import CountWindow, Source, Watermark
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.sim.draws import asides, drains
from rove.sim.queries import SCHEMA
from rove.sim.scenario import DRAWS, run_seed
from tests.simulation.story import Story
from tests.simulation.test_transcripts import LOG, with_windows_on


@pytest.mark.parametrize("seed", [1, 5, 13, 36, 37, 51])
def test_a_drain_loses_no_row_and_doubles_none(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "DRAINS", 1.0)
    outcome = run_seed(seed, 4, (drains.plan_drains,))
    assert outcome.trouble == ""


@pytest.mark.parametrize("seed", [167, 212, 302])
def test_a_drain_to_the_side_loses_no_row_and_doubles_none(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asides, "ASIDES", 1.0)
    outcome = run_seed(seed, 3, (asides.plan_asides,))
    assert outcome.trouble == ""


@pytest.mark.parametrize("seed", [127, 151, 152])
def test_a_drain_among_all_other_surprises(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "DRAINS", 1.0)
    outcome = run_seed(seed, 6, DRAWS)
    assert outcome.trouble == ""


def test_an_operator_goes_on_without_the_state_of_a_node_that_is_removed() -> None:
    story = Story()
    with_windows_on(story, "hill", "mast")
    with story.quietly():
        story.drain("mast")
        story.passes(0.002)  # the hill is told to wait, and the mast is not told to send yet
        story.kill("mast")
        story.passes(1)
        machine, hill = story.world.coordinator.machine, story.world.nodes[NodeId("hill")].worker
        assert machine is not None
        assert hill is not None
        deployment = machine.queries[QueryId("q")].deployment
        assert deployment is not None
        assert deployment.tree.parts[NodeId("hill")].awaits
        moves = hill.running()[QueryId("q")].pipeline.moves
        waiting = [stage for stage in hill.running()[QueryId("q")].runs if moves.awaited(stage) is not None]
        assert waiting
        story.world.remove(NodeId("mast"))
        story.passes(3)
    assert not deployment.tree.parts[NodeId("hill")].moves
    moves = hill.running()[QueryId("q")].pipeline.moves
    assert [stage for stage in waiting if moves.awaited(stage) is not None] == []


@pytest.mark.parametrize("dies", ["hill", "mast"])
@pytest.mark.parametrize("after", [0.002, 0.02])
def test_a_watermark_that_moves_goes_on_if_a_node_without_a_disk_dies_meanwhile(dies: str, after: float) -> None:
    """Windows of rows are at the gateway, where all routes end, and their watermark is on the mast."""
    story = Story()
    timed = Watermark(Source("readings", SCHEMA), "ts", 1_000_000)
    calls = (build.aggregate_call(parse_expression("max(value)"), timed.schema, "max(value)", "most"),)
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        for name, above in (("hill", "gateway"), ("mast", "hill")):
            story.node(name, "edge", above)
        for name, above in (("d1", "mast"), ("d2", "gateway")):
            story.node(name, "device", above, stream="readings", slots=0)
        story.passes(3)
        story.submit("q", Stages.of({"out": optimize(CountWindow(timed, ("key",), calls, 1_000_000, 2))}), LOG)
        story.passes(4)
        story.makes("d1")
        story.passes(2)
        story.drain("mast")
        story.passes(after)
        machine = story.world.coordinator.machine
        assert machine is not None
        deployment = machine.queries[QueryId("q")].deployment
        assert deployment is not None
        assert not deployment.fragments[NodeId("hill")].makes
        assert deployment.tree.parts[NodeId("hill")].awaits
        story.kill(dies)
        story.start(dies)
        story.passes(6)
        story.makes("d1")
        story.passes(3)
    assert not any(part.moves for part in deployment.tree.parts.values())
    for node in story.world.nodes.values():
        assert node.worker is not None
        assert not any(True for running in node.worker.running().values() for _ in running.pipeline.held()), node.name
        assert not len(node.worker.store), node.name
