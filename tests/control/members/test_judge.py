"""Who must have reported before batches of an origin are named as missing."""

from __future__ import annotations

import pytest

from rove.model.events import Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Tally
from tests.control.desk import Desk

Q, MINE, OTHERS = QueryId("q"), Origin("s", "d1"), Origin("s", "d2")


def city() -> Desk:
    """Two devices below one edge node, and one below another, in one query."""
    desk = Desk()
    desk.report("gateway", "gateway")
    for edge in ("west", "east"):
        desk.report(edge, "edge", "gateway")
    for device, edge in (("d1", "west"), ("d2", "west"), ("d3", "east")):
        desk.report(device, "device", edge, origins=(f"s/{device}",))
    assert not desk.submit().trouble
    reports(desk)
    reports(desk)
    return desk


def reports(desk: Desk, *silent: str) -> None:
    """All nodes report but the silent ones. The rows of d1 and d2 are nowhere."""
    for node in ("gateway", "west", "east", "d1", "d2", "d3"):
        if node in silent:
            continue
        if node[0] != "d":
            desk.report(node, "gateway" if node == "gateway" else "edge", *([] if node == "gateway" else ["gateway"]))
            continue
        made = Tally(query=Q, origin=Origin("s", node), produced=100, made=10)
        tallies = () if node == "d3" else (made,)
        desk.report(node, "device", "east" if node == "d3" else "west", origins=(f"s/{node}",), tallies=tallies)


def missing(desk: Desk, *silent: str) -> set[str]:
    """The devices whose batches are named as missing, while some nodes have not reported since the coordinator's
    start."""
    for node in silent:
        desk.machine.membership.members[NodeId(node)].conn = None
    for _ in range(15):
        reports(desk, *silent)
        desk.machine.handle(Tick(), desk.now, desk.now)
    return {origin.node for origin, _ in desk.machine.membership.missing.lines(Q)}


@pytest.mark.parametrize(
    ("silent", "named"),
    [
        ((), {"d1", "d2"}),
        (("d3",), {"d1", "d2"}),  # a device holds nobody else's batches
        (("d2",), {"d1"}),  # it may hold its own
        (("east",), {"d1", "d2"}),  # nothing of them ever came there
        (("west",), set()),
        (("gateway",), set()),
    ],
    ids=lambda names: "-".join(sorted(names)) or "nobody",
)
def test_who_has_not_reported_hides_only_what_it_may_hold(silent: tuple[str, ...], named: set[str]) -> None:
    assert missing(city(), *silent) == named


def test_a_device_that_refuses_its_fragment_hides_nothing_of_others() -> None:
    desk = city()
    desk.running["d3"] = {}
    for _ in range(15):
        desk.running["d3"] = {}
        reports(desk)
        desk.machine.handle(Tick(), desk.now, desk.now)
    assert {origin.node for origin, _ in desk.machine.membership.missing.lines(Q)} == {"d1", "d2"}
