"""Routes new sources, and sources that have moved, to the operators that run already.

Law: an operator that takes batches in order stays where it is, because it holds state. The new route of a source passes
all operators that hold its state, or the source keeps its route. The routes of other sources do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType

from msgspec.structs import replace

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.part import At, Part
from rove.control.placement.bottom_up import bottom_up
from rove.control.placement.placement import Load, Placement
from rove.control.placement.request import Request, SourceAt
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError, TopologyError
from rove.model.ids import NodeId, Origin, Stage
from rove.plan.stages import ordered


def lead(
    deployment: Deployment, request: Request, stage: Stage, source: SourceAt, topology: Topology, load: Load
) -> None:
    """Add one source. An operator that takes batches in order is not put on a node that rows of earlier sources pass on
    their way to the same operator further up: it would have missed their first batches. The new source then goes up to
    that operator too. The same holds for the node of the new source if it runs the query without that operator and has
    a disk: when it starts again it goes on with the query, and keeps the rows of its new sources until they have a
    place. O(stages × height), plus the nodes below a node where such an operator would be new."""
    pins, lifts = {**deployment.merging(), **lifted_at(deployment, source.node)}, _lifts(deployment, source.node)
    alone = request_of(deployment, request, {stage: (source,)}, pins)
    for _ in request.stages.operators:
        placed = bottom_up(alone, topology, load)
        misplaced = _misplaced(deployment, request, placed, (stage, source.node))
        if misplaced is None:
            deployment.put(joined(deployment, placed, {stage: (source,)}, lifts=lifts))
            return
        alone = dataclasses.replace(alone, hints={**alone.hints, misplaced[0]: misplaced[1]})
    raise TopologyError(f"`{source.origin}` cannot be placed beside the earlier sources")


def move(
    deployment: Deployment, request: Request, nodes: Iterable[NodeId], topology: Topology, load: Load
) -> list[NodeId]:
    """Give each of these nodes whose route is broken a better route, if one passes all operators that hold its state.
    Returns the nodes that moved. O(nodes × stages × height), once more for each node that cannot move."""
    routes = {node: route for node in nodes if (route := better(deployment, node, topology))}
    position = deployment.journal.position
    if all(_runs_all(deployment, request, node, topology) for node in routes):
        if all(_swap(deployment, node, route, topology) for node, route in routes.items()):
            return list(routes)
        deployment.roll_back(position)
    going = dict.fromkeys(routes)
    while going:
        position = deployment.journal.position
        broken = {node: topology.broken_on(deployment.tree.route(node)) for node in going}
        stuck = move_all(deployment, request, going, topology, load)
        if not stuck:
            taken = ((node, deployment.tree.route(node)) for node in going)
            stuck = [node for node, route in taken if topology.broken_on(route) >= broken[node]]
        if not stuck:
            stuck = deployment.meetings.disturbed(deployment.journal, position)
        if not stuck:
            return list(going)
        deployment.roll_back(position)
        for node in stuck if going.keys() & set(stuck) else list(going):
            going.pop(node, None)
    return []


def _runs_all(deployment: Deployment, request: Request, node: NodeId, topology: Topology) -> bool:
    """Whether a node runs all operators for its rows itself, but for those that have to be where all routes end. On
    another route a placement would put every operator where it is. O(route + stages)."""
    part = deployment.tree.parts[node]
    if part != Part(next=part.next, hosts=part.hosts, sources=part.sources) or deployment.tree.children.get(node):
        return False
    if topology.is_drained(node) or (request.lacks and any(request.lacks(stage, node) for stage in part.hosts)):
        return False
    return all(_has_to_be(deployment, source, node) for source in dict.fromkeys(stage for stage, _ in part.sources))


def _swap(deployment: Deployment, node: NodeId, route: list[NodeId], topology: Topology) -> bool:
    """Give a node that runs all its operators another route. Returns whether fewer links of it are broken, and its rows
    are taken in order where they were. O(route)."""
    tree, part, position = deployment.tree, deployment.tree.parts[node], deployment.journal.position
    broken = topology.broken_on(tree.route(node))
    gone = without(deployment, {node: part}, {node: met_by(deployment, node)})
    before = {n: tree.parts.get(n) for n in gone}
    fresh = {n: _bare(before.get(n), above, ()) for n, above in pairwise(route[1:]) if n in gone or n not in tree}
    deployment.put({**gone, **fresh, node: replace(part, next=route[1])})
    disturbed = deployment.meetings.disturbed(deployment.journal, position)
    return topology.broken_on(tree.route(node)) < broken and not disturbed


def _has_to_be(deployment: Deployment, source: Stage, node: NodeId) -> bool:
    """Whether every operator for rows of a source is on the source's node, or has to be at the root: because it takes
    rows in order there, or reads nothing but operators there. O(stages)."""
    stages, at_root = deployment.terms.stages, set[Stage]()
    for stage, at in deployment.meetings.walk((source, node)):
        if at == node:
            continue
        inputs = stages.inputs[stage]
        if at != deployment.root or not (ordered(stages.operators[stage]) or at_root.issuperset(inputs)):
            return False
        at_root.add(stage)
    return True


def relieve(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> bool:
    """Move the operators whose functions a node lacks to nodes above it. Returns whether that was possible; if not,
    nothing changes. O(sources below the node × stages × height)."""
    position = deployment.journal.position
    going = dict.fromkeys(deployment.source_nodes(node))
    stuck = move_all(deployment, request, going, topology, load)
    stuck = stuck or deployment.meetings.disturbed(deployment.journal, position)
    part, lacks = deployment.tree.parts.get(node), request.lacks
    if part is not None and lacks is not None and any(lacks(stage, node) for stage in part.hosts):
        stuck = [node]
    if stuck:
        deployment.roll_back(position)
    return not stuck


def move_all(
    deployment: Deployment,
    request: Request,
    going: Iterable[NodeId],
    topology: Topology,
    load: Load,
    pins: Mapping[Stage, NodeId] = MappingProxyType({}),
) -> list[NodeId]:
    """Take nodes out and put them back on routes that work, past the operators that hold their state, or that are
    pinned. Returns the nodes without such a route."""
    parts = {node: deployment.tree.parts[node] for node in going}
    met = {node: met_by(deployment, node) for node in parts}
    gone = without(deployment, parts, met)
    before = {node: deployment.tree.parts[node] for node in gone}
    deployment.put(gone)
    stuck: list[NodeId] = []
    for node, part in parts.items():
        sources = {stage: tuple(SourceAt(o, node) for s, o in part.sources if s == stage) for stage, _ in part.sources}
        theirs = {**deployment.merging(), **met[node], **lifted_at(deployment, node, part), **pins}
        alone = request_of(deployment, request, sources, theirs)
        try:
            placed = bottom_up(alone, topology, load)
            deployment.put(joined(deployment, placed, sources, before, part.lifts))
        except RoveError:
            stuck.append(node)
    return stuck


def without(
    deployment: Deployment, parts: Mapping[NodeId, Part], met: Mapping[NodeId, Mapping[Stage, NodeId]]
) -> dict[NodeId, Part | None]:
    """The change that takes nodes out, with all nodes above them that only they need: no other route passes them, and
    they hold no state of other sources. O(routes)."""
    tree, gone = deployment.tree, dict[NodeId, Part | None](dict.fromkeys(parts))
    theirs = {host for hosts in met.values() for host in hosts.values()}
    for start in parts:
        for node in tree.route(start):
            if node in gone:
                continue
            part = tree.parts[node]
            shared = any(child not in gone for child in tree.children.get(node, ()))
            remembers = node not in theirs and any(ordered(deployment.terms.stages.operators[s]) for s in part.hosts)
            if shared or part.sources or part.stays or remembers or node == deployment.root:
                break
            gone[node] = None
    return gone


def joined(
    deployment: Deployment,
    placed: Placement,
    sources: Mapping[Stage, Iterable[SourceAt]],
    before: Mapping[NodeId, Part] = MappingProxyType({}),
    lifts: Collection[Stage] = (),
) -> dict[NodeId, Part | None]:
    """The change that adds a placement to the deployment. An operator that both host on a node is one instance there,
    and a node that has a route keeps it. Operators on a node that had a part `before` keep their names. Those that
    take these sources batch by batch (`lifts`) are no hosts. O(nodes of the placement)."""
    hosts: dict[NodeId, list[Stage]] = {}
    for stage, nodes in ((stage, nodes) for stage, nodes in placed.hosts.items() if stage not in lifts):
        for node in nodes:
            hosts.setdefault(node, []).append(stage)
    made: dict[NodeId, list[tuple[Stage, Origin]]] = {}
    for stage, each in sources.items():
        for source in each:
            made.setdefault(source.node, []).append((stage, source.origin))
    found: dict[NodeId, Part | None] = {}
    for node, above in placed.routes.items():
        old = deployment.tree.parts.get(node) or _bare(before.get(node), above, hosts.get(node, ()))
        new = replace(
            old,
            hosts=tuple(sorted({*old.hosts, *hosts.get(node, ())})),
            sources=(*old.sources, *(pair for pair in made.get(node, ()) if pair not in old.sources)),
        )
        if node not in deployment.tree or new != old:
            found[node] = new
    return found


def _bare(before: Part | None, above: NodeId | None, hosts: Collection[Stage]) -> Part:
    """A part without operators and sources, with what its node knows of operators that it hosts again."""
    if before is None:
        return Part(next=above)
    return replace(
        before,
        next=above,
        hosts=(),
        sources=(),
        others=(),
        relay=False,
        names=tuple(name for name in before.names if name.stage in hosts),
        lost=tuple(each for each in before.lost if each[0] in hosts),
        been=tuple(at for at in before.been if at[0] in hosts),
    )


def request_of(
    deployment: Deployment,
    request: Request,
    sources: Mapping[Stage, tuple[SourceAt, ...]],
    pins: Mapping[Stage, NodeId],
) -> Request:
    """A request for some sources only, with these operators pinned to their nodes, and Spark's part left to Spark."""
    spark = (Stage(n) for n in range(len(request.stages.operators)) if n not in deployment.terms.split.numbers)
    hints = {**request.hints, **pins, **dict.fromkeys(spark, "cloud")}
    return dataclasses.replace(request, sources=sources, hints=hints, running=deployment.hosts)


