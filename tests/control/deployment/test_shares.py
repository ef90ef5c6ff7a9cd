"""A device leaves an edge that holds its partial windows: its rows go on at once, and the edge keeps what it has."""

from __future__ import annotations

import dataclasses
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from rove.control.deployment.dead.replacement import remembers
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.migration import lift
from rove.control.deployment.reroute import lead, met_by, move
from rove.control.deployment.shares import shares
from rove.control.deployment.touched import Touched
from rove.control.placement import Load, Request, SourceAt, strategy
from rove.control.placement.explain import explain
from rove.control.topology.topology import Link, Node, Topology
from rove.model.clock import MICROS_MIN
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Origin, Stage
from rove.model.messages import ANYWHERE, Begin
from rove.plan.operators import Aggregate
from rove.plan.stages import ordered
from tests.control.cities import PLANS, city, numbered, request
from tests.control.planned import deployed

WEST, EAST, SOUTH, GATEWAY, D1, D2 = (NodeId(name) for name in ("west", "east", "south", "gw", "d1", "d2"))
NOW_US = 10**9
ONE, TWO = Origin("s", "d1"), Origin("s", "d2")


def cells(slots: int = 8) -> Topology:
    """Two devices that reach three cells below a gateway."""
    nodes = [Node(GATEWAY, "gateway"), *(Node(cell, "edge") for cell in (WEST, EAST, SOUTH))]
    nodes += [Node(device, "device", slots) for device in (D1, D2)]
    links = [Link(cell, GATEWAY) for cell in (WEST, EAST, SOUTH)]
    links += [Link(device, cell) for device in (D1, D2) for cell in (WEST, EAST, SOUTH)]
    return Topology(nodes, links)


def reaches(topology: Topology, device: NodeId, *there: NodeId) -> None:
    for cell in (WEST, EAST, SOUTH):
        topology.mark(device, cell, works=cell in there)


def counted(topology: Topology, plan: str = "count", where: str = "edge") -> tuple[Deployment, Request, Stage]:
    """A query with partial windows on edges. The first device is at the west, the second at the east."""
    reaches(topology, D1, WEST)
    reaches(topology, D2, EAST)
    asked = request(plan, {"s": ["d1", "d2"]})
    partial = Stage(numbered(asked.stages, "Aggregate", "partial"))
    own = [Stage(n) for n, op in enumerate(asked.stages.operators) if ordered(op) and n < partial]
    on_edges = [partial, *(own if topology.node(D1).slots == 0 else ())]
    asked = dataclasses.replace(asked, hints=dict.fromkeys(on_edges, where))
    return deployed(asked, strategy("bottom_up")(asked, topology, Load())), asked, partial


def look(deployment: Deployment, asked: Request, topology: Topology, *nodes: NodeId) -> list[NodeId]:
    moved = move(deployment, asked, nodes, topology, Load())
    return [*moved, *shares.Leavers(heard(topology)).follow(deployment, asked, nodes, Load(), NOW_US)]


def heard(topology: Topology, ago_us: int = 0) -> Any:
    """The nodes of a topology as members that were heard some time ago."""
    members = {n.id: SimpleNamespace(conn=b"", heard_us=NOW_US - ago_us) for n in topology.nodes()}
    return SimpleNamespace(topology=topology, members=members)


