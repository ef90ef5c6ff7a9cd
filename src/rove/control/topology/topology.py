"""Nodes, links, and the routes between them.

Law: a route depends on the topology only. The next hop from a node towards a sink is the one with the fewest broken
links, then the least latency, then the fewest hops, then the smallest name. So all routes to a sink form one tree, in
whatever order they are asked for. Devices never relay: a device is only at the beginning or the end of a route.

Only relays (edges and gateways) are searched, so a device that moves invalidates nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import Literal

import rustworkx as rx

from rove.control.topology.changes import AddLink, AddNode, Change, RemoveLink, RemoveNode, check
from rove.control.topology.nodes import Link, Node
from rove.model.errors import TopologyError, nearest
from rove.model.ids import NodeId

__all__ = ["AddLink", "AddNode", "By", "Change", "Link", "Node", "RemoveLink", "RemoveNode", "Topology"]

TREES_MAX = 64  # shortest-path trees that are kept, one for each sink

By = Literal["latency", "hops"]
# A route's length is one exact number, made of its broken links, then the first measure, then the second. Floats are
# exact below 2**53, so a route may have 511 broken links, 4,095 hops and 71 minutes of latency.
_HOPS_MAX = 1 << 12
_LATENCY_SUM_MAX_US = 1 << 32
_BROKEN = _HOPS_MAX * _LATENCY_SUM_MAX_US
_MEASURE: dict[By, int] = {"latency": 0, "hops": 1}


@dataclass(slots=True)
class _Tree:
    """The distance of each relay from one sink, and the next hops that were asked for."""

    length: Mapping[int, float]
    next: dict[NodeId, NodeId] = field(default_factory=dict)
    above: Mapping[int, int] | None = None  # for each relay, the next relay that every route to the sink passes


class Topology:
    """The present graph of nodes and links. `version` grows with every change."""

    def __init__(self, nodes: Iterable[Node] = (), links: Iterable[Link] = ()) -> None:
        self.version = 0
        self._nodes: dict[NodeId, Node] = {}
        self._links: dict[NodeId, dict[NodeId, Link]] = {}
        self._relays: rx.PyGraph[NodeId, tuple[float, float]] = rx.PyGraph(multigraph=False)
        self._index: dict[NodeId, int] = {}
        self._broken: set[tuple[NodeId, NodeId]] = set()
        self._drained: set[NodeId] = set()
        self._dead: set[NodeId] = set()
        self._relinked: dict[tuple[NodeId, NodeId], None] = {}  # links that have changed since they were taken
        self._trees: dict[tuple[NodeId, By], _Tree] = {}
        self.change((*map(AddNode, nodes), *map(AddLink, links)))

    # Reading

    def has(self, id: NodeId) -> bool:
        return id in self._nodes

    def node(self, id: NodeId) -> Node:
        if id not in self._nodes:
            raise TopologyError(f"no node `{id}`; {nearest(id, list(self._nodes))}")
        return self._nodes[id]

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in the order in which they were added."""
        return tuple(self._nodes.values())

    def links(self) -> tuple[Link, ...]:
        """All links, each once."""
        return tuple(link for near, links in self._links.items() for link in links.values() if link.a == near)

    def linked(self, a: NodeId, b: NodeId) -> bool:
        return b in self._links.get(a, ())

    def link(self, a: NodeId, b: NodeId) -> Link:
        self.node(a), self.node(b)
        if b not in self._links[a]:
            raise TopologyError(f"no link between `{a}` and `{b}`; from `{a}` {nearest(b, self.neighbours(a))}")
        return self._links[a][b]

    def neighbours(self, id: NodeId) -> tuple[NodeId, ...]:
        """The nodes that a node has links to, ordered by name."""
        return tuple(sorted(self._links[self.node(id).id]))

    def works(self, a: NodeId, b: NodeId) -> bool:
        """Whether a link exists and is not marked as broken."""
        return self.linked(a, b) and not self.is_broken(a, b)

    def take_relinked(self) -> Iterable[tuple[NodeId, NodeId]]:
        """The links that were added, removed or marked since the last call."""
        found, self._relinked = self._relinked, {}
        return found

    def is_broken(self, a: NodeId, b: NodeId) -> bool:
        """Whether a link exists and is marked as broken."""
        return (min(a, b), max(a, b)) in self._broken

    @property
    def has_relinked(self) -> bool:
        """Whether links have changed since they were taken."""
        return bool(self._relinked)

    @property
    def broken(self) -> Collection[tuple[NodeId, NodeId]]:
        """The broken links, by their ends."""
        return self._broken

    # Changing

    def add_node(self, node: Node) -> None:
        self.change((AddNode(node),))

    def remove_node(self, id: NodeId) -> None:
        """Remove a node and its links. O(links of the node)."""
        self.change((RemoveNode(id),))

    def add_link(self, link: Link) -> None:
        self.change((AddLink(link),))

    def remove_link(self, a: NodeId, b: NodeId) -> None:
        self.change((RemoveLink(a, b),))

    def mark(self, a: NodeId, b: NodeId, works: bool) -> bool:
        """Mark a link as working or broken. Returns whether that is a change. Routes use a broken link only if they
        must."""
        if self.works(a, b) == works:
            return False
        pair = (min(a, b), max(a, b))
        (self._broken.discard if works else self._broken.add)(pair)
        self._relinked[pair] = None
        self._measure(self.link(a, b))
        self._forget(a, b)
        self.version += 1
        return True

    def drain(self, id: NodeId, drained: bool) -> None:
        """Set whether routes avoid a node, as they avoid broken links. O(links of the node)."""
        self._avoid(self._drained, id, drained)

    def count_dead(self, id: NodeId, dead: bool) -> None:
        """Set whether a node counts as dead: routes avoid it, as they avoid broken links. O(links of the node)."""
        self._avoid(self._dead, id, dead)

    def _avoid(self, nodes: set[NodeId], id: NodeId, avoided: bool) -> None:
        if avoided == (id in nodes):
            return
        (nodes.add if avoided else nodes.discard)(id)
        for link in self._links[self.node(id).id].values():
            self._measure(link)
            self._forget(link.a, link.b)
        self.version += 1

    def is_drained(self, id: NodeId) -> bool:
        return id in self._drained

    def is_dead(self, id: NodeId) -> bool:
        return id in self._dead

    def change(self, batch: Iterable[Change]) -> None:
        """Apply changes in order. If one does not fit after those before it, none is applied. O(links touched)."""
        changes = tuple(batch)
        check(self, changes)
        for each in changes:
            match each:
                case AddNode(node):
                    self._nodes[node.id], self._links[node.id] = node, {}
                    if node.relays:
                        self._index[node.id] = self._relays.add_node(node.id)
                case RemoveNode(id):
                    for other in tuple(self._links[id]):
                        self._unlink(id, other)
                    self._forget(id, id)
                    if id in self._index:
                        self._relays.remove_node(self._index.pop(id))
                    del self._nodes[id], self._links[id]
                case AddLink(link):
                    self._links[link.a][link.b] = self._links[link.b][link.a] = link
                    self._relinked[min(link.a, link.b), max(link.a, link.b)] = None
                    self._measure(link)
                    self._forget(link.a, link.b)
                case RemoveLink(a, b):
                    self._unlink(a, b)
        self.version += 1

    def _measure(self, link: Link) -> None:
        """Put a link between relays into the graph that is searched, with its present length."""
        if link.a in self._index and link.b in self._index:
            self._relays.add_edge(self._index[link.a], self._index[link.b], self._lengths(link))

    def _lengths(self, link: Link) -> tuple[float, float]:
        """The length of a link, by latency and by hops."""
        broken = 0 if self._goes(link.a, link.b) else _BROKEN
        return (
            float(broken + link.latency_us * _HOPS_MAX + 1),
            float(broken + _LATENCY_SUM_MAX_US + link.latency_us),
        )

    def _unlink(self, a: NodeId, b: NodeId) -> None:
        del self._links[a][b], self._links[b][a]
        pair = (min(a, b), max(a, b))
        self._broken.discard(pair)
        self._relinked[pair] = None
        if a in self._index and b in self._index:
            self._relays.remove_edge(self._index[a], self._index[b])
        self._forget(a, b)

    def _forget(self, a: NodeId, b: NodeId) -> None:
        """Drop the trees that a change between two nodes may affect: all trees if both are relays."""
        if a in self._index and b in self._index:
            self._trees.clear()
            return
        for key in [k for k in self._trees if k[0] in (a, b)]:
            del self._trees[key]

    # Routes

    def routes(self, sources: Iterable[NodeId], sink: NodeId, by: By = "latency") -> dict[NodeId, NodeId | None]:
        """The next hop towards the sink for every node between the sources and the sink; None for the sink itself.

        O(nodes on the routes) once the sink's tree exists. Building a tree is one search of all relays: about 30 ms if
        nearly all of 43,602 nodes are relays, about 1 ms if most are devices. It is kept until a link between relays
        changes.
        """
        tree = self._tree(self.node(sink).id, by)
        found: dict[NodeId, NodeId | None] = {sink: None}
        for source in sources:
            at = self.node(source).id
            while at not in found:
                step = self._step(at, sink, tree, by)
                if step is None:
                    raise TopologyError(
                        f"`{source}` has no route to `{sink}`: no link leads on from `{at}` over edges and gateways; "
                        "add one, or wait until the node is back"
                    )
                found[at] = step
                at = step
        return found

    def reaches(self, source: NodeId, sink: NodeId) -> bool:
        """Whether there is a route from one node to another."""
        tree = self._tree(self.node(sink).id, "latency")
        return source == sink or self._step(self.node(source).id, sink, tree, "latency") is not None

    def apart(
        self, source: NodeId, sink: NodeId, routes: Iterable[Sequence[NodeId]], avoid: Iterable[NodeId] = ()
    ) -> tuple[NodeId, ...] | None:
        """The route of least latency that shares only its ends with the given routes; None if no such route works.
        O(relays log relays)."""
        known = [set(route) for route in routes]
        used = {*avoid}.union(*known) - {source, sink}
        graph = self._relays.copy()
        graph.remove_nodes_from([self._index[node] for node in used if node in self._index])
        ends = []
        for end in (self.node(source).id, self.node(sink).id):
            here = self._index.get(end)
            if here is None:
                here = graph.add_node(end)
                for other, link in self._links[end].items():
                    if other in self._index and other not in used:
                        graph.add_edge(here, self._index[other], self._lengths(link))
            ends.append(here)
        if any(len(route) == 2 for route in known) and graph.has_edge(*ends):
            graph.remove_edge(*ends)
        found = rx.dijkstra_shortest_paths(graph, ends[0], ends[1], weight_fn=itemgetter(_MEASURE["latency"]))
        route = tuple(graph[n] for n in found[ends[1]]) if ends[1] in found else None
        return None if route is None or self.broken_on(route[1:]) else route

    def broken_on(self, route: Iterable[NodeId]) -> int:
        """How many links of a route are broken, or lead to or from a node that is being drained. O(route)."""
        return sum(not self._goes(a, b) for a, b in pairwise(route))

    def _goes(self, a: NodeId, b: NodeId) -> bool:
        if b not in self._links.get(a, ()) or ((a, b) if a < b else (b, a)) in self._broken:
            return False
        avoided = self._drained or self._dead
        return not (avoided and any(n in self._drained or n in self._dead for n in (a, b)))

    def certain(self, source: NodeId, sink: NodeId) -> frozenset[NodeId]:
        """The nodes that are on every route from a source to the sink, whatever breaks, including both ends.
        O(links of the source × height) once the sink's tree exists."""
        tree = self._tree(self.node(sink).id, "latency")
        if tree.above is None:
            tree.above = self._dominators(sink)
        if source == sink:
            return frozenset((sink,))
        starts = [source] if source in self._index else list(self._links[self.node(source).id])
        shared: set[NodeId] | None = None
        for start in starts:
            if start == sink:
                return frozenset((source, sink))
            at = self._index.get(start, -1)
            if at not in tree.above:
                continue  # it leads nowhere
            here = set()
            while at != tree.above[at]:
                here.add(self._relays[at])
                at = tree.above[at]
            shared = here if shared is None else shared & here
        return frozenset((source, sink, *(shared or ())))

    def _dominators(self, sink: NodeId) -> dict[int, int]:
        """For each relay the nearest relay that every route from it to the sink passes. For the sink, the sink."""
        both_ways = self._relays.to_directed()
        if sink in self._index:
            return dict(rx.immediate_dominators(both_ways, self._index[sink]))
        here = both_ways.add_node(sink)
        for other in self._links[sink]:
            if other in self._index:
                both_ways.add_edge(here, self._index[other], (0.0, 0.0))
        return dict(rx.immediate_dominators(both_ways, here))

    def _step(self, at: NodeId, sink: NodeId, tree: _Tree, by: By) -> NodeId | None:
        """The next hop. O(links of the node) for a device, and for a relay when it is first asked for."""
        if known := tree.next.get(at):
            return known
        best: tuple[float, NodeId] | None = None
        for other, link in self._links[at].items():
            if other == sink:
                length = 0.0
            elif other in self._index and self._index[other] in tree.length:
                length = tree.length[self._index[other]]
            else:
                continue
            here = (length + self._lengths(link)[_MEASURE[by]], other)
            best = here if best is None else min(best, here)
        if best is None:
            return None
        if at in self._index:
            tree.next[at] = best[1]  # only for relays: links of a device may change without a new tree
        return best[1]

    def _tree(self, sink: NodeId, by: By) -> _Tree:
        if known := self._trees.get((sink, by)):
            return known
        if len(self._trees) >= TREES_MAX:
            del self._trees[next(iter(self._trees))]
        measure = itemgetter(_MEASURE[by])
        if sink in self._index:
            length = rx.dijkstra_shortest_path_lengths(self._relays, self._index[sink], measure)
        else:  # a device that is the sink is added to the relays for the search
            here = self._relays.add_node(sink)
            for other, link in self._links[sink].items():
                if other in self._index:
                    self._relays.add_edge(here, self._index[other], self._lengths(link))
            length = rx.dijkstra_shortest_path_lengths(self._relays, here, measure)
            self._relays.remove_node(here)
        tree = self._trees[(sink, by)] = _Tree(length)
        return tree
