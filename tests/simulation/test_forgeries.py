"""A relay that forges, and news that come late: whose link stands still, and whose does not."""

from __future__ import annotations

from random import Random

import pytest

from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.sim import scenario
from rove.sim.draws import forgeries
from rove.sim.draws.forgeries import MemberForger
from tests.simulation.story import Story
from tests.simulation.test_transcripts import plain


def cells() -> Story:
    """Two cells with a device below each, and a query that takes their rows as they are."""
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        for cell, device in (("west", "d1"), ("east", "d2")):
            story.node(cell, "edge", "gateway")
            story.node(device, "device", cell, stream="readings")
        story.passes(3)
        story.submit("q", plain(), Sink(kind="log"))
        story.passes(3)
    return story


def delivered(story: Story) -> dict[str, int]:
    """The rows that the gateway has written, by device."""
    worker = story.world.nodes[NodeId("gateway")].worker
    assert worker is not None
    return {tally.origin.node: tally.delivered for tally in worker.report().tallies if tally.delivered}


def refused(story: Story) -> int:
    worker = story.world.nodes[NodeId("gateway")].worker
    assert worker is not None
    return worker.refused.get("identity", 0)


def goes_on(story: Story, seconds: int, *names: str) -> None:
    with story.quietly():
        for _ in range(seconds):
            for name in names:
                story.makes(name)
            story.passes(1)


def test_rows_of_a_device_all_arrive_whatever_a_relay_forges_in_its_name() -> None:
    story = cells()
    forger = MemberForger(NodeId("east"), Random(1), 5)
    story.world.forger = forger
    story.world.listeners.append(forger)
    goes_on(story, 40, "d1", "d2")
    goes_on(story, 30)
    assert (forger.made, refused(story)) == (5, forger.refused)
    assert forger.refused > 2
    assert delivered(story) == {"d1": 80, "d2": 80}, "the frames that were replaced have come after all"


def test_a_relay_that_only_forges_stops_its_own_link_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    story = cells()
    forger = MemberForger(NodeId("east"), Random(1), 10**9)
    monkeypatch.setattr(forgeries, "SHARE", 1)
    story.world.forger = forger
    story.world.listeners.append(forger)
    goes_on(story, 20, "d1", "d2")
    assert delivered(story) == {"d1": 40}
    assert forger.made > refused(story) == forger.refused > 3, "frames that are not the next one are not looked at"
    worker = story.world.nodes[NodeId("gateway")].worker
    assert worker is not None
    ((trouble,),) = worker.troubles_of_queries().values()
    assert trouble.text.startswith("`east` sends batches of `readings/d1`, which is not below it")
    story.world.forger = None
    goes_on(story, 20)
    assert delivered(story) == {"d1": 40, "d2": 40}
    assert worker.troubles_of_queries() == {}


def test_a_device_that_joins_while_a_relay_above_hears_no_orders_holds_nobody_up() -> None:
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("roof", "edge", "gateway")
        story.node("west", "edge", "roof")
        story.node("d1", "device", "west", stream="readings")
        story.passes(3)
        story.submit("q", plain(), Sink(kind="log"))
        story.passes(3)
        story.cut("roof", "coordinator")
        story.node("d3", "device", "west", stream="readings")
        story.passes(2)
    goes_on(story, 10, "d1", "d3")
    assert delivered(story) == {"d1": 20}, "it was not told yet to send"
    with story.quietly():
        story.mend("roof", "coordinator")
        story.passes(3)
    goes_on(story, 10, "d1", "d3")
    goes_on(story, 2)
    assert delivered(story) == {"d1": 40, "d3": 20}
    roof = story.world.nodes[NodeId("roof")].worker
    assert roof is not None
    assert roof.refused.get("identity", 0) == 0


def test_a_gateway_that_starts_without_the_coordinator_takes_what_it_took_before() -> None:
    story = cells()
    story.cut("gateway", "coordinator")
    story.kill("gateway")
    with story.quietly():
        story.start("gateway")
    goes_on(story, 10, "d1", "d2")
    assert (delivered(story), refused(story)) == ({"d1": 20, "d2": 20}, 0)


def test_an_edge_that_was_cut_off_sends_rows_of_a_device_that_was_removed_since() -> None:
    story = cells()
    story.cut("west", "gateway")
    goes_on(story, 2, "d1")
    with story.quietly():
        story.kill("d1")
        story.world.remove(NodeId("d1"))
        story.passes(60)
    story.kill("gateway")
    with story.quietly():
        story.start("gateway")
        story.passes(2)
    story.mend("west", "gateway")
    goes_on(story, 10)
    assert (delivered(story), refused(story)) == ({"d1": 4}, 0)


def test_some_histories_have_a_member_that_forges() -> None:
    worlds = [scenario.build(Random(seed), 12) for seed in range(20)]
    assert sum(world.forger is not None for world in worlds) >= 4