def test_a_device_goes_on_at_another_edge_at_once_and_its_old_one_keeps_what_it_has() -> None:
    topology = cells()
    deployment, asked, partial = counted(topology)
    before = dict(deployment.fragments)
    assert (deployment.hosts(partial, WEST), deployment.hosts(partial, EAST)) == (True, True)
    reaches(topology, D1, EAST)
    assert look(deployment, asked, topology, D1) == [D1]
    change = deployment.settle()
    deployment.validate()
    assert (change.difference.update, change.difference.undeploy) == ({D1, WEST, EAST, GATEWAY}, ())
    assert list(deployment.tree.route(D1)) == [D1, EAST, GATEWAY]
    west, gateway = deployment.fragments[WEST], deployment.fragments[GATEWAY]
    number = deployment.terms.split.numbers[partial]
    source = next(iter(before[WEST].waits))
    assert west.releases == {number: (ONE,)}
    assert (west.runs, west.makes, west.waits) == ((number,), before[WEST].makes, {})
    assert (gateway.lifts, gateway.begins) == ({number: (ONE,)}, {}), "it is not known how far the west came"
    assert gateway.waits == {**before[GATEWAY].waits, source: (ONE,)}
    east = deployment.fragments[EAST]
    assert east.releases == {number: (ONE,)}, "it passes by the windows of others"
    assert (east.runs, east.makes, east.waits) == (before[EAST].runs, before[EAST].makes, before[EAST].waits)


def test_the_root_takes_its_rows_when_its_old_edge_has_said_how_far_it_came() -> None:
    topology = cells()
    deployment, asked, partial = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    begin = Begin(7, 1_000)
    touched = Touched(released={(WEST, ONE): begin})
    assert shares.settled(deployment, touched, {D1, D2, WEST, EAST}) == {D1: None}
    change = deployment.settle()
    deployment.validate()
    assert change.difference.update == {GATEWAY, WEST}
    assert deployment.fragments[GATEWAY].begins == {ONE: begin}
    assert not deployment.fragments[WEST].releases
    made = {origin for origins in deployment.fragments[GATEWAY].waits.values() for origin in origins}
    assert made == {ONE, *deployment.fragments[EAST].makes.values()}, "the west has given all that it had"
    assert deployment.terms.split.numbers[partial] in deployment.fragments[WEST].runs, "its window goes on"
    assert shares.settled(deployment, touched, {D1, D2, WEST, EAST}) == {}, "it is said again"
    assert not deployment.settle().difference


@pytest.mark.parametrize("number", [3, ANYWHERE])
def test_the_root_learns_of_earlier_origins_of_the_device_too(number: int) -> None:
    topology = cells()
    deployment, asked, partial = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    earlier = Origin("s", "d1", 5)
    touched = Touched(released={(WEST, ONE): Begin(7, 0), (WEST, earlier): Begin(number, 0)})
    shares.settled(deployment, touched, {D1, D2, WEST, EAST})
    shares.settled(deployment, Touched(released={(EAST, Origin("s", "d1", 6)): Begin(1, 0)}), {D1, D2, WEST, EAST})
    deployment.settle()
    deployment.validate()
    gateway = deployment.fragments[GATEWAY]
    assert gateway.begins == {ONE: Begin(7, 0), earlier: Begin(number, 0)}
    assert gateway.lifts == {deployment.terms.split.numbers[partial]: (ONE, earlier)}
    assert earlier in {origin for origins in gateway.knows.values() for origin in origins}


def test_two_devices_swap_edges() -> None:
    topology = cells(slots=0)  # the edges decide lateness too
    deployment, asked, partial = counted(topology)
    reaches(topology, D1, EAST)
    reaches(topology, D2, WEST)
    assert look(deployment, asked, topology, D1, D2) == [D1, D2]
    deployment.settle()
    deployment.validate()
    taking = {deployment.terms.split.numbers[s] for s in met_by(deployment, D1) if s <= partial}
    assert len(taking) == 2
    assert deployment.fragments[GATEWAY].lifts == dict.fromkeys(sorted(taking), (ONE, TWO))
    assert deployment.fragments[WEST].releases == dict.fromkeys(sorted(taking), (ONE, TWO))
    assert deployment.fragments[EAST].releases == dict.fromkeys(sorted(taking), (ONE, TWO))
    assert {origin for _, origin in deployment.tree.parts[WEST].releases} == {ONE}
    assert {origin for _, origin in deployment.tree.parts[EAST].releases} == {TWO}


