"""Alternative routes: they share no node, no operator on them takes rows in order, and all lead to the end."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from rove.control.deployment.alternatives import alternatives
from rove.control.placement import Load, bottom_up
from rove.control.topology.nodes import Link, Node
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.plan.stages import ordered
from tests.control.cities import city, drawn, numbered, request, stages
from tests.control.planned import deployed


def ladder(ways: int, length: int = 2) -> Topology:
    """A device below so many routes that share no node: d1 ─► w0.0 ─► w0.1 … ─► gw."""
    nodes = [Node(NodeId("d1"), "device", 0), Node(NodeId("gw"), "gateway", 8)]
    links = []
    for way in range(ways):
        names = [NodeId(f"w{way}.{n}") for n in range(length)]
        nodes += [Node(name, "edge", 0) for name in names]
        hops = [NodeId("d1"), *names, NodeId("gw")]
        links += [Link(a, b, 1_000 + way) for a, b in pairwise(hops)]
    return Topology(nodes, links)


def test_a_device_is_told_of_as_many_routes_as_were_asked_for_the_best_first() -> None:
    asked, topology = request("filter", {"s": ["d1"]}), ladder(4)
    placed = bottom_up(asked, topology, Load())
    deployment = deployed(asked, placed)
    others = alternatives(deployment, asked, topology, 3)
    assert others.begin == {"d1": ("w1.0", "w2.0")}
    assert others.relays == {"w1.0": "w1.1", "w1.1": "gw", "w2.0": "w2.1", "w2.1": "gw"}
    deployment.set_alternatives(others.begin, others.relays)
    deployment.settle()
    deployment.validate()
    found = deployment.fragments
    assert (found[NodeId("d1")].next, found[NodeId("d1")].others) == ("w0.0", ("w1.0", "w2.0"))
    assert found[NodeId("d1")].copies
    assert (found[NodeId("w1.0")].next, found[NodeId("w1.0")].runs) == ("w1.1", ())


def test_routes_are_apart_up_to_where_all_of_them_meet() -> None:
    topology = ladder(3, 3)
    topology.add_node(Node(NodeId("top"), "gateway", 8))
    topology.add_link(Link(NodeId("gw"), NodeId("top")))
    asked = request("filter", {"s": ["d1"]}, sink="top")
    placed = bottom_up(asked, topology, Load())
    deployment = deployed(asked, placed, {"out": Sink(kind="discard")})
    assert alternatives(deployment, asked, topology, 3).begin == {"d1": ("w1.0", "w2.0")}


def test_there_are_no_more_routes_than_there_are() -> None:
    asked, topology = request("filter", {"s": ["d1"]}), ladder(2)
    placed = bottom_up(asked, topology, Load())
    assert alternatives(deployed(asked, placed), asked, topology, 8).begin == {"d1": ("w1.0",)}
    assert alternatives(deployed(asked, placed), asked, topology, 1).begin == {}
    topology.mark(NodeId("w1.0"), NodeId("w1.1"), works=False)
    assert alternatives(deployed(asked, placed), asked, topology, 8).begin == {"d1": ()}
    topology.mark(NodeId("w1.0"), NodeId("w1.1"), works=True)
    topology.mark(NodeId("d1"), NodeId("w1.0"), works=False)  # a device that is elsewhere now may be there later
    assert alternatives(deployed(asked, placed), asked, topology, 8).begin == {"d1": ("w1.0",)}


@pytest.mark.parametrize(("leads_past", "others"), [(False, ("e2",)), (True, ())])
def test_no_route_takes_a_relay_that_may_lead_past_the_operator(leads_past: bool, others: tuple[str, ...]) -> None:
    """d1 ─► e1 ─► gw, d1 ─► e2 ─► e1 and d1 ─► e3 ─► gw; in the second case e2 ─► gw as well. The operator is on e1."""
    nodes = [Node(NodeId("d1"), "device", 0), Node(NodeId("gw"), "gateway", 8)]
    nodes += [Node(NodeId(name), "edge", 8) for name in ("e1", "e2", "e3")]
    pairs = [("d1", "e1"), ("e1", "gw"), ("d1", "e2"), ("e2", "e1"), ("d1", "e3"), ("e3", "gw")]
    pairs += [("e2", "gw")] if leads_past else []
    topology = Topology(nodes, [Link(NodeId(a), NodeId(b)) for a, b in pairs])
    plan = stages("count")
    asked = request(plan, {"s": ["d1"]}, hints={numbered(plan, "Watermark"): "e1"})
    deployment = deployed(asked, bottom_up(asked, topology, Load()))
    assert list(deployment.tree.route(NodeId("d1"))) == ["d1", "e1", "gw"]
    assert alternatives(deployment, asked, topology, 3).begin == {"d1": others}


@pytest.mark.parametrize("seed", range(150))
def test_whatever_route_rows_take_they_are_taken_in_order_in_one_place(seed: int) -> None:
    random = Random(seed)
    topology = city(random, edges=random.choice((5, 9)))
    asked = drawn(random, topology)
    try:
        placed = bottom_up(asked, topology, Load())
    except RoveError:
        return
    deployment = deployed(asked, placed, None if asked.sink is None else {"out": Sink(kind="discard")})
    others = alternatives(deployment, asked, topology, random.randint(2, 4))
    deployment.set_alternatives(others.begin, others.relays)
    deployment.settle()
    deployment.validate()
    found = deployment.fragments
    in_order = {h for stage, hosts in placed.hosts.items() if ordered(asked.stages.operators[stage]) for h in hosts}
    for device, starts in others.begin.items():
        routes = []
        meet = in_order | topology.certain(device, asked.root)
        for start in (placed.routes[device], *starts):
            assert start is not None
            assert topology.linked(device, start)
            route = [start]
            while route[-1] not in meet and (above := found[route[-1]].next) is not None:
                assert topology.linked(route[-1], above)
                route.append(above)
            routes.append(route)
        assert len({route[-1] for route in routes}) == 1
        relays = [node for route in routes for node in route[:-1]]
        assert len(relays) == len(set(relays))
