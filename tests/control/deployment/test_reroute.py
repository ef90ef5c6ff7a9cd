"""Sources that have moved are led to the operators that hold their state."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from msgspec.structs import replace

from rove.control.deployment import reroute
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.reroute import lead, move
from rove.control.placement import Load, Placement, Request, SourceAt, strategy
from rove.control.topology.topology import Link, Node, Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Origin, Stage
from rove.model.messages import Sink
from rove.plan.stages import ordered
from tests.control.checker import check, path
from tests.control.cities import city, drawn, numbered, request, stages, town
from tests.control.planned import deployed
from tests.control.twin import agree

WEST, EAST, GATEWAY = NodeId("west"), NodeId("east"), NodeId("gw")


def cells(slots: int = 8, room: int = 1) -> Topology:
    """Two devices below two cells, with little `room` on the devices."""
    nodes = [Node(GATEWAY, "gateway"), *(Node(c, "edge", slots) for c in (WEST, EAST))]
    devices = [Node(NodeId(d), "device", room) for d in ("d1", "d2")]
    links = [Link(c, GATEWAY) for c in (WEST, EAST)] + [Link(d.id, c) for d in devices for c in (WEST, EAST)]
    topology = Topology([*nodes, *devices], links)
    for device in devices:
        topology.mark(device.id, EAST, works=False)
    return topology


def put_down(asked: Request, topology: Topology, load: Load) -> Deployment:
    """The query deployed as the first strategy says."""
    sinks = {name: Sink(kind="log") for name in ("out", *(name for name, _ in asked.stages.outputs))}
    found = deployed(asked, strategy("bottom_up")(asked, topology, Load()), sinks if asked.sink else {}, load)
    agree(found, asked)
    return found


def look(deployment: Deployment, asked: Request, topology: Topology, load: Load, *nodes: str) -> Placement:
    """Let these nodes find better routes; where everything is now."""
    move(deployment, asked, map(NodeId, nodes), topology, load)
    deployment.settle()
    agree(deployment, asked)
    return deployment.placement({})


def meets(deployment: Deployment) -> dict[NodeId, object]:
    """By node, whom it waits for at which stage, and under which names it speaks."""
    return {node: (f.waits, f.makes) for node, f in deployment.fragments.items() if f.waits or f.makes}


def test_a_device_takes_its_memory_along_and_the_cells_hold_none() -> None:
    topology, asked, load = cells(), request("count", {"s": ["d1", "d2"]}), Load()
    deployment = put_down(asked, topology, load)
    before = meets(deployment)
    assert list(deployment.tree.route(NodeId("d1"))) == ["d1", "west", "gw"]
    topology.mark(NodeId("d1"), WEST, works=False)
    topology.mark(NodeId("d1"), EAST, works=True)
    after = look(deployment, asked, topology, load, "d1")
    assert path(after, NodeId("d1")) == ["d1", "east", "gw"]
    assert path(after, NodeId("d2")) == ["d2", "west", "gw"]
    assert meets(deployment) == before
    check(asked, after, topology)
    topology.mark(NodeId("d2"), WEST, works=False)
    assert look(deployment, asked, topology, load, "d1", "d2") == after, "who reaches nobody keeps its place"
    topology.mark(NodeId("d2"), EAST, works=True)
    last = look(deployment, asked, topology, load, "d1", "d2")
    assert WEST not in last.routes, "a cell that nobody passes has no part in the query"
    assert last.slots.keys() <= last.routes.keys()
    assert load.slots == last.slots


def test_a_move_tells_the_nodes_of_its_routes_and_nobody_else() -> None:
    topology, asked, load = cells(), request("count", {"s": ["d1", "d2"]}), Load()
    deployment = put_down(asked, topology, load)
    topology.mark(NodeId("d1"), WEST, works=False)
    topology.mark(NodeId("d1"), EAST, works=True)
    assert move(deployment, asked, [NodeId("d1")], topology, load) == ["d1"]
    change = deployment.settle()
    assert (change.difference.update, change.difference.deploy) == ({"d1"}, {"east"})
    assert not change.difference.undeploy
    assert deployment.leaving(WEST) == {"d1": change.version}


def test_one_who_would_pass_by_what_remembers_its_rows_stays_and_so_do_those_who_share_its_route() -> None:
    topology = cells()
    asked, load = request("count", {"s": ["d1"]}, hints={2: "west", 3: "west"}), Load()
    deployment = put_down(asked, topology, load)
    before = deployment.placement({})
    assert WEST in meets(deployment)
    topology.mark(NodeId("d1"), WEST, works=False)
    topology.mark(NodeId("d1"), EAST, works=True)
    assert look(deployment, asked, topology, load, "d1") == before


@pytest.mark.parametrize("seed", range(120))
def test_whatever_breaks_nobody_passes_by_what_remembers_and_nobody_else_is_disturbed(seed: int) -> None:
    random = Random(seed)
    topology = city(random)
    asked, load = drawn(random, topology, hinted=random.random() < 0.3), Load()
    try:
        deployment = put_down(asked, topology, load)
    except RoveError:
        return
    nodes = dict.fromkeys(p.node for sources in asked.sources.values() for p in sources)
    for _ in range(10):
        link = random.choice(topology.links())
        topology.mark(link.a, link.b, works=random.random() < 0.4)
        met, before = meets(deployment), deployment.placement({})
        found = look(deployment, asked, topology, load, *nodes)
        check(asked, found, topology)
        assert load.slots == found.slots
        assert meets(deployment) == met
        for node in nodes:
            old, new = path(before, node), path(found, node)
            assert topology.broken_on(new) <= topology.broken_on(old)
            if not topology.broken_on(old):
                assert new == old


def test_a_node_that_runs_all_its_operators_gets_another_route_as_if_they_were_placed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two deployments see the same links break. One of them places operators anew at each move."""
    swapped: list[bool] = []
    runs_all = reroute._runs_all

    def noted(*arguments) -> bool:  # type: ignore[no-untyped-def]
        swapped.append(runs_all(*arguments))
        return swapped[-1]

    for seed in range(150):
        random = Random(seed)
        topology = city(random)
        asked = drawn(random, topology, hinted=random.random() < 0.3)
        loads = Load(), Load()
        try:
            one, other = (put_down(asked, topology, load) for load in loads)
        except RoveError:
            continue
        nodes = dict.fromkeys(p.node for sources in asked.sources.values() for p in sources)
        for _ in range(6):
            for _ in range(random.randint(1, 3)):
                link = random.choice(topology.links())
                topology.mark(link.a, link.b, works=random.random() < 0.4)
            monkeypatch.setattr(reroute, "_runs_all", noted)
            look(one, asked, topology, loads[0], *nodes)
            monkeypatch.setattr(reroute, "_runs_all", lambda *_: False)
            look(other, asked, topology, loads[1], *nodes)
            assert one.tree.parts == other.tree.parts, seed
            assert one.fragments == other.fragments
            assert loads[0] == loads[1]
    assert sum(swapped) > 30
    assert not all(swapped)


