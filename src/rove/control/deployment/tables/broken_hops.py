"""The nodes of queries whose link to the next node is broken, so that nothing passes there now.

Law: the table follows changes of links and of routes. It costs O(changed links × queries of their nodes) and O(changed
fragments), and nothing for links that no query uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.query import Query
from rove.control.topology.topology import Topology
from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId, QueryId


class BrokenHops:
    """Queries and nodes. `follow` looks at what has changed since it was called last."""

    def __init__(self) -> None:
        self._hops: dict[tuple[QueryId, NodeId], None] = {}

    def follow(
        self,
        queries: Mapping[QueryId, Query],
        of_node: Mapping[NodeId, Iterable[QueryId]],
        rerouted: Iterable[tuple[QueryId, NodeId]],
        topology: Topology,
    ) -> None:
        """Look at the nodes that were `rerouted`, and at the ends of links that have changed. `of_node` are the queries
        in which a node has a part."""
        ends = dict.fromkeys(node for pair in topology.take_relinked() for node in pair)
        linked = ((id, node) for node in ends for id in of_node.get(node, ()))
        for id, node in dict.fromkeys((*rerouted, *linked)):
            if _is_broken(queries.get(id), node, topology):
                self._hops[id, node] = None
            else:
                self._hops.pop((id, node), None)

    def behind(self, queries: Mapping[QueryId, Query]) -> Iterator[tuple[QueryId, NodeId]]:
        """The nodes from which nothing reaches the end of a query, because they or nodes above them have such a link.
        Queries that were stopped are forgotten. O(nodes found)."""
        for id, node in sorted(self._hops):
            deployment = _deployment(queries.get(id))
            if deployment is None:
                del self._hops[id, node]
            else:
                yield from ((id, each) for each in deployment.tree.below((node,)))

    def validate(self, queries: Mapping[QueryId, Query], topology: Topology) -> None:
        """Raise if the table is not what the queries say, just after `follow`. O(broken links × queries)."""
        for id, query in queries.items():
            nodes = {node for pair in topology.broken for node in pair if _is_broken(query, node, topology)}
            if _deployment(query) is not None and nodes != {node for other, node in self._hops if other == id}:
                raise BrokenInvariant(f"the broken hops of `{id}` are not those of its routes")


def _deployment(query: Query | None) -> Deployment | None:
    return None if query is None or query.stopped else query.deployment


def _is_broken(query: Query | None, node: NodeId, topology: Topology) -> bool:
    """Whether the link from a node to the next one is broken, and no other route begins at the node. O(its routes)."""
    deployment = _deployment(query)
    part = None if deployment is None else deployment.tree.parts.get(node)
    if deployment is None or part is None or part.next is None or not topology.is_broken(node, part.next):
        return False
    fragment = deployment.fragments.get(node)
    return fragment is not None and not any(topology.works(node, other) for other in fragment.others)
