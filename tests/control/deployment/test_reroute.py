"""Sources that have moved are led to the operators that hold their state."""

from __future__ import annotations

from random import Random

import pytest

from rove.control.deployment.fragments import fragments
from rove.control.deployment.reroute import moved
from rove.control.placement import Load, Placement, Request, strategy
from rove.control.topology.topology import Link, Node, Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Version
from rove.model.messages import Sink
from tests.control.checker import check, path
from tests.control.cities import city, drawn, request

WEST, EAST, GATEWAY = NodeId("west"), NodeId("east"), NodeId("gw")


def cells(slots: int = 8) -> Topology:
    """Two devices below two cells, with little room on the devices."""
    nodes = [Node(GATEWAY, "gateway"), *(Node(c, "edge", slots) for c in (WEST, EAST))]
    devices = [Node(NodeId(d), "device", 1) for d in ("d1", "d2")]
    links = [Link(c, GATEWAY) for c in (WEST, EAST)] + [Link(d.id, c) for d in devices for c in (WEST, EAST)]
    topology = Topology([*nodes, *devices], links)
    for device in devices:
        topology.mark(device.id, EAST, works=False)
    return topology


def meets(asked: Request, placement: Placement) -> dict[NodeId, object]:
    """By node, whom it waits for at which stage, and under which names it speaks."""
    sinks = {name: Sink(kind="log") for name in ("out", *(name for name, _ in asked.stages.outputs))}
    parts = fragments(asked, placement, Version(1), sinks if asked.sink else {})
    return {node: (f.waits, f.makes) for node, f in parts.items() if f.waits or f.makes}


def test_a_device_takes_its_memory_along_and_the_cells_hold_none() -> None:
    topology, asked = cells(), request("count", {"s": ["d1", "d2"]})
    before = strategy("bottom_up")(asked, topology, Load())
    assert path(before, NodeId("d1")) == ["d1", "west", "gw"]
    topology.mark(NodeId("d1"), WEST, works=False)
    topology.mark(NodeId("d1"), EAST, works=True)
    load = Load()
    load.add(before)
    after = moved(asked, before, topology, load)
    assert path(after, NodeId("d1")) == ["d1", "east", "gw"]
    assert path(after, NodeId("d2")) == ["d2", "west", "gw"]
    assert meets(asked, after) == meets(asked, before)
    check(asked, after, topology)
    topology.mark(NodeId("d2"), WEST, works=False)
    assert moved(asked, after, topology, load) is after, "who reaches nobody keeps its place"
    topology.mark(NodeId("d2"), EAST, works=True)
    last = moved(asked, after, topology, load)
    assert WEST not in last.routes, "a cell that nobody passes has no part in the query"
    assert last.slots.keys() <= last.routes.keys()


def test_one_who_would_pass_by_what_remembers_its_rows_stays_and_so_do_those_who_share_its_route() -> None:
    topology = cells()
    asked = request("count", {"s": ["d1"]}, hints={2: "west", 3: "west"})
    before = strategy("bottom_up")(asked, topology, Load())
    assert WEST in meets(asked, before)
    topology.mark(NodeId("d1"), WEST, works=False)
    topology.mark(NodeId("d1"), EAST, works=True)
    assert moved(asked, before, topology, Load()) == before


@pytest.mark.parametrize("seed", range(120))
def test_whatever_breaks_nobody_passes_by_what_remembers_and_nobody_else_is_disturbed(seed: int) -> None:
    random = Random(seed)
    topology = city(random)
    asked = drawn(random, topology, hinted=random.random() < 0.3)
    try:
        found = strategy("bottom_up")(asked, topology, Load())
    except RoveError:
        return
    load = Load()
    load.add(found)
    nodes = dict.fromkeys(p.node for sources in asked.sources.values() for p in sources)
    for _ in range(10):
        link = random.choice(topology.links())
        topology.mark(link.a, link.b, works=random.random() < 0.4)
        before, found = found, moved(asked, found, topology, load)
        load = load.replaced(before, found)
        check(asked, found, topology)
        assert meets(asked, found) == meets(asked, before)
        for node in nodes:
            old, new = path(before, node), path(found, node)
            assert topology.broken_on(new) <= topology.broken_on(old)
            if not topology.broken_on(old):
                assert new == old
