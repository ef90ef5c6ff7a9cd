"""Edges that are drained while rows flow, in worlds where nodes die and links break. These seeds failed once."""

from __future__ import annotations

import pytest

from rove.model.ids import NodeId, QueryId
from rove.sim.draws import drains
from rove.sim.scenario import DRAWS, run_seed
from tests.simulation.story import Story
from tests.simulation.test_transcripts import with_windows_on


@pytest.mark.parametrize("seed", [1, 5, 13, 36, 37, 51])
def test_a_drain_loses_no_row_and_doubles_none(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "DRAINS", 1.0)
    outcome = run_seed(seed, 4, (drains.plan_drains,))
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
