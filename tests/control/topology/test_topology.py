"""Nodes, links, routes, and the files they come from."""

from __future__ import annotations

import json
from random import Random

import pytest

from rove.control.topology.files import read_json, read_nebulastream, read_toml
from rove.control.topology.topology import AddLink, AddNode, Link, Node, RemoveLink, RemoveNode, Topology
from rove.model.errors import BadName, TopologyError
from rove.model.ids import NodeId
from tests.control.cities import city, town


def link(a: str, b: str, us: int = 1000) -> Link:
    return Link(NodeId(a), NodeId(b), us)


def lengths(topology: Topology, sink: NodeId) -> dict[NodeId, tuple[int, int]]:
    """Latency and hops to the sink over relays, the slow and obvious way."""
    found = {sink: (0, 0)}
    for _ in topology.nodes():
        for each in topology.links():
            for a, b in ((each.a, each.b), (each.b, each.a)):
                if b in found and (b == sink or topology.node(b).kind != "device"):
                    here = (found[b][0] + each.latency_us, found[b][1] + 1)
                    found[a] = min(found.get(a, here), here)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_routes_are_shortest_form_a_tree_and_never_pass_a_device(seed: int) -> None:
    random = Random(seed)
    topology = city(random, devices=8, edges=8)
    for sink in random.sample([n.id for n in topology.nodes()], k=5):
        best = lengths(topology, sink)
        sources = [n.id for n in topology.nodes()]
        together = topology.routes(sources, sink)
        for source in sources:
            latency, at, hops = 0, source, 0
            while (upper := together[at]) is not None:
                assert upper == sink or topology.node(upper).kind != "device"
                latency, at, hops = latency + topology.link(at, upper).latency_us, upper, hops + 1
            assert (at, latency, hops) == (sink, *best[source])
            alone = topology.routes([source], sink)
            assert alone == {n: together[n] for n in alone}, "a route depends on who else asks"


@pytest.mark.parametrize("seed", range(20))
def test_remembered_routes_are_those_of_a_new_topology(seed: int) -> None:
    random = Random(seed)
    topology = city(random)
    devices = [n.id for n in topology.nodes() if n.kind == "device"]
    for _ in range(30):
        names = [n.id for n in topology.nodes()]
        a, b = random.sample(names, k=2)
        topology.change([RemoveLink(a, b) if topology.linked(a, b) else AddLink(link(a, b, random.randint(1, 9)))])
        if random.random() < 0.2 and len(devices) > 2:
            topology.remove_node(devices.pop())
        fresh = Topology(topology.nodes(), topology.links())
        for sink in ("gw", devices[0]):
            there = [n.id for n in fresh.nodes() if fresh.reaches(n.id, NodeId(sink))]
            assert topology.routes(there, NodeId(sink)) == fresh.routes(there, NodeId(sink))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_on_every_route_is_what_cannot_be_left_out(seed: int) -> None:
    random = Random(seed)
    topology = city(random, devices=6, edges=7)
    names = [n.id for n in topology.nodes()]
    for sink in random.sample(names, k=4):
        for source in names:
            if not topology.reaches(source, sink):
                continue
            without = (n for n in names if n not in (source, sink) and not reaches_without(topology, source, sink, n))
            assert topology.certain(source, sink) == {source, sink, *without}


def reaches_without(topology: Topology, source: NodeId, sink: NodeId, left_out: NodeId) -> bool:
    less = Topology(topology.nodes(), topology.links())
    less.remove_node(left_out)
    return less.reaches(source, sink)


