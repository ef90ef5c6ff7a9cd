"""Edges that die and stay dead, with operators on them: the query goes on over another edge, and what is lost is
named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rove.control.asks.requests import AccountLine
from rove.control.deployment.dead.decision import Patience
from rove.control.deployment.deployment import Deployment
from rove.control.members.accounts import excess
from rove.model.ids import NodeId, QueryId, Stage
from rove.plan.stages import Stages, merges, stateful
from rove.sim.draws import deaths
from rove.sim.queries import START_US
from rove.sim.scenario import run_seed
from tests.simulation.story import Story
from tests.simulation.test_transcripts import LOG, counts

SECOND_US = 1_000_000
WEST, EAST, QUERY = NodeId("west"), NodeId("east"), QueryId("q")


def at(where: str) -> Stages:
    """Windows, whose partial results are on an edge."""
    stages = counts()
    hinted = [Stage(n) for n, op in enumerate(stages.operators) if stateful(op) and not merges(op)]
    return replace(stages, hints=tuple((stage, where) for stage in hinted))


def two_edges(durable: bool = False, where: str = "edge", third: bool = False) -> Story:
    """Two devices that know the edges `west` and `east`, and a window of their rows on `east`."""
    story = Story()
    with story.quietly():
        story.coordinator()
        story.world.coordinator.be_patient(Patience(8 * SECOND_US, 8 * SECOND_US))
        story.node("gateway", "gateway", durable=True)
        edges = ("west", "east", "zenith") if third else ("west", "east")
        for name in edges:
            story.node(name, "edge", "gateway", durable=durable)
        for name in ("d1", "d2"):
            story.node(name, "device", *reversed(edges), stream="readings")
        story.passes(3)
        story.submit("q", at(where), LOG)
        story.passes(4)
        make(story)
        assert owners(story) == {"east"}
    return story


def make(story: Story, times: int = 1) -> None:
    for _ in range(times):
        for name in ("d1", "d2"):
            story.makes(name)
        story.passes(2)


def deployment(story: Story) -> Deployment:
    machine = story.world.coordinator.machine
    assert machine is not None
    found = machine.queries[QUERY].deployment
    assert found is not None
    return found


def owners(story: Story) -> set[str]:
    """The nodes on which the windows are placed."""
    found = deployment(story)
    operators = found.terms.stages.operators
    hosts = ((str(node), operators[stage]) for node, part in found.tree.parts.items() for stage in part.hosts)
    return {node for node, operator in hosts if stateful(operator) and not merges(operator)}


def accounts(story: Story) -> tuple[AccountLine, ...]:
    machine = story.world.coordinator.machine
    assert machine is not None
    machine.validate()
    return machine.snapshot(story.world.now, START_US + story.world.now).accounts


def reasons(story: Story) -> str:
    machine = story.world.coordinator.machine
    assert machine is not None
    (line,) = machine.snapshot(story.world.now, START_US + story.world.now).queries
    return " ".join(trouble.reason for trouble in line.troubles)


def delivered(story: Story) -> int:
    worker = story.world.nodes[NodeId("gateway")].worker
    assert worker is not None
    return sum(tally.delivered for tally in worker.report().tallies)


def sources(story: Story) -> list[AccountLine]:
    return [line for line in accounts(story) if line.origin.startswith("readings")]


@pytest.mark.parametrize("durable", [False, True])
def test_the_windows_of_an_edge_that_died_go_on_on_another_edge_and_what_it_had_is_missing(durable: bool) -> None:
    story = two_edges(durable)
    with story.quietly():
        story.kill("east")
        story.passes(6)
        assert owners(story) == {"east"}
        assert "its operators start on another node after 8 s" in reasons(story)
        make(story, times=2)
        assert owners(story) == {"west"}
        before = delivered(story)
        make(story, times=15)
        story.passes(8)
    assert delivered(story) > before
    assert not any(map(excess, accounts(story)))
    assert [line.missing for line in sources(story)] == [2, 2]  # the rows that the dead edge had taken
    assert [line.missing_batches for line in sources(story)] == ["0", "0"]


@pytest.mark.parametrize("durable", [False, True])
def test_an_edge_that_counted_as_dead_and_starts_again_leaves_and_doubles_nothing(durable: bool) -> None:
    story = two_edges(durable)
    with story.quietly():
        story.kill("east")
        story.passes(15)
        make(story, times=8)
        story.start("east")
        make(story, times=8)
        worker = story.world.nodes[EAST].worker
        assert worker is not None
        assert QUERY not in worker.running()
        story.passes(8)
    assert owners(story) == {"west"}
    assert not any(map(excess, accounts(story)))
    assert [line.missing for line in sources(story)] == [2, 2]


def test_an_edge_with_a_disk_leaves_when_it_is_back_also_if_the_coordinator_had_not_told_it_its_part() -> None:
    story = two_edges(durable=True)
    with story.quietly():
        story.world.kill_coordinator()
        story.passes(0.5)
        story.world.start_coordinator()
        story.passes(3)
        story.kill("east")
        story.passes(15)
        make(story, times=4)
        story.start("east")
        make(story, times=6)
    worker = story.world.nodes[EAST].worker
    assert worker is not None
    assert QUERY not in worker.running()
    assert owners(story) == {"west"}


def test_an_edge_that_was_cut_off_and_comes_back_alive_leaves_and_what_it_alone_had_is_missing() -> None:
    story = two_edges()
    with story.quietly():
        for other in ("gateway", "coordinator"):
            story.cut("east", other)
        for other in ("d1", "d2"):
            story.cut(other, "east")
        story.passes(15)
        assert owners(story) == {"west"}
        make(story, times=4)
        for other in ("gateway", "coordinator"):
            story.mend("east", other)
        for other in ("d1", "d2"):
            story.mend(other, "east")
        make(story, times=8)
        worker = story.world.nodes[EAST].worker
        assert worker is not None
        assert QUERY not in worker.running()
        story.passes(8)
    assert not any(map(excess, accounts(story)))
    assert [line.missing for line in sources(story)] == [2, 2]


def test_an_edge_that_its_devices_reach_is_not_dead() -> None:
    story = two_edges()
    with story.quietly():
        story.cut("east", "coordinator")
        story.passes(20)
    assert owners(story) == {"east"}
    assert "only the coordinator" in reasons(story)


def test_operators_that_are_wanted_on_a_node_by_name_wait_for_it() -> None:
    story = two_edges(where="east")
    with story.quietly():
        story.kill("east")
        story.passes(20)
    assert owners(story) == {"east"}
    assert "is wanted there by name" in reasons(story)


@pytest.mark.parametrize("seed", [37, 161, 200, 201, 202, 203, 204, 205, 215, 243, 286])
def test_edges_that_stay_dead_among_other_faults(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deaths, "DEATHS", 1.0)
    assert run_seed(seed, 3, (deaths.plan_deaths,)).trouble == ""


def test_the_replacement_dies_as_well() -> None:
    story = two_edges(third=True)
    with story.quietly():
        (first,) = owners(story)
        story.kill(first)
        story.passes(15)
        (second,) = owners(story)
        make(story, times=2)
        story.kill(second)
        story.passes(15)
        (third,) = owners(story)
        make(story, times=10)
        story.start(first)
        story.start(second)
        make(story, times=6)
        story.passes(8)
    assert len({first, second, third}) == 3
    assert not any(map(excess, accounts(story)))
    assert all(line.missing for line in sources(story))


@pytest.mark.parametrize("after", [7.0, 8.6, 12.0])
def test_a_coordinator_that_restarts_goes_on_with_its_records(after: float) -> None:
    story = two_edges()
    with story.quietly():
        story.kill("east")
        story.passes(after)
        story.world.kill_coordinator()
        story.passes(0.5)
        story.world.start_coordinator()
        story.passes(15)
        assert owners(story) == {"west"}
        make(story, times=8)
        story.start("east")
        make(story, times=4)
        story.passes(8)
        worker = story.world.nodes[EAST].worker
        assert worker is not None
        assert QUERY not in worker.running()
    assert not any(map(excess, accounts(story)))


def test_an_edge_that_a_user_removes_is_replaced_at_once() -> None:
    story = two_edges()
    with story.quietly():
        story.kill("east")
        story.passes(1)
        story.world.remove(EAST)
        story.passes(2)
        assert owners(story) == {"west"}
        make(story, times=8)
        story.passes(8)
    assert not any(map(excess, accounts(story)))
    assert [line.missing for line in sources(story)] == [2, 2]


def test_an_operator_that_comes_back_to_an_edge_with_a_disk_begins_anew() -> None:
    story = two_edges(durable=True)
    with story.quietly():
        make(story, times=8)  # some windows are closed, and their results delivered
        story.kill("east")
        story.passes(15)
        assert owners(story) == {"west"}
        make(story, times=4)
        story.start("east")
        make(story, times=4)
        story.kill("west")
        story.passes(15)
        assert owners(story) == {"east"}
        make(story, times=8)
        story.kill("east", power=True)
        story.passes(1)
        story.start("east")
        make(story, times=8)
        story.passes(8)
    lines = accounts(story)
    assert not any(map(excess, lines))
    names = {line.origin for line in lines if line.origin.startswith("q") and "east" in line.origin}
    assert len(names) == 2  # its operators had one name before, and have another now
    worker = story.world.nodes[EAST].worker
    assert worker is not None
    spans = [spans for t in worker.report().tallies if t.origin.name == "readings" for _, spans in t.counted]
    assert spans
    assert all(each[0] > 12 for each in spans)  # it computes nothing again of what it took before it died
