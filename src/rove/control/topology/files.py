"""Reads topologies in our own format and in NebulaStream's.

Law: the nodes and links that are read fit together, or the error names the place that does not. The input is text or
objects; no file is opened.

Ours, as TOML or JSON:

    [[nodes]]                        [[links]]
    id = "tram-7"                    a = "tram-7"
    kind = "device"                  b = "mast-12"
    slots = 4                        latency_us = 20000

NebulaStream's is a pair of files, as its topology-change-generator writes them. `fixed_topology.json` has `nodes` (id
to place), `slots` and `children`; `topology_updates.json` has `initial_parents`, a list of [parent, child], and
`topology_updates`, a list of `{timestamp, events: [{parentId, childId, action}]}` with timestamps in ms. All batches of
events are checked, each after those before it. Circular and full graphs list a link from both ends: it is one link, and
neither of its nodes is above the other. Any other circle of parents is an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import rustworkx as rx

from rove.control.topology.changes import AddLink, AddNode, Change, RemoveLink, check
from rove.control.topology.nodes import BYTES_PER_S, LATENCY_US, MEMORY_BYTES, SLOTS, Link, Node
from rove.control.topology.topology import Topology
from rove.model.errors import TopologyError
from rove.model.ids import NodeId
from rove.model.messages import Kind

COORDINATOR = 1  # NebulaStream's coordinator node: every worker without another parent is its child
SHIFTS = (0, 1, 2)  # how far the ids of a fixed topology may be below those of its updates

# The names that a field may have. The first is the one that NebulaStream writes.
_PARENT = ("parentId", "parent_id", "parent")
_CHILD = ("childId", "child_id", "child")
_TIME = ("timestamp", "timestamp_ms", "time")
_UPDATES = ("topology_updates", "updates", "batches")


@dataclass(frozen=True, slots=True)
class Imported:
    """An initial topology, and its changes by time in ms."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    batches: tuple[tuple[int, tuple[Change, ...]], ...] = ()

    def topology(self) -> Topology:
        return Topology(self.nodes, self.links)


class _Node(msgspec.Struct, forbid_unknown_fields=True):
    id: NodeId
    kind: Kind
    slots: int = SLOTS
    memory_bytes: int = MEMORY_BYTES


class _Link(msgspec.Struct, forbid_unknown_fields=True):
    a: NodeId
    b: NodeId
    latency_us: int = LATENCY_US
    bytes_per_s: int = BYTES_PER_S