def test_a_second_move_waits_for_nobody_and_concerns_its_route_alone() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    for there in (SOUTH, WEST, EAST):
        reaches(topology, D1, there)
        assert look(deployment, asked, topology, D1) == [D1]
        change = deployment.settle()
        deployment.validate()
        assert list(deployment.tree.route(D1)) == [D1, there, GATEWAY]
        assert {*change.difference.fragments, *change.difference.undeploy} <= {D1, SOUTH, WEST, EAST}
        assert deployment.fragments[WEST].releases, "the west has not answered yet"


def test_the_window_of_an_edge_that_has_lost_it_begins_with_the_first_batch_at_the_root() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    assert shares.settled(deployment, Touched(restarted={WEST: None}), {D1, D2, WEST, EAST}) == {D1: None}
    deployment.settle()
    deployment.validate()
    assert deployment.fragments[GATEWAY].begins == {ONE: Begin(ANYWHERE, MICROS_MIN)}
    assert not deployment.fragments[WEST].releases


def test_an_edge_that_counts_as_dead_is_waited_for_no_longer_and_lets_go_when_it_is_back() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    assert remembers(deployment, WEST)
    assert shares.lost(deployment, WEST, forgets=False) == [D1]
    assert not remembers(deployment, WEST)
    deployment.settle()
    deployment.validate()
    assert deployment.fragments[GATEWAY].begins == {ONE: Begin(ANYWHERE, MICROS_MIN)}
    assert deployment.fragments[WEST].releases, "else it would take batches that pass it"
    assert shares.settled(deployment, Touched(released={(WEST, ONE): Begin(3, 0)}), {WEST}) == {}
    deployment.settle()
    assert deployment.fragments[GATEWAY].begins == {ONE: Begin(ANYWHERE, MICROS_MIN)}


def test_nobody_waits_for_a_device_whose_old_edge_is_absent() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    source = next(stage for stage, origins in deployment.fragments[GATEWAY].waits.items() if ONE in origins)
    deployment.set_absent(WEST, True)
    deployment.settle()
    assert source not in deployment.fragments[GATEWAY].waits
    assert deployment.fragments[GATEWAY].knows[source] == (ONE,)
    deployment.set_absent(WEST, False)
    deployment.settle()
    assert deployment.fragments[GATEWAY].waits[source] == (ONE,)


def test_sources_that_begin_after_a_move_are_taken_at_the_root_from_their_first_batch_on() -> None:
    topology = cells()
    deployment, asked, partial = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    new = Origin("s", "d1", 5)
    lead(deployment, asked, asked.stages.sources()[0], SourceAt(new, D1), topology, Load())
    deployment.settle()
    deployment.validate()
    assert deployment.fragments[GATEWAY].begins == {new: Begin(0, MICROS_MIN)}
    assert deployment.fragments[GATEWAY].lifts == {deployment.terms.split.numbers[partial]: (ONE, new)}
    assert not deployment.hosts(partial, SOUTH)


@pytest.mark.parametrize("plan", ["union count", "join", "two ways"])
def test_rows_that_go_other_ways_as_well_stay_where_they_are_taken(plan: str) -> None:
    topology = cells()
    asked = request(plan, {"s": ["d1"], "t": ["d1"]})
    wanted = [Stage(n) for n, op in enumerate(asked.stages.operators) if ordered(op) and asked.stages.inputs[n]]
    asked = dataclasses.replace(asked, hints=dict.fromkeys(wanted, "edge"))
    reaches(topology, D1, WEST)
    try:
        deployment = deployed(asked, strategy("bottom_up")(asked, topology, Load()))
    except RoveError:
        return
    reaches(topology, D1, EAST)
    assert shares.share_of(deployment, D1) is None
    assert look(deployment, asked, topology, D1) == []


def test_a_device_with_alternative_routes_waits_for_its_edge() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    deployment.set_alternatives({D1: (SOUTH,)}, {SOUTH: WEST})
    deployment.settle()
    reaches(topology, D1, EAST)
    assert look(deployment, asked, topology, D1) == []