@pytest.mark.parametrize("seed", range(120))
def test_sources_that_come_go_and_are_absent_leave_what_the_whole_placement_says(seed: int) -> None:
    """Sources are added one by one, some are absent for a while, some end, links break: after each step the fragments
    are those of the twin, and a change that was taken back has left nothing behind."""
    random = Random(seed)
    topology = city(random)
    asked, load = drawn(random, topology, hinted=random.random() < 0.3), Load()
    pairs = [(stage, source) for stage, found in asked.sources.items() for source in found]
    random.shuffle(pairs)
    first = dataclasses.replace(
        asked, sources={stage: tuple(s for at, s in pairs[:2] if at == stage) for stage in asked.sources}
    )
    try:
        deployment = put_down(first, topology, load)
    except RoveError:
        return
    for stage, source in pairs[2:]:
        position = deployment.journal.position
        try:
            # Other queries come and go meanwhile, so operators that found no room below may find some now.
            others = Load({node.id: random.choice((0, node.slots)) for node in topology.nodes()})
            lead(deployment, asked, stage, source, topology, others)
        except RoveError:
            deployment.roll_back(position)
        deployment.settle()
        agree(deployment, asked)
        node = random.choice(list(deployment.tree.parts))
        deployment.set_absent(node, random.random() < 0.6)
        if random.random() < 0.3:
            part = deployment.tree.parts[node]
            deployment.put({node: replace(part, sources=part.sources[1:])})
        link = random.choice(topology.links())
        topology.mark(link.a, link.b, works=random.random() < 0.5)
        look(deployment, asked, topology, load, *(n for n, p in deployment.tree.parts.items() if p.sources))


