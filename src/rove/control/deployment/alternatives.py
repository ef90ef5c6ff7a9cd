"""Other roads than the one that rows take: for when it breaks, or to send over several at once.

Law: roads from one source share no node below where all roads meet, or its rows are taken in order, or end, and nobody
else takes them in order on the way. A node has one road to the end, whoever comes by, so all roads together still lead
there; relays on them only pass rows on, and what these have missed is done where the roads meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from rove.control.placement.placement import Placement
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId
from rove.plan.stages import ordered

TRIES = 64  # to find roads for one source, where most nodes lead elsewhere


@dataclass(frozen=True, slots=True)
class OtherRoads:
    """`begin` are the nodes where a source's other roads begin; `relays` pass rows on, each to one node."""

    begin: Mapping[NodeId, tuple[NodeId, ...]] = field(default_factory=dict)
    relays: Mapping[NodeId, NodeId] = field(default_factory=dict)


def other_roads(request: Request, placement: Placement, topology: Topology, replication: int) -> OtherRoads:
    """Up to so many roads for each source, the one it has among them. O(sources × tries × relays)."""
    if replication < 2:
        return OtherRoads()
    begin: dict[NodeId, tuple[NodeId, ...]] = {}
    relays: dict[NodeId, NodeId] = {}
    starts = dict.fromkeys(s.node for found in request.sources.values() for s in found if s.node in placement.roads)
    in_order = {
        host for stage, hosts in placement.hosts.items() if ordered(request.stages.operators[stage]) for host in hosts
    }
    roads: dict[NodeId, NodeId | None] = dict(placement.roads)  # those of relays come on top
    for start in starts:
        certain = topology.certain(start, request.root)
        own = _up_to(roads, start, in_order | certain)
        taken, avoid = [own], set(in_order)
        for _ in range(TRIES if len(own) > 1 else 0):
            other = topology.apart(start, own[-1], taken, avoid) if len(taken) < replication else None
            if other is None:
                break
            # A node that has a road keeps it, and everyone who comes by goes there.
            joins = next(n for n, node in enumerate(other) if node in roads and n)
            whole = other
            if other[joins] != own[-1]:
                whole = (*other[:joins], *_up_to(roads, other[joins], in_order | {own[-1]}))
            if whole[-1] != own[-1] or not set(whole[1:-1]).isdisjoint(node for road in taken for node in road):
                avoid.add(other[joins])
                continue
            taken.append(whole)
            for node, above in pairwise(other[1 : joins + 1]):
                relays[node] = roads[node] = above
        begin[start] = tuple(road[1] for road in taken[1:])
    return OtherRoads(begin, relays)


def _up_to(roads: Mapping[NodeId, NodeId | None], start: NodeId, in_order: set[NodeId]) -> tuple[NodeId, ...]:
    """The road from a node to the first one above it that takes rows in order, or to the end."""
    road, at = [start], roads[start]
    while at is not None:
        road.append(at)
        at = None if at in in_order else roads[at]
    return tuple(road)
