"""Changes to a topology, and the check of a batch of them.

Law: a batch is checked as a whole before any change is applied, so that it is applied completely or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rove.control.topology.nodes import Link, Node
from rove.model.errors import TopologyError, nearest
from rove.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class AddNode:
    node: Node


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Remove a node and its links."""

    id: NodeId


@dataclass(frozen=True, slots=True)
class AddLink:
    link: Link


@dataclass(frozen=True, slots=True)
class RemoveLink:
    a: NodeId
    b: NodeId


Change = AddNode | RemoveNode | AddLink | RemoveLink


class Known(Protocol):
    """The topology that a batch is checked against."""

    def has(self, id: NodeId) -> bool: ...
    def linked(self, a: NodeId, b: NodeId) -> bool: ...
    def nodes(self) -> Sequence[Node]: ...
    def neighbours(self, id: NodeId) -> Sequence[NodeId]: ...


def check(topology: Known, changes: Sequence[Change]) -> None:
    """Refuse a batch if one of its changes does not fit after those before it. Does not change the topology."""
    nodes: dict[NodeId, bool] = {}
    links: dict[tuple[NodeId, NodeId], bool] = {}

    def there(id: NodeId) -> bool:
        return nodes.get(id, topology.has(id))

    def known(id: NodeId) -> NodeId:
        if not there(id):
            names = [n.id for n in topology.nodes() if there(n.id)] + [n for n, is_there in nodes.items() if is_there]
            raise TopologyError(f"no node `{id}`; {nearest(id, names)}")
        return id

    def linked(a: NodeId, b: NodeId) -> bool:
        return links.get((min(a, b), max(a, b)), topology.linked(a, b))

    for each in changes:
        match each:
            case AddNode(node):
                if there(node.id):
                    raise TopologyError(f"node `{node.id}` exists already; remove it first, or choose another name")
                nodes[node.id] = True
            case RemoveNode(id):
                nodes[known(id)] = False
                before = topology.neighbours(id) if topology.has(id) else ()
                for pair in [*((min(id, o), max(id, o)) for o in before), *(p for p in links if id in p)]:
                    links[pair] = False
            case AddLink(link):
                if linked(known(link.a), known(link.b)):
                    raise TopologyError(f"`{link.a}` and `{link.b}` have a link already; remove it first")
                links[(min(link.a, link.b), max(link.a, link.b))] = True
            case RemoveLink(a, b):
                if not linked(known(a), known(b)):
                    raise TopologyError(f"no link between `{a}` and `{b}`; it cannot be removed")
                links[(min(a, b), max(a, b))] = False
