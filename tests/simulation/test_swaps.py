"""Devices that leave edges which hold their partial windows, in worlds where edges die and links break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rove.control.deployment.dead.decision import Patience
from rove.control.deployment.deployment import Deployment
from rove.model.ids import NodeId, QueryId, Stage
from rove.plan.stages import Stages, merges, stateful
from rove.sim.draws import swaps
from rove.sim.draws.surprises import plan_checkpoints
from rove.sim.scenario import run_seed
from tests.simulation.story import Story
from tests.simulation.test_transcripts import LOG, counts

D1, EAST, WEST, GATEWAY = (NodeId(name) for name in ("d1", "east", "west", "gateway"))


@pytest.mark.parametrize("seed", [2, 3, 4, 5, 7, 12, 171, 440, 462])
def test_devices_that_swap_edges_lose_no_row_and_double_none(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swaps, "SWAPS", 1.0)
    outcome = run_seed(seed, 3, (swaps.plan_swaps,))
    assert outcome.trouble == ""


def test_devices_swap_edges_that_take_checkpoints() -> None:
    """Late rows were on the disk of the gateway, and after a power cut nobody told readers of them."""
    assert run_seed(212, 3, (swaps.plan_swaps, plan_checkpoints)).trouble == ""


def hinted(condition: str = "") -> Stages:
    """Windows over rows of a condition, whose partial results are on an edge."""
    stages = counts(condition)
    partial = [Stage(n) for n, op in enumerate(stages.operators) if stateful(op) and not merges(op)]
    return replace(stages, hints=tuple((stage, "edge") for stage in partial))


def leaving(durable: bool = False, stages: Stages | None = None) -> Story:
    """A device leaves the east, which holds its window, and is told so. The east has not been told yet."""
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        for name in ("west", "east"):
            story.node(name, "edge", "gateway", durable=durable)
        for name in ("d1", "d2"):
            story.node(name, "device", "east", "west", stream="readings")
        story.passes(3)
        story.submit("q", hinted() if stages is None else stages, LOG)
        story.passes(4)
        for _ in range(2):
            make(story)
        assert owners(story) == {EAST}
        story.makes("d1")
        story.passes(0.0015)
        story.cut("d1", "east")
        for _ in range(4000):
            if deployment(story).tree.parts[D1].held:
                return story
            story.passes(0.001)
    raise AssertionError("the device did not leave")


def make(story: Story) -> None:
    for name in ("d1", "d2"):
        story.makes(name)
    story.passes(2)


def deployment(story: Story) -> Deployment:
    machine = story.world.coordinator.machine
    assert machine is not None
    found = machine.queries[QueryId("q")].deployment
    assert found is not None
    return found


def owners(story: Story) -> set[NodeId]:
    found = deployment(story)
    hosts = ((node, stage) for node, part in found.tree.parts.items() for stage in part.hosts)
    return {node for node, stage in hosts if found.meetings.is_stateful(stage)}


def reasons(story: Story) -> str:
    machine = story.world.coordinator.machine
    assert machine is not None
    (line,) = machine.snapshot(story.world.now, story.world.now).queries
    return " ".join(trouble.reason for trouble in line.troubles)


def balances(story: Story) -> None:
    """Everything that was made is in a window, none of it twice."""
    worker = story.world.nodes[GATEWAY].worker
    machine = story.world.coordinator.machine
    assert worker is not None
    assert machine is not None
    machine.validate()
    for line in machine.snapshot(story.world.now, story.world.now).accounts:
        if line.origin.startswith("readings"):
            assert line.produced == line.delivered + line.open + line.late, line
            assert not line.missing, line
    assert not list(worker.running()[QueryId("q")].pipeline.held())
    assert not deployment(story).tree.parts[D1].held
    assert all(not part.releases for part in deployment(story).tree.parts.values())


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("after", [0.0, 0.002, 0.004, 0.1, 1.2])
@pytest.mark.parametrize("who", ["gateway", "coordinator", "d1 back", "d1 on"])
def test_a_device_that_leaves_is_in_one_result_whatever_comes_between(who: str, after: float, durable: bool) -> None:
    story = leaving(durable)
    with story.quietly():
        story.passes(after)
        if who == "coordinator":
            story.world.kill_coordinator()
            story.passes(1)
            story.world.start_coordinator()
        elif who == "gateway":
            story.kill("gateway", power=True)
            story.passes(1)
            story.start("gateway")
        elif who == "d1 back":
            story.cut("d1", "west")
            story.mend("d1", "east")
        for _ in range(6):
            make(story)
        story.passes(5)
    balances(story)


def test_a_device_with_a_disk_that_has_left_an_edge_may_send_again_what_an_earlier_start_had_made() -> None:
    """Lateness is decided on the device, so it computes its input again after a restart."""
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        for name in ("west", "east"):
            story.node(name, "edge", "gateway", durable=True)
        story.node("d1", "device", "east", "west", stream="readings", durable=True)
        story.node("d2", "device", "east", "west", stream="readings")
        story.passes(3)
        story.submit("q", hinted(), LOG)
        story.passes(4)
        for _ in range(2):
            make(story)
        for _ in range(2):
            story.kill("d1")
            story.passes(1)
            story.start("d1")
            for _ in range(2):
                make(story)
        story.cut("d1", "east")
        for _ in range(4):
            make(story)
        assert deployment(story).tree.parts[D1].lifts
        for _ in range(2):
            story.kill("d1")
            story.passes(1)
            story.start("d1")
            for _ in range(3):
                make(story)
        story.passes(5)
    balances(story)


@pytest.mark.parametrize("after", [0.0, 0.002, 0.004, 0.1, 1.2])
def test_an_edge_with_a_disk_that_dies_when_it_is_left_says_later_how_far_it_came(after: float) -> None:
    story = leaving(durable=True)
    with story.quietly():
        story.passes(after)
        story.kill("east", power=True)
        for _ in range(3):
            make(story)
        if after < 0.1:
            assert deployment(story).tree.parts[D1].held
            assert "rows of devices that have left it wait at `gateway` until it reports" in reasons(story)
        story.start("east")
        for _ in range(3):
            make(story)
        story.passes(5)
    balances(story)


@pytest.mark.parametrize("after", [0.0, 0.002, 0.004])
def test_the_rows_of_a_device_go_on_when_its_old_edge_has_lost_its_windows(after: float) -> None:
    story = leaving()
    with story.quietly():
        story.passes(after)
        story.kill("east")
        story.passes(1)
        story.start("east")
        for _ in range(6):
            make(story)
        story.passes(8)
    machine = story.world.coordinator.machine
    assert machine is not None
    assert not deployment(story).tree.parts[D1].held
    lines = machine.snapshot(story.world.now, story.world.now).accounts
    mine = next(line for line in lines if line.origin == "readings/d1")
    assert mine.produced == mine.delivered + mine.open + mine.late + mine.missing
    assert 0 < mine.missing <= 4, "the rows of its open windows, which the edge alone had"


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_rows_that_wait_for_an_old_edge_go_on_when_it_counts_as_dead(alone: bool, durable: bool) -> None:
    story = leaving(durable)
    with story.quietly():
        story.world.coordinator.be_patient(Patience(8_000_000, 8_000_000))
        if alone:
            story.passes(2)
            story.cut("d2", "east")
            for _ in range(8):
                story.passes(0.5)
            story.cut("east", "gateway")
        story.kill("east")
        for _ in range(8):
            make(story)
        assert not deployment(story).tree.parts[D1].held
        assert alone or owners(story) == {WEST}
        story.mend("d1", "east")
        story.start("east")
        for _ in range(6):
            make(story)
        story.passes(8)
    machine, worker = story.world.coordinator.machine, story.world.nodes[GATEWAY].worker
    assert machine is not None
    assert worker is not None
    machine.validate()
    assert not list(worker.running()[QueryId("q")].pipeline.held())
    for line in machine.snapshot(story.world.now, story.world.now).accounts:
        if line.origin.startswith("readings"):
            assert line.produced == line.delivered + line.open + line.late + line.missing, line


def test_a_query_is_stopped_or_updated_while_a_device_leaves() -> None:
    story = leaving(stages=hinted("value > 1"))
    with story.quietly():
        story.update("q", hinted("value > 2"))
        story.passes(3)
        make(story)
        story.passes(3)
        balances(story)
    story = leaving()
    with story.quietly():
        story.stop("q")
        story.passes(3)
    for node in story.world.nodes.values():
        assert node.worker is not None
        assert QueryId("q") not in node.worker.running()
