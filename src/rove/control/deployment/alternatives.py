"""Alternative routes, for when a route breaks, or to send over several at once.

Law: the routes of one source share no node below the first node where its rows must come together: where all routes
meet, where an operator takes rows in order, or where the query ends. No node before that one needs rows in order. A
node has one route to the end, so all routes together still lead there. Relays on a route only pass rows on; the
operators that they skip run where the routes meet.

Every route of a relay to the end passes the node where the routes meet. A relay may get another route later, for other
sources. Batches that it still has then go that way, and must meet the operator that has taken the earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from rove.control.deployment.deployment import Deployment
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId
from rove.plan.stages import ordered

TRIES = 64  # attempts to find routes for one source


@dataclass(frozen=True, slots=True)
class Alternatives:
    """`begin` are the nodes where a source's other routes begin; `relays` pass rows on, each to one node."""

    begin: Mapping[NodeId, tuple[NodeId, ...]] = field(default_factory=dict)
    relays: Mapping[NodeId, NodeId] = field(default_factory=dict)


def alternatives(deployment: Deployment, request: Request, topology: Topology, replication: int) -> Alternatives:
    """Up to `replication` routes for each source, including the one it has. O(sources × tries × (relays + route ×
    height))."""
    tree, operators = deployment.tree, deployment.terms.stages.operators
    if replication < 2:
        return Alternatives()
    begin: dict[NodeId, tuple[NodeId, ...]] = {}
    relays: dict[NodeId, NodeId] = {}
    starts = sorted(node for node, part in tree.parts.items() if part.sources and topology.has(node))
    in_order = {node for node, part in tree.parts.items() if any(ordered(operators[s]) for s in part.hosts)}
    routes = {node: part.next for node, part in tree.parts.items()}  # routes of relays are added
    for start in starts:
        certain = topology.certain(start, request.root)
        own = _up_to(routes, start, in_order | certain)
        taken, avoid = [own], set(in_order)
        for _ in range(TRIES if len(own) > 1 else 0):
            other = topology.apart(start, own[-1], taken, avoid) if len(taken) < replication else None
            if other is None:
                break
            # A node that has a route keeps it, so all batches that reach it go there.
            joins = next(n for n, node in enumerate(other) if node in routes and n)
            whole = other
            if other[joins] != own[-1]:
                whole = (*other[:joins], *_up_to(routes, other[joins], in_order | {own[-1]}))
            if whole[-1] != own[-1] or not set(whole[1:-1]).isdisjoint(node for route in taken for node in route):
                avoid.add(other[joins])
                continue
            if astray := [node for node in whole[1:-1] if own[-1] not in topology.certain(node, request.root)]:
                avoid.update(astray)
                continue
            taken.append(whole)
            for node, above in pairwise(other[1 : joins + 1]):
                relays[node] = routes[node] = above
        begin[start] = tuple(route[1] for route in taken[1:])
    return Alternatives(begin, relays)


def _up_to(routes: Mapping[NodeId, NodeId | None], start: NodeId, in_order: set[NodeId]) -> tuple[NodeId, ...]:
    """The route from a node to the first node above it that takes rows in order, or to the end."""
    route, at = [start], routes[start]
    while at is not None:
        route.append(at)
        at = None if at in in_order else routes[at]
    return tuple(route)
