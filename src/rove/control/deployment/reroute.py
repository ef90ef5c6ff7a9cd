"""Sources that come later, or that have moved, led to what runs already.

Law: what takes batches in order stays where it is, for it remembers what it has taken. A source is led past it or keeps
the route it has; nobody else's route bends for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from rove.control.deployment.fragments import runs_of, taker
from rove.control.placement.bottom_up import bottom_up
from rove.control.placement.estimate import memory_bytes
from rove.control.placement.placement import Load, Placement, costs_a_slot
from rove.control.placement.request import Request, SourceAt
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError, TopologyError
from rove.model.ids import NodeId, Stage
from rove.plan.stages import merges, ordered

Meetings = dict[SourceAt, tuple[tuple[Stage, NodeId], ...]]


def led(
    request: Request, stage: Stage, source: SourceAt, found: Placement, topology: Topology, load: Load
) -> Placement:
    """The placement with one more source. An operator that takes batches in order is not put where rows of earlier
    sources come by that meet it further up: it would have missed their beginning, so the new source goes up to it as
    well."""
    alone = _alone(request, stage, source, found, _merging(request, found))
    for _ in request.stages.operators:
        placed = bottom_up(alone, topology, load)
        misplaced = next(
            (
                (Stage(n), above)
                for n, operator in enumerate(request.stages.operators)
                if ordered(operator)
                for host in placed.hosts.get(Stage(n), ())
                for above in _hosts_above(request, Stage(n), host, found)
            ),
            None,
        )
        if misplaced is None:
            return _joined(request, found, placed)
        alone = dataclasses.replace(alone, hints={**alone.hints, misplaced[0]: misplaced[1]})
    raise TopologyError(f"`{source.origin}` finds no place beside the sources that were there before")


def moved(request: Request, old: Placement, topology: Topology, load: Load) -> Placement:
    """The placement with everyone whose route is broken on a better one, if there is one that leads past all that
    remembers their rows. O(sources × height) if none is, and a placement for each that moves; again if one cannot."""
    placed = [(s, p) for s, found in request.sources.items() for p in found if p.node in old.routes]
    cut_off = dict.fromkeys(p.node for _, p in placed if _better(request, old, p.node, topology))
    meets = _meetings(request, old, placed) if cut_off else {}
    while cut_off:
        found, stuck = _kept(request, old, meets, cut_off), []
        for stage, source in placed:
            if source.node in cut_off:
                pins = {**_merging(request, old), **dict(meets[source])}
                alone = _alone(request, stage, source, found, pins)
                try:
                    found = _joined(request, found, bottom_up(alone, topology, load.replaced(old, found)))
                except RoveError:
                    stuck.append(source.node)
        stuck += [node for node in cut_off if node in found.routes and not _gains(old, found, node, topology)]
        if not stuck:
            now = _meetings(request, found, placed)
            stuck = [source.node for source in meets if now[source] != meets[source]]
        if not stuck:
            return found
        for node in stuck if cut_off.keys() & set(stuck) else list(cut_off):
            cut_off.pop(node, None)
    return old


def _better(request: Request, old: Placement, node: NodeId, topology: Topology) -> bool:
    """Whether there is a route with fewer broken links than the one a node has."""
    broken = topology.broken_on(old.route(node))
    if not broken or not topology.has(node):
        return False
    best = topology.routes([node], request.root)
    return topology.broken_on(_along(best, node)) < broken


def _gains(old: Placement, new: Placement, node: NodeId, topology: Topology) -> bool:
    return topology.broken_on(new.route(node)) < topology.broken_on(old.route(node))


def _kept(request: Request, old: Placement, meets: Meetings, cut_off: Collection[NodeId]) -> Placement:
    """The placement without those who are cut off: the routes of all others, and of what remembers others' rows."""
    staying = [source.node for source in meets if source.node not in cut_off]
    theirs = {host for source, met in meets.items() if source.node in cut_off for _, host in met}
    holding = [
        host
        for stage, hosts in old.hosts.items()
        if ordered(request.stages.operators[stage])
        for host in hosts
        if host not in theirs and host not in cut_off
    ]
    routes = {node: old.routes[node] for start in (*staying, *holding, request.root) for node in old.route(start)}
    hosts = {stage: tuple(h for h in hosts if h in routes) for stage, hosts in old.hosts.items()}
    return _measured(request, dataclasses.replace(old, routes=routes, hosts=hosts))