class _File(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[_Node]
    links: list[_Link] = []


def read(text: str, updates: str | None = None) -> Imported:
    """A topology in any known format: JSON if it begins like an object, else TOML."""
    if not text.lstrip().startswith("{"):
        return read_toml(text)
    data = _loaded(text)
    ours = isinstance(data, Mapping) and isinstance(data.get("nodes"), list) and "initial_parents" not in data
    return read_topology(data) if ours and updates is None else read_nebulastream(data, updates)


def read_toml(text: str) -> Imported:
    """Our own format, as TOML."""
    try:
        return read_topology(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise TopologyError(f"a topology that is not TOML: {error}") from error


def read_json(text: str) -> Imported:
    """Our own format, as JSON."""
    return read_topology(_loaded(text))


def read_topology(data: object) -> Imported:
    """Our own format, already parsed."""
    try:
        file = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        raise TopologyError(f"a topology has `nodes` (id, kind) and `links` (a, b): {error}") from error
    nodes = tuple(Node(n.id, n.kind, n.slots, n.memory_bytes) for n in file.nodes)
    links = tuple(Link(k.a, k.b, k.latency_us, k.bytes_per_s) for k in file.links)
    return _fitting(Imported(nodes, links))


def read_nebulastream(fixed: str | object, updates: str | object | None = None) -> Imported:
    """NebulaStream's format, as text or already parsed. One object may hold the content of both files.

    Fixed nodes are edges, the coordinator is the gateway, and a node that has a parent only in the updates is a device.
    The generator numbers some fixed topologies from 1, as if the coordinator had no number, and their updates from 2.
    So the ids are raised by the least number that makes every parent a node.
    """
    base = _object(fixed, "a fixed topology")
    later = base if updates is None else _loaded(updates)
    if isinstance(later, list):
        later = {_UPDATES[0]: later}
    later = _object(later, "topology updates")
    parents = [_pair(p, f"initial_parents[{n}]") for n, p in enumerate(_list(later, ("initial_parents",)))]
    batches = [_batch(b, f"{_UPDATES[0]}[{n}]") for n, b in enumerate(_list(later, _UPDATES))]
    events = [event for _, batch in batches for event in batch]
    pairs = [*parents, *((parent, child) for _, parent, child in events)]

    numbers, slots, children = _fixed(base)
    shift = _shift(numbers, pairs)
    fixed_ids = [n + shift for n in numbers if n + shift != COORDINATOR]
    devices = dict.fromkeys(child for _, child in pairs if child not in {*fixed_ids, COORDINATOR})
    nodes = [Node(_id(COORDINATOR), "gateway")]
    nodes += [Node(_id(n), "edge", slots.get(n - shift, SLOTS)) for n in fixed_ids]
    nodes += [Node(_id(n), "device") for n in devices]

    below = [*((a + shift, b + shift) for a, b in children), *parents]
    ranks = _Ranks(below)
    top = [(COORDINATOR, n) for n in ranks.highest(fixed_ids)]
    ranks.put(top, "nodes")
    links = _once([*top, *below])
    changes = tuple((ms, tuple(_change(*event) for event in batch)) for ms, batch in batches)
    found = _fitting(Imported(tuple(nodes), tuple(Link(_id(child), _id(parent)) for parent, child in links), changes))
    for n, (_, batch) in enumerate(batches):
        ranks.change(batch, f"{_UPDATES[0]}[{n}]")
    return found


def _fitting(found: Imported) -> Imported:
    """Check that nodes and links fit together, and that every batch of changes fits after those before it."""
    check(Topology(), (*map(AddNode, found.nodes), *map(AddLink, found.links)))
    topology = found.topology() if found.batches else Topology()
    before = 0
    for n, (ms, batch) in enumerate(found.batches):
        place = f"{_UPDATES[0]}[{n}], at {ms} ms"
        if ms < before:
            raise TopologyError(f"{place}, comes after one at {before} ms; put them in the order of their times")
        before = ms
        try:
            topology.change(batch)
        except TopologyError as error:
            raise TopologyError(f"{place}: {error}") from error
    return found


def _once(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs without those that were there already, from either end."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for pair in pairs:
        found.setdefault((min(pair), max(pair)), pair)
    return list(found.values())


class _Ranks:
    """Which nodes are above which. Nodes that are listed as parents of each other are equals, and have one rank."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        listed = dict.fromkeys(pairs)
        equals = rx.PyGraph[int, None](multigraph=False)
        index = {number: equals.add_node(number) for number in dict.fromkeys(n for pair in listed for n in pair)}
        equals.add_edges_from_no_data([(index[a], index[b]) for a, b in listed if (b, a) in listed])
        self._graph = rx.PyDiGraph[int, None](check_cycle=True)
        self._rank: dict[int, int] = {}
        for group in rx.connected_components(equals):
            rank = self._graph.add_node(min(equals[n] for n in group))
            self._rank |= {equals[n]: rank for n in group}
        self.put(listed, "children")

    def highest(self, numbers: Iterable[int]) -> list[int]:
        """The nodes that have no parent; of equals that have none, the one with the least number."""
        found: dict[int, int] = {}
        for number in sorted(numbers):
            if not self._graph.in_degree(self._at(number)):
                found.setdefault(self._at(number), number)
        return list(found.values())

    def change(self, batch: Iterable[tuple[str, int, int]], place: str) -> None:
        """Follow a batch that fits the links. It may put no node above itself."""
        for action, parent, child in batch:
            if action == "add":
                self.put([(parent, child)], place)
            elif self._at(parent) != self._at(child):
                self._graph.remove_edge(self._at(parent), self._at(child))

    def put(self, pairs: Iterable[tuple[int, int]], place: str) -> None:
        """Put children below their parents. `place` is where the file says so."""
        for parent, child in pairs:
            if self._at(parent) == self._at(child):
                continue
            try:
                self._graph.add_edge(self._at(parent), self._at(child), None)
            except rx.DAGWouldCycle as error:
                raise TopologyError(
                    f"{place} puts node {child} below node {parent}, which is below node {child} already; parents that "
                    "go round in a circle lead nowhere. Name each link from both ends if its nodes are equals"
                ) from error

    def _at(self, number: int) -> int:
        if number not in self._rank:
            self._rank[number] = self._graph.add_node(number)
        return self._rank[number]


def _fixed(base: Mapping[str, Any]) -> tuple[list[int], dict[int, int], list[tuple[int, int]]]:
    """Ids in their order, slots by id, and pairs of parent and child."""
    if "nodes" not in base:
        raise TopologyError(f"a fixed topology without `nodes`; it has: {', '.join(base) or 'nothing'}")
    nodes = base["nodes"]
    if isinstance(nodes, Mapping):
        numbers = [_number(n, "nodes") for n in nodes]
    elif isinstance(nodes, list):
        numbers = [_number(n["id"] if isinstance(n, Mapping) and "id" in n else n, "nodes") for n in nodes]
    else:
        raise TopologyError("`nodes` of a fixed topology is neither an object by id nor a list")
    slots = {_number(n, "slots"): _number(s, f"slots.{n}") for n, s in _object(base.get("slots", {}), "slots").items()}
    lists = _object(base.get("children", {}), "children")
    children = [(_number(p, "children"), _number(c, f"children.{p}")) for p in lists for c in _list(lists, (p,))]
    return sorted(numbers), slots, sorted(children)


def _shift(numbers: list[int], pairs: list[tuple[int, int]]) -> int:
    mobile = {child for _, child in pairs}
    missing: list[int] = []
    for shift in SHIFTS:
        known = {COORDINATOR, *mobile, *(n + shift for n in numbers)}
        missing = [parent for parent, _ in pairs if parent not in known]
        if not missing:
            return shift
    raise TopologyError(f"the updates name node {missing[0]} as a parent, and the fixed topology has no such node")


def _batch(data: object, place: str) -> tuple[int, list[tuple[str, int, int]]]:
    batch = _object(data, place)
    events = []
    for n, each in enumerate(_list(batch, ("events",))):
        event = _object(each, f"{place}.events[{n}]")
        action = str(event.get("action", "")).lower()
        if action not in ("add", "remove"):
            raise TopologyError(f"{place}.events[{n}] does `{event.get('action')}`; an event adds or removes")
        found = [_number(_one(event, names, f"{place}.events[{n}]"), names[0]) for names in (_PARENT, _CHILD)]
        events.append((action, found[0], found[1]))
    return _number(_one(batch, _TIME, place), f"{place}.{_TIME[0]}"), events


def _change(action: str, parent: int, child: int) -> Change:
    if action == "add":
        return AddLink(Link(_id(child), _id(parent)))
    return RemoveLink(_id(child), _id(parent))


def _pair(data: object, place: str) -> tuple[int, int]:
    if not isinstance(data, list | tuple) or len(data) != 2:
        raise TopologyError(f"{place} is {data!r}; it should be a pair of parent and child")
    return _number(data[0], place), _number(data[1], place)


def _one(data: Mapping[str, Any], names: tuple[str, ...], place: str) -> object:
    for name in names:
        if name in data:
            return data[name]
    raise TopologyError(f"{place} has no `{names[0]}`; it has: {', '.join(data) or 'nothing'}")


def _list(data: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    """The list under one of the names; empty if there is none."""
    for name in names:
        if name in data:
            if not isinstance(data[name], list):
                raise TopologyError(f"`{name}` is not a list")
            return list(data[name])
    return []


def _object(data: object, place: str) -> Mapping[str, Any]:
    found = _loaded(data)
    if not isinstance(found, Mapping):
        raise TopologyError(f"{place} is not a JSON object")
    return found


def _loaded(data: object) -> object:
    if not isinstance(data, str | bytes):
        return data
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise TopologyError(f"a topology that is not JSON: {error}") from error


def _number(data: object, place: str) -> int:
    if not isinstance(data, bool) and isinstance(data, int) and data < 0:
        raise TopologyError(f"`{data}` in {place} is negative; give 0 or more")
    if isinstance(data, bool) or not isinstance(data, int | str) or not str(data).strip().isdigit():
        raise TopologyError(f"`{data}` in {place} is not a whole number")
    return int(data)


def _id(number: int) -> NodeId:
    return NodeId(str(number))
