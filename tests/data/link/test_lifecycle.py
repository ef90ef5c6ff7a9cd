"""The states of a link, and whose fault it is when something cannot be."""

from __future__ import annotations

import pytest

from rove.data.link.lifecycle import LINK, LinkEvent, LinkState
from rove.data.link.link import SILENT_US, Link
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import ProtocolError, RoveError
from rove.model.events import Send
from rove.model.ids import NodeId, Origin
from rove.model.lifecycle import IllegalStep
from rove.model.messages import PROTOCOL, Welcome

DEVICE, EDGE = NodeId("device"), NodeId("edge")


def ends() -> tuple[Link, Link]:
    """A device that dials, and the edge it dials; nothing is said yet."""
    device, edge = Link(DEVICE, 1, EDGE, Store(10_000)), Link(EDGE, 1, DEVICE, Store(10_000))
    device.dial("edge")
    return device, edge


def meet(device: Link, edge: Link, now: int) -> list[Send]:
    """The device says hello and the edge answers; what the device sends then."""
    (hello,) = device.tick(now)
    edge.grant(5_000)
    welcomes = edge.heard(hello.message, b"device", now)
    return [send for welcome in welcomes for send in device.heard(welcome.message, "edge", now)]


def states(device: Link, edge: Link) -> tuple[str, str]:
    return device.state.value, edge.state.value


def test_a_link_walks_through_its_states() -> None:
    device, edge = ends()
    assert states(device, edge) == ("dialling", "listening")
    meet(device, edge, 0)
    assert states(device, edge) == ("up", "up")
    header = Header(query="q", origin=Origin("o"), seq=0, through=0, rows=1, born=1)
    assert device.offer(device._store.put(header, bytes(10)), 1)
    assert [entry.header for entry in device.take_back("q")] == [header]
    assert states(device, edge) == ("renewing", "up")
    meet(device, edge, 2)
    assert states(device, edge) == ("up", "up")
    for link in (device, edge):
        link.tick(3 + SILENT_US)
    assert states(device, edge) == ("dialling", "listening")


def test_what_takes_another_route_before_it_was_sent_renews_nothing() -> None:
    device, edge = ends()
    header = Header(query="q", origin=Origin("o"), seq=0, through=0, rows=1, born=1)
    device.offer(device._store.put(header, bytes(10)), 0)
    assert len(device.take_back("q")) == 1
    assert states(device, edge) == ("dialling", "listening")


def test_an_answer_to_a_hello_that_was_not_said_is_the_fault_of_the_peer() -> None:
    device, edge = ends()
    with pytest.raises(ProtocolError) as refused:
        edge.heard(Welcome(PROTOCOL, DEVICE, 1, 1, 0, 1), b"device", 0)
    assert refused.value.why == "unexpected"
    assert states(device, edge) == ("dialling", "listening")


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (LinkState.LISTENING, LinkEvent.WELCOME),
        (LinkState.LISTENING, LinkEvent.LOST),
        (LinkState.DIALLING, LinkEvent.LEFT),
    ],
)
def test_a_step_that_cannot_be_is_a_bug_of_ours_and_nobody_handles_it(state: LinkState, event: LinkEvent) -> None:
    device, edge = ends()
    link = device if state is LinkState.DIALLING else edge
    assert link.state is state
    with pytest.raises(IllegalStep, match=f"is `{state.value}`, where `{event.value}` cannot happen") as broken:
        link._machine.step(event)
    assert not isinstance(broken.value, RoveError)


def test_every_state_has_a_way_to_up() -> None:
    assert set(LINK) == set(LinkState)
    for row in LINK.values():
        assert row[LinkEvent.HELLO] is LinkState.UP
