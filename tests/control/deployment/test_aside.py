"""Operators of a node that is drained move to a node beside its route, if none above may run them."""

from __future__ import annotations

import dataclasses

from rove.control.deployment.aside.drain import drain
from rove.control.deployment.aside.leads import way
from rove.control.deployment.change_set import Difference
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.migration import arrived, awaiting, lost, removed
from rove.control.deployment.rollout import Rollout
from rove.control.members.below import Below
from rove.control.members.membership import Member, NodeRecord
from rove.control.placement import Load, Request, strategy
from rove.control.topology.topology import Link, Node, Topology
from rove.model.ids import NodeId, QueryId, Stage
from tests.control.cities import numbered, request
from tests.control.planned import deployed

WEST, EAST, GATEWAY = NodeId("west"), NodeId("east"), NodeId("gw")


def cells(reach: str = "west east") -> Topology:
    """Two devices below two cells, each below a hub of its own; the second device may reach fewer cells."""
    hubs = [Node(NodeId(f"{cell}_hub"), "edge", 0) for cell in (WEST, EAST)]
    nodes = [Node(GATEWAY, "gateway"), *(Node(cell, "edge") for cell in (WEST, EAST)), *hubs]
    devices = [Node(NodeId(name), "device") for name in ("d1", "d2")]
    links = [Link(hub.id, GATEWAY) for hub in hubs] + [Link(cell, NodeId(f"{cell}_hub")) for cell in (WEST, EAST)]
    links += [Link(NodeId("d1"), cell) for cell in (WEST, EAST)]
    links += [Link(NodeId("d2"), NodeId(cell)) for cell in reach.split()]
    return Topology([*nodes, *devices], links)


def counted_on_edges(topology: Topology) -> tuple[Deployment, Request, Stage]:
    """Windows of two devices, with their partial counts on an edge."""
    asked = request("count", {"s": ["d1", "d2"]})
    partial = Stage(numbered(asked.stages, "Aggregate", "partial"))
    asked = dataclasses.replace(asked, hints={**asked.hints, partial: "edge"})
    return deployed(asked, strategy("bottom_up")(asked, topology, Load())), asked, partial


def drained(reach: str = "west east") -> tuple[Deployment, Stage, str]:
    """The deployment after east was drained, and why that cannot be."""
    topology = cells(reach)
    topology.mark(NodeId("d1"), WEST, works=False)
    topology.mark(NodeId("d2"), WEST, works=False) if "west" in reach else None
    deployment, asked, partial = counted_on_edges(topology)
    assert deployment.hosts(partial, EAST)
    topology.mark(NodeId("d1"), WEST, works=True)
    topology.mark(NodeId("d2"), WEST, works=True) if "west" in reach else None
    topology.drain(EAST, True)
    why = drain(deployment, asked, EAST, topology, Load())
    deployment.settle()
    deployment.validate()
    return deployment, partial, why


def test_a_state_is_led_up_to_where_two_routes_meet_and_down_to_the_new_node() -> None:
    deployment, partial, why = drained()
    assert why == ""
    assert deployment.hosts(partial, WEST)
    assert not deployment.hosts(partial, EAST)
    [state] = deployment.fragments[WEST].awaits.values()
    assert list(way(deployment, state)) == [EAST, "east_hub", GATEWAY, "west_hub", WEST]
    assert awaiting(deployment, state) == WEST
    assert not deployment.source_nodes(EAST)
    assert deployment.fragments[EAST].ends
    assert deployment.fragments[WEST].makes == deployment.fragments[EAST].makes, "an operator keeps its name"


def test_when_a_state_has_arrived_its_way_is_forgotten_and_idle_nodes_leave() -> None:
    deployment, _, _ = drained()
    [state] = deployment.fragments[WEST].awaits.values()
    arrived(deployment, state)
    deployment.settle()
    deployment.validate()
    assert {EAST, NodeId("east_hub")}.isdisjoint(deployment.fragments)
    assert not any(fragment.leads or fragment.awaits for fragment in deployment.fragments.values())


def test_a_state_that_is_sent_again_is_led_under_its_new_name() -> None:
    deployment, partial, _ = drained()
    [before] = deployment.fragments[WEST].awaits.values()
    lost(deployment, WEST)
    deployment.settle()
    deployment.validate()
    [after] = deployment.fragments[WEST].awaits.values()
    assert after != before
    assert list(way(deployment, after))[-1] == WEST
    assert not any(before in fragment.leads for fragment in deployment.fragments.values())
    assert deployment.fragments[WEST].lost == {deployment.terms.split.numbers[partial]: before}


def test_a_state_that_is_given_up_is_led_no_more() -> None:
    deployment, partial, _ = drained()
    [state] = deployment.fragments[WEST].awaits.values()
    lost(deployment, EAST)
    deployment.settle()
    deployment.validate()
    assert not any(fragment.leads or fragment.awaits for fragment in deployment.fragments.values())
    assert deployment.fragments[WEST].lost == {deployment.terms.split.numbers[partial]: state}


def test_a_state_whose_way_was_removed_is_given_up() -> None:
    deployment, _, _ = drained()
    hub = NodeId("east_hub")
    removed(deployment, hub, deployment.tree.parts[hub])
    deployment.settle()
    deployment.validate()
    assert not any(fragment.leads or fragment.awaits for fragment in deployment.fragments.values())


def test_nothing_moves_aside_if_a_source_below_has_no_other_route() -> None:
    deployment, partial, why = drained(reach="east")
    assert "`d2` has no other route" in why
    assert deployment.hosts(partial, EAST)
    assert not any(fragment.leads for fragment in deployment.fragments.values())


def test_a_state_leaves_when_its_way_knows_it_and_nobody_sends_rows_to_the_old_node() -> None:
    deployment, _, _ = drained()
    members, below = (
        {n: Member(NodeRecord(node=n, kind="edge", slots=0, memory_bytes=0)) for n in deployment.fragments},
        Below(),
    )
    for node, fragment in deployment.fragments.items():
        below.routed(node, fragment, GATEWAY)
    for node in members:
        below.heard(node, (0, 0), 0)
    rollout = Rollout(QueryId("q"), members, below, lambda a, b: False)
    rollout.changed(Difference(deployment.fragments, frozenset(), ()), 0)
    for name in map(NodeId, ("west_hub", "west", "d1", "gw", "d2")):
        assert not rollout.look(EAST, deployment, 0), f"{name} has not said that it runs its part"
        rollout.heard(name, deployment.fragments[name].version, deployment.fragments[name], 0)
    assert not rollout.look(EAST, deployment, 0)
    hub = NodeId("east_hub")
    rollout.heard(hub, deployment.fragments[hub].version, deployment.fragments[hub], 0)
    assert rollout.look(EAST, deployment, 0)