def _meetings(request: Request, placement: Placement, placed: Iterable[tuple[Stage, SourceAt]]) -> Meetings:
    """For every source, where its rows meet what takes them in order. O(sources × stages × height)."""
    runs = runs_of(request, placement)
    found: Meetings = {}
    for start, source in placed:
        reached: dict[Stage, dict[NodeId, None]] = {start: {source.node: None}}
        met: dict[tuple[Stage, NodeId], None] = {}
        for n, operator in enumerate(request.stages.operators):
            stage = Stage(n)
            starts = [node for i in request.stages.inputs[stage] for node in reached.get(i, ())]
            taken = (taker(placement, runs, stage, node) for node in starts)
            here = dict.fromkeys(node for node in taken if node is not None)
            reached.setdefault(stage, here)
            if ordered(operator):
                met |= dict.fromkeys((stage, node) for node in here)
        found[source] = tuple(met)
    return found


def _merging(request: Request, found: Placement) -> dict[Stage, NodeId]:
    """Where operators are that have one place for all."""
    operators = enumerate(request.stages.operators)
    return {Stage(n): found.hosts[Stage(n)][0] for n, op in operators if merges(op) and found.hosts.get(Stage(n))}


def _hosts_above(request: Request, stage: Stage, host: NodeId, found: Placement) -> Iterator[NodeId]:
    """Where earlier sources that come by a node meet an operator further up."""
    for pairs in request.sources.values():
        for earlier in pairs:
            if earlier.node in found.routes and host in found.route(earlier.node):
                meets = found.host(stage, earlier.node)
                if meets is not None and meets != host and host not in found.route(meets):
                    yield meets


def _alone(request: Request, stage: Stage, source: SourceAt, found: Placement, pins: Mapping[Stage, NodeId]) -> Request:
    """A request for one source, with these operators pinned to where they are, and Spark's left to Spark."""
    hints = {**request.hints, **pins, **dict.fromkeys(found.spark, "cloud")}
    return dataclasses.replace(request, sources={stage: (source,)}, hints=hints, running=found.hosts)


def _joined(request: Request, old: Placement, new: Placement) -> Placement:
    """Both placements at once; what both host on a node is one instance there, and a node that has a route keeps it."""
    hosts = {
        s: tuple(dict.fromkeys((*old.hosts.get(s, ()), *new.hosts.get(s, ())))) for s in {**old.hosts, **new.hosts}
    }
    both = Placement(
        hosts=hosts,
        spark=old.spark,
        routes={**new.routes, **old.routes},
        why={**new.why, **old.why},
        slots={},
        memory_bytes={},
    )
    return _measured(request, both)


def _measured(request: Request, placement: Placement) -> Placement:
    """A placement with what it takes of each node. O(stages × hosts)."""
    slots: dict[NodeId, int] = {}
    memory: dict[NodeId, int] = {}
    for stage, hosts in placement.hosts.items():
        operator = request.stages.operators[stage]
        if costs_a_slot(operator):
            for node in hosts:
                slots[node] = slots.get(node, 0) + 1
                memory[node] = memory.get(node, 0) + memory_bytes(operator)
    return dataclasses.replace(placement, slots=slots, memory_bytes=memory)


def _along(routes: Mapping[NodeId, NodeId | None], start: NodeId) -> Iterator[NodeId]:
    at: NodeId | None = start
    while at is not None:
        yield at
        at = routes[at]