@pytest.mark.parametrize(("known", "disk"), [(True, True), (True, False), (False, True)])
def test_an_operator_that_takes_batches_in_order_is_not_put_where_rows_of_a_new_source_may_wait(
    known: bool, disk: bool
) -> None:
    """A device with a disk that has started again keeps rows of its new source until the source has a place. Where the
    query is not known, or was forgotten, there are no such rows."""
    topology, asked, load = cells(room=8), request("late filter", {"s": ["d1", "d2"]}), Load()
    sinks = {"out": Sink(kind="log")}
    deployment = deployed(asked, strategy("cloud_only")(asked, topology, Load()), sinks if asked.sink else {}, load)
    device = NodeId("d1")
    deployment.starts = {} if disk else {device: 2}
    part = deployment.tree.parts[device]
    assert part.hosts == (0,)
    deployment.put({device: replace(part, sources=()) if known else None})
    again = Origin("s", "d1", 2)
    lead(deployment, asked, Stage(0), SourceAt(again, device), topology, load)
    deployment.settle()
    agree(deployment, asked)
    there = deployment.tree.parts[device]
    assert there.sources == ((0, again),)
    assert (known and disk) != any(ordered(asked.stages.operators[stage]) for stage in there.hosts)


def test_operators_for_two_streams_of_a_device_that_is_new_to_a_query_run_there() -> None:
    topology, asked, load, device = cells(room=8), request("join", {"s": ["d2"], "t": ["d2"]}), Load(), NodeId("d1")
    sinks = {name: Sink(kind="log") for name in ("out", *(name for name, _ in asked.stages.outputs))}
    deployment = deployed(asked, strategy("cloud_only")(asked, topology, Load()), sinks if asked.sink else {}, load)
    for stage, found in asked.sources.items():
        stream = found[0].origin.name
        lead(deployment, asked, stage, SourceAt(Origin(stream, "d1"), device), topology, load)
    deployment.settle()
    agree(deployment, asked)
    there = [asked.stages.operators[stage] for stage in deployment.tree.parts[device].hosts]
    assert sum(ordered(operator) for operator in there) == 2


def test_what_is_taken_back_leaves_nothing_behind() -> None:
    topology, asked, load = cells(), request("count", {"s": ["d1", "d2"]}), Load()
    deployment = put_down(asked, topology, load)
    before, slots, records = dict(deployment.fragments), dict(load.slots), deployment.placement({})
    part = deployment.tree.parts[NodeId("d1")]
    deployment.put({NodeId("d1"): replace(part, next=GATEWAY, hosts=(), sources=())})
    deployment.roll_back()
    assert not deployment.settle().difference
    assert (deployment.fragments, load.slots, deployment.placement({})) == (before, slots, records)
    agree(deployment, asked)


def begun_on_edges() -> tuple[Deployment, Request]:
    """Averages that are begun on the edges, with nothing before them: d1 and d2 send to e1, d3 to e2."""
    partial = Stage(numbered(stages("late filter"), "Aggregate", "partial"))
    asked = request("late filter", {"s": ["d1", "d2", "d3"]}, hints={partial: "edge"})
    return put_down(asked, town(), Load()), asked


def test_an_operator_that_no_rows_reach_any_more_is_left_out_until_they_do() -> None:
    deployment, asked = begun_on_edges()
    edge, part = deployment.tree.parts[NodeId("e2")], deployment.tree.parts[NodeId("d3")]
    deployment.put({NodeId("e2"): replace(edge, hosts=(Stage(1), *edge.hosts))})  # so it runs the same without d3
    deployment.put({NodeId("d3"): None})
    deployment.settle()
    agree(deployment, asked)
    assert not deployment.fragments[NodeId("e2")].makes
    deployment.put({NodeId("d3"): part})
    deployment.settle()
    agree(deployment, asked)
    assert deployment.fragments[NodeId("e2")].makes


def test_who_is_absent_is_followed_up_to_those_who_wait_for_it_indirectly() -> None:
    deployment, asked = begun_on_edges()
    for absent, node in [(True, "d1"), (True, "d2"), (True, "d3"), (False, "d1"), (False, "d3"), (True, "d1")]:
        deployment.set_absent(NodeId(node), absent)
        deployment.settle()
        agree(deployment, asked)
    gateway = deployment.fragments[NodeId("gw")]
    assert [len(origins) for book in (gateway.waits, gateway.knows) for origins in book.values()] == [1, 1]
