"""Devices that leave for good: nobody waits for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rove.control.deployment.query import QueryState
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import Entry
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
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


def lonely(others: bool) -> tuple[Story, Worker]:
    """A device whose rows are taken by a window on the gateway that no other device feeds, and that gateway."""
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        if others:
            story.node("d1", "device", "gateway", stream="readings")
        join(story, "d2")
        story.passes(3)
        story.submit("q", counts(), Sink(kind="log"))
        story.passes(2)
        story.makes("d2")
        story.passes(1)
    below, above = (story.world.nodes[NodeId(name)].worker for name in ("d2", "gateway"))
    assert below is not None
    assert above is not None
    assert 2 in below.running()[QUERY].fragment.runs
    assert not below.running()[QUERY].fragment.makes, "the window of its rows is on the gateway"
    assert opened(above) == 2
    return story, above


def join(story: Story, name: str) -> None:
    """A device starts that has room for a watermark and for no window."""
    settings = WorkerSettings(node=NodeId(name), kind="device", parents=(NodeId("gateway"),), slots=2, compress="off")
    story.world.add_node(settings, sources=(SimSource("readings", Origin("readings", name), NEVER_US, 1, 10**9),))
    story.start(name)


def opened(worker: Worker) -> int:
    """How many rows are in open windows."""
    return sum(count.open for count in worker.running()[QUERY].counts().values())


def entries(story: Story) -> list[Entry]:
    shelf = story.world.nodes[NodeId("gateway")].shelf
    assert shelf is not None
    return list(Reader(shelf.disk("log/q/edge0")).rest())


def low(story: Story) -> int:
    """The low watermark that readers of the log know."""
    return max(entry.low for entry in entries(story))


@pytest.mark.parametrize("others", [True, False])
def test_a_window_closes_when_the_last_device_that_fed_it_has_left(others: bool) -> None:
    story, above = lonely(others)
    with story.quietly():
        story.leaves("d2")
        story.passes(3)
    above.validate()
    assert (opened(above), above.running()[QUERY].counts()[Origin("readings", "d2")].delivered) == (0, 2)
    rows = [e for e in entries(story) if e.header.rows]
    assert [e.header.origin.node for e in rows] == ["gateway"]
    if others:
        goes_on(story, 40)
    end_us = (rows[0].header.event_min or 0) + 10_000_000
    goes_to = end_us + 20_000_000 if others else end_us + 1
    assert low(story) >= goes_to, "readers of the log close it too, and nobody is held up by it later"


def test_a_device_that_joins_a_window_which_all_have_left_is_in_time_and_is_waited_for() -> None:
    story, above = lonely(others=True)
    with story.quietly():
        story.leaves("d2")
        story.passes(15)
        join(story, "d3")
        story.passes(5)
        for _ in range(30):
            for name in ("d1", "d3"):
                story.makes(name)
            story.passes(1)
    before = low(story)
    goes_on(story, 40)
    assert low(story) <= before + 15_000_000, "the device is there and makes nothing, so time waits for it"
    counted = above.running()[QUERY].counts()[Origin("readings", "d3")]
    assert counted.late == 0
    assert counted.delivered > 10


def test_a_window_on_a_node_without_a_disk_closes_when_all_devices_have_left() -> None:
    story = town()
    with story.quietly():
        story.submit("q", counts(), Sink(kind="log"))
        story.passes(4)
        story.makes("d1")
        story.makes("d2")
        story.passes(1)
        for name in ("d1", "d2"):
            story.leaves(name)
            story.passes(1)
        story.passes(3)
    for node in (node for node in story.world.nodes.values() if node.worker is not None):
        running = node.worker.running().get(QUERY) if node.worker is not None else None
        assert running is None or not any(count.open for count in running.counts().values()), node.name


def test_an_operator_that_moves_to_a_device_which_starts_again_gives_what_it_has() -> None:
    story, above = lonely(others=False)
    device = story.world.nodes[NodeId("d2")]
    with story.quietly():
        story.kill("d2")
        device.settings = replace(device.settings, slots=8)
        story.passes(2)
        story.start("d2")
        story.passes(6)
    assert device.worker is not None
    assert device.worker.running()[QUERY].fragment.makes, "its new start runs the window itself"
    assert not above.running()[QUERY].fragment.makes
    assert (opened(above), above.running()[QUERY].counts()[Origin("readings", "d2")].delivered) == (0, 2)
    assert [e.header.origin.node for e in entries(story) if e.header.rows] == ["gateway"]

    def account() -> list[tuple[str, int, int, int]]:
        machine = story.world.coordinator.machine
        assert machine is not None
        lines = machine.snapshot(story.world.now, story.world.now).accounts
        return [(line.origin, line.produced, line.delivered, line.lost) for line in lines]

    before = account()
    assert ("readings/d2", 2, 2, 0) in before
    with story.quietly():
        for _ in range(2):
            story.kill("gateway")
            story.passes(1)
            story.start("gateway")
            story.passes(6)
    assert account() == before, "the node with the result starts again, and the rows stay delivered"
