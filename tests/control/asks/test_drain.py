"""Draining a node: what is refused, that nothing changes then, and that a coordinator remembers a drain."""

from __future__ import annotations

import pytest

from rove.control.asks.requests import Drain, Drained, NodeLine, from_body
from rove.control.commands import Command, Event, Keep
from rove.control.coordinator import Coordinator
from rove.model.ids import NodeId, QueryId
from tests.control.desk import Desk

EDGE = NodeId("edge")


def town() -> Desk:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("edge", "edge", "gateway")
    desk.report("device", "device", "edge", origins=("s/device",))
    return desk


@pytest.mark.parametrize(
    ("node", "back", "says"),
    [
        ("nobody", False, "no node `nobody`"),
        ("device", False, "has sources of s"),
        ("gateway", False, "is the last gateway"),
        ("edge", True, "is not being drained"),
    ],
)
def test_a_drain_that_cannot_be_is_refused_and_changes_nothing(node: str, back: bool, says: str) -> None:
    desk = town()
    assert says in desk.ask("drain", Drain(name=node, back=back)).trouble
    assert desk.beside_the_answer == []
    assert not any(member.record.draining for member in desk.machine.membership.members.values())


def test_the_end_of_a_query_is_not_drained() -> None:
    desk = town()
    desk.report("second", "gateway")
    assert not desk.submit().trouble
    assert "the rows of q end at `gateway`" in desk.ask("drain", Drain(name="gateway")).trouble


def test_a_node_is_drained_once_and_comes_back_once() -> None:
    desk = town()
    assert from_body(desk.ask("drain", Drain(name="edge")).body, Drained) == Drained("edge", True, {}, 0)
    assert desk.beside_the_answer == ["keep node edge"]
    assert "is being drained already" in desk.ask("drain", Drain(name="edge")).trouble
    assert desk.machine.membership.topology.is_drained(EDGE)
    states = {line.node: line.state for line in from_body(desk.ask("topology", None).body, list[NodeLine])}
    assert states == {"gateway": "up", "edge": "draining", "device": "up"}
    assert not from_body(desk.ask("drain", Drain(name="edge", back=True)).body, Drained).draining
    assert not desk.machine.membership.topology.is_drained(EDGE)


def test_a_coordinator_that_starts_again_still_drains_and_a_report_does_not_end_it() -> None:
    desk = Desk()
    records: dict[tuple[str, str], bytes] = {}
    handle = desk.machine.handle

    def kept(event: Event, now: int, wall: int = 0) -> list[Command]:
        commands = handle(event, now, wall)
        records.update({(c.kind, c.name): c.record for c in commands if isinstance(c, Keep) and c.record is not None})
        return commands

    desk.machine.handle = kept  # type: ignore[method-assign]
    desk.report("gateway", "gateway")
    desk.report("edge", "edge", "gateway")
    desk.report("device", "device", "edge", origins=("s/device",))
    assert not desk.submit().trouble
    assert not desk.ask("drain", Drain(name="edge")).trouble
    desk.machine = Coordinator()
    desk.machine.restore((kind, name, data) for (kind, name), data in records.items())
    assert desk.machine.membership.topology.is_drained(EDGE)
    desk.report("edge", "edge", "gateway")
    assert desk.machine.membership.members[EDGE].record.draining
    assert desk.machine.queries[QueryId("q")].drained == {EDGE: ""}


def test_new_routes_avoid_a_node_that_is_being_drained() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for cell in ("east", "west"):
        desk.report(cell, "edge", "gateway")
    desk.ask("drain", Drain(name="east"))
    desk.report("d", "device", "east", "west", origins=("s/d",))
    assert not desk.submit().trouble
    assert list(desk.deployment.tree.route(NodeId("d"))) == ["d", "west", "gateway"]


def test_a_device_that_knows_another_way_takes_it_when_its_edge_is_drained() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for cell in ("east", "west"):
        desk.report(cell, "edge", "gateway")
    desk.report("d", "device", "east", "west", origins=("s/d",))
    assert not desk.submit().trouble
    assert list(desk.deployment.tree.route(NodeId("d"))) == ["d", "east", "gateway"]
    desk.ask("drain", Drain(name="east"))
    assert list(desk.deployment.tree.route(NodeId("d"))) == ["d", "west", "gateway"]