def test_a_broken_link_is_taken_only_where_there_is_no_other() -> None:
    nodes = [Node(NodeId(n), k) for n, k in (("d", "device"), ("a", "edge"), ("b", "edge"), ("g", "gateway"))]
    links = [link("d", "a", 1), link("d", "b", 9_000), link("a", "g", 1), link("b", "g", 9_000)]
    topology = Topology(nodes, links)
    d, a, b, g = (n.id for n in nodes)
    assert topology.mark(d, a, works=False)
    assert not topology.mark(d, a, works=False), "it is no news any more"
    assert topology.routes([d], g) == {g: None, d: b, b: g}
    assert topology.mark(b, g, works=False)
    assert topology.routes([d], g) == {g: None, d: a, a: g}, "one broken link on either route: the shorter one"
    assert topology.mark(d, a, works=True)
    assert topology.mark(a, g, works=False)
    assert topology.broken_on([d, a, g]) == 1
    assert topology.broken_on([d, b, g]) == 1
    topology.change([RemoveLink(a, g), AddLink(link("a", "g", 1))])
    assert topology.works(a, g), "a link that is made anew works"


def test_equal_routes_go_by_fewer_hops_and_then_by_name() -> None:
    nodes = [Node(NodeId("gw"), "gateway"), Node(NodeId("d"), "device")]
    nodes += [Node(NodeId(e), "edge") for e in ("c", "b", "a", "x")]
    links = [link("d", e, 5) for e in "cba"] + [link("c", "gw", 5), link("b", "gw", 5), link("a", "x", 2)]
    topology = Topology(nodes, [*links, link("x", "gw", 3)])
    assert topology.routes([NodeId("d")], NodeId("gw"))[NodeId("d")] == "b"


def test_a_node_without_a_route_is_named() -> None:
    topology = town()
    topology.remove_link(NodeId("e1"), NodeId("gw"))
    with pytest.raises(TopologyError, match="`d1` has no route to `gw`: no link leads on from `d1`"):
        topology.routes([NodeId("d3"), NodeId("d1")], NodeId("gw"))
    assert not topology.reaches(NodeId("d1"), NodeId("gw"))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([AddNode(Node(NodeId("e1"), "edge"))], "node `e1` exists already"),
        ([RemoveNode(NodeId("e9"))], "no node `e9`; there are: gw, e1.*did you mean"),
        ([AddLink(link("d1", "e1"))], "have a link already"),
        ([RemoveLink(NodeId("d1"), NodeId("e2"))], "no link between `d1` and `e2`"),
        ([RemoveNode(NodeId("d1")), RemoveLink(NodeId("d1"), NodeId("e1"))], "no node `d1`"),
        (
            [RemoveNode(NodeId("d1")), AddNode(Node(NodeId("d1"), "device")), RemoveLink(NodeId("d1"), NodeId("e1"))],
            "no link",
        ),
    ],
)
def test_a_batch_is_applied_whole_or_not_at_all(bad: list[object], said: str) -> None:
    topology = town()
    before = (topology.nodes(), topology.links(), topology.version)
    moved = [RemoveLink(NodeId("d3"), NodeId("e2")), AddLink(link("d3", "e1"))]
    with pytest.raises(TopologyError, match=said):
        topology.change([*moved, *bad])  # type: ignore[list-item]
    assert (topology.nodes(), topology.links(), topology.version) == before
    topology.change(moved)
    assert topology.routes([NodeId("d3")], NodeId("gw"))[NodeId("d3")] == "e1"


def test_values_that_make_no_sense_are_refused() -> None:
    for make, said in (
        (lambda: Node(NodeId("x"), "phone"), "a device, an edge or a gateway"),  # type: ignore[arg-type]
        (lambda: Node(NodeId("x"), "edge", -1), "negative room"),
        (lambda: link("a", "a"), "to itself"),
        (lambda: link("a", "b", -1), "takes -1 µs"),
        (lambda: Link(NodeId("a"), NodeId("b"), 1, 0), "carries nothing"),
    ):
        with pytest.raises(TopologyError, match=said):
            make()


@pytest.mark.parametrize("name", ["", "a b", "a/b", ".a"])
def test_a_node_has_a_sound_name_or_is_none(name: str) -> None:
    with pytest.raises(BadName, match="cannot name a node"):
        Node(NodeId(name), "edge")