def _misplaced(deployment: Deployment, request: Request, placed: Placement, new: At) -> At | None:
    """An operator that takes batches in order and was put below the place where earlier rows that pass that node meet
    it, with that place. The node of the `new` source may have rows of it if it has a disk and reads that stream
    already. O(nodes below its new place)."""
    tree, meetings = deployment.tree, deployment.meetings
    reads, source_node = new
    for stage, hosts in sorted(placed.hosts.items()):
        if not ordered(request.stages.operators[stage]):
            continue
        for host in hosts:
            if host not in tree or deployment.hosts(stage, host) or host == deployment.root:
                continue
            for node in tree.below((host,)):
                for source, _ in () if tree.parts[node].lifts else tree.parts[node].sources:
                    for met, above in meetings.met((source, node)):
                        if met == stage and host not in tree.route(above):
                            return stage, above
            if host == source_node and deployment.hosts(reads, host) and not deployment.starts.get(host):
                return stage, next((n for n in tree.route(host) if deployment.hosts(stage, n)), deployment.root)
    return None


def met_by(deployment: Deployment, node: NodeId) -> dict[Stage, NodeId]:
    """The nodes where rows of a node's sources are taken in order, by stage."""
    stages = dict.fromkeys(stage for stage, _ in deployment.placed(node))
    return {s: at for source in stages for s, at in deployment.meetings.met((source, node))}


