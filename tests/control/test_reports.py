"""Reports that a node may not give are refused, and change nothing."""

from __future__ import annotations

import pytest

from rove.control.commands import Command
from rove.control.deployment.tables.past_routes import PastRoutes
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import SOURCES_MAX, Tally
from tests.control.desk import Desk
from tests.lines import lines


def counted(origin: Origin) -> Tally:
    return Tally(query=QueryId("q"), origin=origin, delivered=10**9)


def refused(said: list[Command], why: str) -> bool:
    return lines(said) == [f"to d1: Refused, {why}"]


def test_a_device_counts_its_own_rows_only() -> None:
    desk = Desk()
    desk.submit()  # it waits for a gateway, so that nothing is known of its routes
    own, strange = Origin("s", "d1"), Origin("s", "d2")
    desk.report("d1", "device", "gateway", tallies=(counted(own), counted(Origin("q", stage=3))))
    assert refused(desk.report("d1", "device", "gateway", tallies=(counted(strange),)), "identity")
    assert {tally.origin for tally in desk.machine.membership.tallies()} == {own}, "no operator ran there"
    desk.report("edge", "edge", "gateway", tallies=(counted(strange),))
    assert strange in {tally.origin for tally in desk.machine.membership.tallies()}


@pytest.mark.parametrize("names", [("s/d2",), tuple(f"s{n}/d1" for n in range(SOURCES_MAX + 1))])
def test_a_node_has_its_own_sources_and_a_bounded_number_of_them(names: tuple[str, ...]) -> None:
    desk = Desk()
    assert refused(desk.report("d1", "device", "gateway", origins=names), "malformed")
    assert desk.machine.membership.members == {}
    desk.report("d1", "device", "gateway", origins=tuple(f"s{n}/d1" for n in range(SOURCES_MAX)))
    assert len(desk.machine.streams) == SOURCES_MAX


def test_an_edge_counts_rows_of_nodes_that_ever_were_below_it_and_of_no_others() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("e1", "edge", "gateway")
    desk.report("e2", "edge", "gateway")
    desk.report("d1", "device", "e1", origins=("s/d1",))
    desk.report("d2", "device", "e2", "e1", origins=("s/d2",), reaches=("e2",))
    assert not desk.submit().trouble
    one, two = Origin("s", "d1"), Origin("s", "d2")
    forged = desk.report("e1", "edge", "gateway", tallies=(counted(one), counted(two)))
    assert not [said for said in lines(forged) if "Refused" in said]  # e1 may itself have been lied to
    assert known(desk, "e1") == {one}
    assert desk.machine.refused == {"identity": 1}
    desk.report("gateway", "gateway", tallies=(counted(one), counted(two), counted(Origin("s", "ghost"))))
    assert known(desk, "gateway") == {one, two}

    desk.report("d2", "device", "e2", "e1", origins=("s/d2",), reaches=("e1",))  # it moves
    assert desk.deployment.fragments[NodeId("d2")].next == "e1"
    desk.report("e1", "edge", "gateway", tallies=(counted(one), counted(two)))
    desk.report("e2", "edge", "gateway", tallies=(counted(two),))  # what it carried before
    assert (known(desk, "e1"), known(desk, "e2")) == ({one, two}, {two})


def test_after_a_restart_of_the_coordinator_counts_of_old_routes_are_taken() -> None:
    """The routes before its start are not known, and a count that is refused would be missing in the sums."""
    carried = PastRoutes()
    carried.add(NodeId("d1"), (NodeId("e1"), NodeId("e2")))
    carried.add(NodeId("e1"), (NodeId("gateway"),))
    found = {node: carried.may_carry(NodeId(node), NodeId("d1")) for node in ("d1", "e1", "e2", "gateway", "e3")}
    assert found == {"d1": True, "e1": True, "e2": True, "gateway": True, "e3": False}
    assert not carried.may_carry(NodeId("d1"), NodeId("e1"))
    carried.restored()
    assert carried.may_carry(NodeId("e3"), NodeId("d1"))


def known(desk: Desk, node: str) -> set[Origin]:
    return {tally.origin for tally in desk.machine.membership.members[NodeId(node)].tallies.values()}


def test_an_explanation_begins_with_the_rates_that_sources_were_measured_at() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    assert not desk.submit().trouble
    (query,) = desk.machine.deployments.queries.values()

    def explained() -> str:
        return desk.machine.deployments.explained(query)

    assert (
        "links carry, by estimate (100 rows/s for each source: rates are measured while a query reads it):"
        in explained()
    )
    for made in (0, 700, 1_400):
        tally = Tally(query=query.id, origin=Origin("s", "d1"), produced=made)
        desk.report("d1", "device", "gateway", origins=("s/d1",), tallies=(tally,))
    assert "links carry, by estimate from measured rates of all sources:" in explained()
    assert desk.machine.membership.rows_per_s(NodeId("d1"), "s") == 700
    assert "d1 ─► gateway           350 rows/s" in explained()  # a filter keeps half, by estimate
    desk.report("d2", "device", "gateway", origins=("s/d2",))
    assert "measured rates of 1 of 2 sources:" in explained()