# Files


def test_our_own_form_is_read_from_toml_and_json() -> None:
    text = """
        nodes = [{id = "gw", kind = "gateway"}, {id = "d", kind = "device", slots = 2}]
        links = [{a = "d", b = "gw", latency_us = 7}]
    """
    found = read_toml(text)
    assert found.nodes == (Node(NodeId("gw"), "gateway"), Node(NodeId("d"), "device", 2))
    assert found.links == (link("d", "gw", 7),)
    nodes = [{"id": "gw", "kind": "gateway"}, {"id": "d", "kind": "device", "slots": 2}]
    assert read_json(json.dumps({"nodes": nodes, "links": [{"a": "d", "b": "gw", "latency_us": 7}]})) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("{}", "`nodes`"),
        ('{"nodes": [{"id": "a", "kind": "phone"}]}', "phone"),
        ('{"nodes": [{"id": "a", "kind": "edge", "slot": 1}]}', "slot"),
        ('{"nodes": [{"id": "a", "kind": "edge"}], "links": [{"a": "a", "b": "c"}]}', "no node `c`"),
    ],
)
def test_a_bad_file_says_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        read_json(text)


def test_a_file_with_a_node_that_cannot_be_named_is_refused() -> None:
    with pytest.raises(BadName, match="`tram 7` cannot name a node"):
        read_json('{"nodes": [{"id": "tram 7", "kind": "device"}]}')


FIXED = {"nodes": {"2": [0.0, 0.0], "1": [0.0, 0.0]}, "slots": {"1": 65535, "2": 3}, "children": {"1": [], "2": []}}
UPDATES: dict[str, list[object]] = {
    "initial_parents": [[2, 4], [3, 5]],
    "topology_updates": [
        {
            "timestamp": 1000,
            "events": [
                {"parentId": 2, "childId": 4, "action": "remove"},
                {"parentId": 3, "childId": 4, "action": "add"},
            ],
        }
    ],
}


UP_AND_DOWN = {"parentId": 4, "childId": 1, "action": "add"}


def test_nebulastreams_files_are_read_with_the_coordinator_above_and_ids_made_to_fit() -> None:
    """The generator numbers these fixed nodes 1 and 2 and means 2 and 3; 1 is the coordinator."""
    found = read_nebulastream(json.dumps(FIXED), json.dumps(UPDATES))
    assert [(n.id, n.kind, n.slots) for n in found.nodes[:3]] == [
        ("1", "gateway", 16),
        ("2", "edge", 65535),
        ("3", "edge", 3),
    ]
    assert [(n.id, n.kind) for n in found.nodes[3:]] == [("4", "device"), ("5", "device")]
    assert [(k.a, k.b) for k in found.links] == [("2", "1"), ("3", "1"), ("4", "2"), ("5", "3")]
    assert found.batches[0][0] == 1000
    topology = found.topology()
    for _, batch in found.batches:
        topology.change(batch)
    assert topology.neighbours(NodeId("4")) == ("3",)