def lifted_at(deployment: Deployment, node: NodeId, part: Part | None = None) -> dict[Stage, NodeId]:
    """The operators that rows of a device pass at the root because it has left an edge, with the root."""
    known = deployment.tree.parts.get(node) if part is None else part
    return {} if known is None else dict.fromkeys(known.along, deployment.root)


def _lifts(deployment: Deployment, node: NodeId) -> tuple[Stage, ...]:
    part = deployment.tree.parts.get(node)
    return () if part is None else part.lifts


def has_better(deployment: Deployment, node: NodeId, topology: Topology) -> bool:
    """Whether there is a route with fewer broken links than the node's own. O(height)."""
    return bool(better(deployment, node, topology))


def better(deployment: Deployment, node: NodeId, topology: Topology) -> list[NodeId]:
    """The best route of a node, if it has fewer broken links than its own; empty otherwise. O(height)."""
    broken = topology.broken_on(deployment.tree.route(node)) if deployment.placed(node) else 0
    if not broken or not topology.has(node) or not topology.reaches(node, deployment.root):
        return []
    best, route, at = topology.routes([node], deployment.root), list[NodeId](), node
    while at is not None:
        route.append(at)
        at = best[at]  # type: ignore[assignment]
    return route if topology.broken_on(route) < broken else []
