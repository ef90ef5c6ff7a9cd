"""Devices that leave for good: nobody waits for them."""

from __future__ import annotations

import pytest

from rove.control.deployment.query import QueryState
from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.sim.nodes import SimSource
from tests.simulation.story import NEVER_US, Story
from tests.simulation.test_transcripts import counts

QUERY = QueryId("q")


def town() -> Story:
    """An edge with two devices below it."""
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("edge", "edge", "gateway")
        for name in ("d1", "d2"):
            story.node(name, "device", "edge", stream="readings")
        story.passes(3)
    return story


def windows(story: Story) -> int:
    """How many windows of the query have arrived."""
    machine = story.world.coordinator.machine
    assert machine is not None
    lines = machine.snapshot(story.world.now, story.world.now).accounts
    return sum(line.delivered for line in lines if line.origin.startswith("q#4"))


def state(story: Story) -> QueryState:
    machine = story.world.coordinator.machine
    assert machine is not None
    return machine.queries[QUERY].state


def goes_on(story: Story, seconds: int) -> None:
    with story.quietly():
        for _ in range(seconds):
            story.makes("d1")
            story.passes(1)


@pytest.mark.parametrize("known", [True, False])
def test_a_window_waits_for_a_device_that_is_away_until_the_device_is_removed(known: bool) -> None:
    story = town()
    with story.quietly():
        if known:
            story.submit("q", counts(), Sink(kind="log"))
            story.passes(4)
        story.kill("d2")
        story.passes(8)
        if not known:
            story.submit("q", counts(), Sink(kind="log"))
            story.passes(4)
    goes_on(story, 30)
    assert windows(story) == 0
    story.world.remove(NodeId("d2"))
    goes_on(story, 30)
    assert windows(story) > 3
    assert state(story) is QueryState.RUNNING


def test_a_device_that_says_goodbye_is_not_waited_for() -> None:
    story = town()
    with story.quietly():
        story.submit("q", counts(), Sink(kind="log"))
        story.passes(4)
        story.makes("d2")
        story.leaves("d2")
    goes_on(story, 30)
    assert windows(story) > 1
    assert state(story) is QueryState.RUNNING


def test_an_operator_keeps_what_it_took_of_a_device_that_left_and_ran_the_watermark_below_it() -> None:
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("d1", "device", "gateway", stream="readings")
        settings = WorkerSettings(
            node=NodeId("d2"), kind="device", parents=(NodeId("gateway"),), slots=2, compress="off"
        )
        source = SimSource("readings", Origin("readings", "d2"), NEVER_US, 1, 10**9)
        story.world.add_node(settings, sources=(source,))
        story.start("d2")
        story.passes(3)
        story.submit("q", counts(), Sink(kind="log"))
        story.passes(2)
        below, above = (story.world.nodes[NodeId(name)].worker for name in ("d2", "gateway"))
        assert below is not None
        assert above is not None
        assert 2 in below.running()[QUERY].fragment.runs
        assert not below.running()[QUERY].fragment.makes, "the window of its rows is on the gateway"
        story.makes("d2")
        story.passes(1)
        assert sum(count.open for count in above.running()[QUERY].counts().values()) == 2
        story.leaves("d2")
        story.passes(2)
    above.validate()
    assert sum(count.open for count in above.running()[QUERY].counts().values()) == 2
    assert any(True for _ in above.running()[QUERY].pipeline.open_batches())