def test_nebulastreams_ids_that_fit_stay_as_they_are() -> None:
    fixed = {"nodes": {"2": [], "3": []}, "children": {"2": [3]}}
    found = read_nebulastream(fixed, UPDATES)
    assert [(k.a, k.b) for k in found.links] == [("2", "1"), ("3", "2"), ("4", "2"), ("5", "3")]


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ({"initial_parents": [[9, 4]]}, "name node 9 as a parent"),
        ({"initial_parents": [[9]]}, r"initial_parents\[0\].*pair of parent and child"),
        ({"topology_updates": [{"events": []}]}, r"topology_updates\[0\] has no `timestamp`"),
        (
            [{"timestamp": 1, "events": [{"parentId": 2, "childId": 4, "action": "move"}]}],
            r"events\[0\] does `move`; an event adds or removes",
        ),
        ([{"timestamp": 1, "events": [{"childId": 4, "action": "add"}]}], "no `parentId`; it has: childId, action"),
        ([{"timestamp": "x", "events": []}], "`x`.*not a whole number"),
        ([{"timestamp": -1, "events": []}], r"`-1` in topology_updates\[0\].timestamp is negative"),
        (
            [{"timestamp": 9, "events": []}, {"timestamp": 3, "events": []}],
            r"topology_updates\[1\], at 3 ms, comes after one at 9 ms",
        ),
        (
            {**UPDATES, "topology_updates": [*UPDATES["topology_updates"], *UPDATES["topology_updates"]]},
            r"topology_updates\[1\], at 1000 ms: no link between `4` and `2`",
        ),
        (
            {"initial_parents": [[2, 4]], "topology_updates": [{"timestamp": 1, "events": [UP_AND_DOWN]}]},
            r"topology_updates\[0\] puts node 1 below node 4, which is below node 1 already",
        ),
    ],
)
def test_bad_updates_say_what_is_wrong_with_them(updates: object, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        read_nebulastream(FIXED, updates)


def ring(*numbers: int) -> dict[str, object]:
    """A circular topology as the generator writes it: each node has both its neighbours as children."""
    size = len(numbers)
    children = {str(n): [numbers[i - 1], numbers[(i + 1) % size]] for i, n in enumerate(numbers)}
    return {"nodes": {str(n): [0.0, 0.0] for n in numbers}, "children": children}


def full(*numbers: int) -> dict[str, object]:
    children = {str(n): [other for other in numbers if other != n] for n in numbers}
    return {"nodes": {str(n): [0.0, 0.0] for n in numbers}, "children": children}


def test_a_link_that_is_listed_from_both_ends_is_one_link() -> None:
    found = read_nebulastream(ring(2, 3, 4, 5), {"initial_parents": [[4, 9]]})
    pairs = sorted((min(k.a, k.b), max(k.a, k.b)) for k in found.links)
    assert pairs == [("1", "2"), ("2", "3"), ("2", "5"), ("3", "4"), ("4", "5"), ("4", "9")]
    topology = found.topology()
    assert topology.routes([NodeId("9")], NodeId("1")) == {"1": None, "2": "1", "3": "2", "4": "3", "9": "4"}
    found = read_nebulastream(full(2, 3, 4), {"initial_parents": [[4, 9]]})
    assert sorted(sorted((k.a, k.b)) for k in found.links) == [
        ["1", "2"], ["2", "3"], ["2", "4"], ["3", "4"], ["4", "9"]
    ]  # fmt: skip


def test_equals_below_a_parent_have_no_link_with_the_coordinator() -> None:
    both = ring(3, 4, 5)
    fixed = {"nodes": {"2": [], **both["nodes"]}, "children": {"2": [4], **both["children"]}}  # type: ignore[dict-item]
    links = {(k.a, k.b) for k in read_nebulastream(fixed, {}).links}
    assert {link for link in links if "1" in link} == {("2", "1")}
    assert ("4", "2") in links


def test_parents_that_go_round_in_a_circle_are_refused() -> None:
    fixed = {"nodes": {"2": [], "3": [], "4": []}, "children": {"2": [3], "3": [4], "4": [2]}}
    with pytest.raises(TopologyError, match="children puts node 2 below node 4, which is below node 2 already"):
        read_nebulastream(fixed, {})
    straight = {"nodes": fixed["nodes"], "children": {"2": [3], "3": [4]}}
    turned = [{"timestamp": 0, "events": [{"parentId": 2, "childId": 3, "action": "remove"}]}]
    back = {"timestamp": 5, "events": [{"parentId": 4, "childId": 2, "action": "add"}]}
    assert len(read_nebulastream(straight, [*turned, back]).batches) == 2, "2 is not above 3 any more"
    with pytest.raises(TopologyError, match=r"topology_updates\[0\] puts node 2 below node 4"):
        read_nebulastream(straight, [back])