def test_a_window_that_is_wanted_on_a_node_by_name_stays_there() -> None:
    topology = cells()
    reaches(topology, D1, WEST)
    asked = request("count", {"s": ["d1"]})
    partial = Stage(numbered(asked.stages, "Aggregate", "partial"))
    asked = dataclasses.replace(asked, hints={partial: WEST})
    deployment = deployed(asked, strategy("bottom_up")(asked, topology, Load()))
    reaches(topology, D1, EAST)
    assert shares.share_of(deployment, D1) is not None
    assert look(deployment, asked, topology, D1) == []
    assert not deployment.settle().difference


def test_an_edge_that_was_not_heard_for_a_moment_may_be_dead_and_is_left_when_it_is_heard() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    reaches(topology, D1, EAST)
    silent = shares.Leavers(heard(topology, shares.FRESH_US + 1))
    assert silent.follow(deployment, asked, [D1], Load(), NOW_US) == []
    assert not deployment.settle().difference
    assert silent.heard(EAST) == {}
    assert silent.heard(WEST) == {asked.query: {D1: None}}
    assert silent.heard(WEST) == {}
    assert shares.Leavers(heard(topology, shares.FRESH_US)).follow(deployment, asked, [D1], Load(), NOW_US) == [D1]


def test_an_edge_that_has_still_to_let_a_device_go_is_not_drained_before() -> None:
    topology = cells()
    deployment, asked, _ = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    assert "earlier move" in lift(deployment, asked, WEST, topology, Load())


def test_an_explained_plan_names_devices_that_have_left_their_edges() -> None:
    topology = cells()
    deployment, asked, partial = counted(topology)
    reaches(topology, D1, EAST)
    look(deployment, asked, topology, D1)
    deployment.settle()
    placed = deployment.placement(dict.fromkeys(range(len(asked.stages.operators)), "as wanted"))  # type: ignore[arg-type]
    assert set(placed.hosts[partial]) == {WEST, EAST, GATEWAY}
    said = explain(asked, placed, topology)
    assert "rows of `d1` are taken at `gw`, because they have left an edge with their windows" in said


@pytest.mark.parametrize("seed", range(150))
def test_whatever_breaks_devices_with_partial_windows_move_and_nobody_else_is_disturbed(seed: int) -> None:
    random = Random(seed)
    topology = city(random)
    devices = [n.id for n in topology.nodes() if n.kind == "device"]
    names = [name for name in PLANS if name not in ("table", "spark")]
    sources = {name: random.sample(devices, k=random.randint(1, min(4, len(devices)))) for name in ("s", "t")}
    asked = request(random.choice(("count", "late filter", random.choice(names))), sources)
    partial = [n for n, op in enumerate(asked.stages.operators) if isinstance(op, Aggregate) and op.mode == "partial"]
    asked = dataclasses.replace(asked, hints={Stage(n): "edge" for n in partial})
    try:
        deployment = deployed(asked, strategy("bottom_up")(asked, topology, Load()))
    except RoveError:
        return
    nodes = dict.fromkeys(p.node for each in asked.sources.values() for p in each)
    for _ in range(12):
        link = random.choice(topology.links())
        topology.mark(link.a, link.b, works=random.random() < 0.5)
        met = {node: met_by(deployment, node) for node in nodes}
        moved = look(deployment, asked, topology, *nodes)
        deployment.settle()
        deployment.validate()
        for node in nodes:
            lifted = deployment.tree.parts[node].lifts
            now = met_by(deployment, node)
            assert all(now[stage] == deployment.root for stage in lifted)
            assert {s: at for s, at in now.items() if s not in lifted} == {
                s: at for s, at in met[node].items() if s not in lifted
            }
            assert node in moved or now == met[node]
        for node, part in list(deployment.tree.parts.items()):
            for _, origin in part.releases if random.random() < 0.3 else ():
                begin = Begin(random.choice((ANYWHERE, 0, 5)), MICROS_MIN)
                shares.settled(deployment, Touched(released={(node, origin): begin}), {*deployment.tree.parts})
        deployment.settle()
        deployment.validate()
