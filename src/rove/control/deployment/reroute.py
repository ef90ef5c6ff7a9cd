"""Routes new sources, and sources that have moved, to the operators that run already.

Law: an operator that takes batches in order stays where it is, because it holds state. The new route of a source passes
all operators that hold its state, or the source keeps its route. The routes of other sources do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import msgspec

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
    alone = _alone(deployment, request, {stage: (source,)}, deployment.merging())
    for _ in request.stages.operators:
        placed = bottom_up(alone, topology, load)
        misplaced = _misplaced(deployment, request, placed, (stage, source.node))
        if misplaced is None:
            deployment.put(_joined(deployment, placed, {stage: (source,)}))
            return
        alone = dataclasses.replace(alone, hints={**alone.hints, misplaced[0]: misplaced[1]})
    raise TopologyError(f"`{source.origin}` cannot be placed beside the earlier sources")


def move(
    deployment: Deployment, request: Request, nodes: Iterable[NodeId], topology: Topology, load: Load
) -> list[NodeId]:
    """Give each of these nodes whose route is broken a better route, if one passes all operators that hold its state.
    Returns the nodes that moved. O(nodes × stages × height), once more for each node that cannot move."""
    going = dict.fromkeys(node for node in nodes if has_better(deployment, node, topology))
    while going:
        position = deployment.journal.position
        broken = {node: topology.broken_on(deployment.tree.route(node)) for node in going}
        stuck = _move_all(deployment, request, going, topology, load)
        if not stuck:
            routes = ((node, deployment.tree.route(node)) for node in going)
            stuck = [node for node, route in routes if topology.broken_on(route) >= broken[node]]
        if not stuck:
            stuck = deployment.meetings.disturbed(deployment.journal, position)
        if not stuck:
            return list(going)
        deployment.roll_back(position)
        for node in stuck if going.keys() & set(stuck) else list(going):
            going.pop(node, None)
    return []


def relieve(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> bool:
    """Move the operators whose functions a node lacks to nodes above it. Returns whether that was possible; if not,
    nothing changes. O(sources below the node × stages × height)."""
    position = deployment.journal.position
    going = dict.fromkeys(deployment.source_nodes(node))
    stuck = _move_all(deployment, request, going, topology, load)
    stuck = stuck or deployment.meetings.disturbed(deployment.journal, position)
    part, lacks = deployment.tree.parts.get(node), request.lacks
    if part is not None and lacks is not None and any(lacks(stage, node) for stage in part.hosts):
        stuck = [node]
    if stuck:
        deployment.roll_back(position)
    return not stuck


def _move_all(
    deployment: Deployment, request: Request, going: Iterable[NodeId], topology: Topology, load: Load
) -> list[NodeId]:
    """Take nodes out and put them back on routes that work. Returns the nodes without such a route."""
    parts = {node: deployment.tree.parts[node] for node in going}
    met = {node: _met(deployment, node) for node in parts}
    deployment.put(_without(deployment, parts, met))
    stuck: list[NodeId] = []
    for node, part in parts.items():
        sources = {stage: tuple(SourceAt(o, node) for s, o in part.sources if s == stage) for stage, _ in part.sources}
        alone = _alone(deployment, request, sources, {**deployment.merging(), **met[node]})
        try:
            deployment.put(_joined(deployment, bottom_up(alone, topology, load), sources))
        except RoveError:
            stuck.append(node)
    return stuck


def _without(
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
            if shared or part.sources or part.moves or remembers or node == deployment.root:
                break
            gone[node] = None
    return gone


def _joined(
    deployment: Deployment, placed: Placement, sources: Mapping[Stage, Iterable[SourceAt]]
) -> dict[NodeId, Part | None]:
    """The change that adds a placement to the deployment. An operator that both host on a node is one instance there,
    and a node that has a route keeps it. O(nodes of the placement)."""
    hosts: dict[NodeId, list[Stage]] = {}
    for stage, nodes in placed.hosts.items():
        for node in nodes:
            hosts.setdefault(node, []).append(stage)
    made: dict[NodeId, list[tuple[Stage, Origin]]] = {}
    for stage, each in sources.items():
        for source in each:
            made.setdefault(source.node, []).append((stage, source.origin))
    found: dict[NodeId, Part | None] = {}
    for node, above in placed.routes.items():
        old = deployment.tree.parts.get(node) or Part(next=above)
        new = msgspec.structs.replace(
            old,
            hosts=tuple(sorted({*old.hosts, *hosts.get(node, ())})),
            sources=(*old.sources, *(pair for pair in made.get(node, ()) if pair not in old.sources)),
        )
        if node not in deployment.tree or new != old:
            found[node] = new
    return found


def _alone(
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
                for source, _ in tree.parts[node].sources:
                    for met, above in meetings.met((source, node)):
                        if met == stage and host not in tree.route(above):
                            return stage, above
            if host == source_node and deployment.hosts(reads, host) and not deployment.starts.get(host):
                return stage, next((n for n in tree.route(host) if deployment.hosts(stage, n)), deployment.root)
    return None


def _met(deployment: Deployment, node: NodeId) -> dict[Stage, NodeId]:
    """The nodes where rows of a node's sources are taken in order, by stage."""
    stages = dict.fromkeys(stage for stage, _ in deployment.placed(node))
    return {s: at for source in stages for s, at in deployment.meetings.met((source, node))}


def has_better(deployment: Deployment, node: NodeId, topology: Topology) -> bool:
    """Whether there is a route with fewer broken links than the node's own. O(height)."""
    broken = topology.broken_on(deployment.tree.route(node)) if deployment.placed(node) else 0
    if not broken or not topology.has(node) or not topology.reaches(node, deployment.root):
        return False
    best, route, at = topology.routes([node], deployment.root), list[NodeId](), node
    while at is not None:
        route.append(at)
        at = best[at]  # type: ignore[assignment]
    return topology.broken_on(route) < broken
