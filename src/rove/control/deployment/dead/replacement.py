"""Starts the operators of a dead node on other nodes.

Law: sources below the node take routes around it, and nobody else's route changes. Operators that were on it begin
anew on these routes, under names that no earlier operator had: rows that they took before are with the dead node, and
are counted as missing or lost. Operators on other nodes stay where they are. All is in the parts, so a coordinator that
restarts needs nothing else. A dead node that reports again has no part, and is told to leave the query.

A source that reaches the end over the dead node alone keeps its route and waits, unless an operator on the dead node
needs the rows of all: then nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from rove.control.deployment import migration
from rove.control.deployment.dead import doubtful
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.part import Named, Part
from rove.control.deployment.query import Query
from rove.control.deployment.reroute import joined, met_by, request_of, without
from rove.control.deployment.shares import shares
from rove.control.members.membership import Membership
from rove.control.placement.bottom_up import bottom_up
from rove.control.placement.placement import Load
from rove.control.placement.request import Request, SourceAt
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Stage
from rove.plan.explain import describe
from rove.plan.stages import merges, ordered, stateful


def follow(
    query: Query,
    deployment: Deployment,
    request: Request,
    topology: Topology,
    load: Load,
    dead: Mapping[NodeId, None],
    membership: Membership,
) -> dict[NodeId, None]:
    """Start the operators of nodes that count as `dead`, or were removed, elsewhere. If that cannot be, the query says
    why, and it is tried again with the next change. Returns the sources below these nodes."""
    below: dict[NodeId, None] = {}
    for node in {**query.dead, **dead}:
        query.dead.pop(node, None)
        if node not in deployment.tree or (topology.has(node) and not topology.is_dead(node)):
            continue
        sources = dict.fromkeys(deployment.source_nodes(node))
        left = shares.lost(deployment, node, forgets=False)
        doubtful.note(deployment, node, left, membership)
        below |= dict.fromkeys((*sources, *left))
        if remembers(deployment, node):
            if why := replace_node(deployment, request, node, topology, load):
                query.dead[node] = why
            else:
                gone = [each for each in sources if node not in deployment.tree.route(each)]
                doubtful.note(deployment, node, gone, membership)
    return below


def remembers(deployment: Deployment, node: NodeId) -> bool:
    """Whether operators that wait for a node were placed on it. Batches of sources below it pass by, or take another
    route by themselves (`reroute`)."""
    part, operators = deployment.tree.parts.get(node), deployment.terms.stages.operators
    if shares.waits_for(deployment, node):
        return True
    if part is None or not deployment.tree.children.get(node):
        return False
    return any(ordered(operators[stage]) for stage in part.hosts)


def replace_node(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> str:
    """Start the operators of a dead node elsewhere. Returns why that cannot be, or an empty text. O(sources below the
    node × stages × height)."""
    position = deployment.journal.position
    why = _unfit(deployment, request, node) or _replace(deployment, request, node, topology, load)
    if why:
        deployment.roll_back(position)
    return why


def _unfit(deployment: Deployment, request: Request, node: NodeId) -> str:
    """Why the operators of a node cannot leave it, wherever they would go; empty if they can."""
    tree, operators = deployment.tree, request.stages.operators
    part = tree.parts[node]
    if node == deployment.root:
        return "the rows of the query end there"
    if part.sources:
        return "its own sources send rows to them"
    for stage in part.hosts:
        if request.hints.get(stage) == node:
            return f"`{describe(operators[stage])}` is wanted there by name"
    if part.awaits or any(tree.parts[below].moves for below in tree.below((node,)) if below != node):
        return "the state of an earlier move is still on its way"
    passes = (stage for stage in part.hosts if ordered(operators[stage]) and not stateful(operators[stage]))
    durable = not deployment.starts.get(node)
    for stage in passes if durable else ():
        if any(ordered(operators[reader]) and reader not in part.hosts for reader in request.stages.readers[stage]):
            return f"rows that have passed `{describe(operators[stage])}` are on its disk, and others wait for them"
    return ""


def _replace(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> str:
    tree, operators = deployment.tree, request.stages.operators
    position, version = deployment.journal.position, deployment.version + 1
    if tree.parts[node].sends:  # the rest of these states does not come any more
        migration.lost(deployment, node)
    part = tree.parts[node]
    if part.releases:  # it leaves the query, and takes no batches of devices that have left it
        deployment.put({node: replace(part, releases=(), keeps=())})
    going = [source for source in deployment.source_nodes(node) if _passes_by(source, node, deployment.root, topology)]
    if not going:
        return "no node below it has another way"
    stuck = [source for source in deployment.source_nodes(node) if source not in going]
    if stuck and any(merges(operators[stage]) for stage in part.hosts):
        return f"`{stuck[0]}` reaches `{deployment.root}` over it alone"
    before = {n: tree.parts[n] for source in going for n in tree.route(source)}
    if not stuck and (why := _drop_idle(deployment, node, before)):
        return why
    forgotten = [host for _, host in deployment.meetings.read_by(node) if host != node]
    groups = _groups(deployment, going, node)
    theirs = {source: met_by(deployment, source) for source in going}
    deployment.put(without(deployment, {source: before[source] for source in going}, theirs))
    for pins, group in groups:
        sources = _sources(before, group)
        merging = {stage: at for stage, at in deployment.merging().items() if at != node}
        try:
            placed = bottom_up(request_of(deployment, request, sources, {**merging, **dict(pins)}), topology, load)
        except RoveError as error:
            return str(error)
        if node in placed.routes:
            return f"`{group[0]}` reaches `{deployment.root}` over it alone"
        put = joined(deployment, placed, sources, before)
        parts = {n: _anew(deployment, n, new, before.get(n), version) for n, new in put.items() if new is not None}
        deployment.put(parts)
    if not stuck and node in tree:
        return "other nodes still send rows there"
    others = [each for each in deployment.meetings.disturbed(deployment.journal, position) if each not in going]
    if others:
        return f"rows of `{others[0]}` would pass the new operators on their way to others"
    deployment.forget(dict.fromkeys(forgotten))
    return ""


def _passes_by(source: NodeId, node: NodeId, root: NodeId, topology: Topology) -> bool:
    """Whether the best route of a source does not pass a node. O(height)."""
    if not topology.has(source) or not topology.reaches(source, root):
        return False
    return node not in topology.routes([source], root)


def _drop_idle(deployment: Deployment, node: NodeId, routes: Mapping[NodeId, Part]) -> str:
    """Take out the nodes below a dead node that no source needs. Returns why that cannot be."""
    tree, operators = deployment.tree, deployment.terms.stages.operators
    idle = [each for each in tree.below((node,)) if each not in routes]
    for each in idle:
        if any(stateful(operators[stage]) for stage in tree.parts[each].hosts):
            return f"`{each}` has ended, and still gives what it has over it"
    deployment.put(dict.fromkeys(idle))
    return ""


def _groups(
    deployment: Deployment, going: Iterable[NodeId], node: NodeId
) -> list[tuple[tuple[tuple[Stage, NodeId], ...], list[NodeId]]]:
    """The sources by the operators on other nodes that take their rows in order."""
    found: dict[tuple[tuple[Stage, NodeId], ...], list[NodeId]] = {}
    for source in going:
        pins = tuple(sorted((s, at) for s, at in met_by(deployment, source).items() if at != node))
        found.setdefault(pins, []).append(source)
    return list(found.items())


def _sources(before: Mapping[NodeId, Part], nodes: Iterable[NodeId]) -> dict[Stage, tuple[SourceAt, ...]]:
    found: dict[Stage, list[SourceAt]] = {}
    for node in nodes:
        for stage, origin in before[node].sources:
            found.setdefault(stage, []).append(SourceAt(origin, node))
    return {stage: tuple(each) for stage, each in found.items()}


def _anew(deployment: Deployment, node: NodeId, new: Part, old: Part | None, version: int) -> Part:
    """A part in which operators that are new on their node have names of their own. `old` is the part that the node had
    before it was taken out."""
    operators, now = deployment.terms.stages.operators, deployment.tree.parts.get(node)
    had = now.hosts if now is not None else old.hosts if old is not None else ()
    fresh = [stage for stage in new.hosts if ordered(operators[stage]) and stage not in had]
    if not fresh:
        return new
    start = deployment.starts.get(node) or 0
    names = tuple(
        Named(stage, "" if merges(operators[stage]) else node, version, start)
        for stage in fresh
        if stateful(operators[stage])
    )
    began = new.anew if any(ordered(operators[stage]) for stage in had) else version
    return replace(new, names=(*(name for name in new.names if name.stage not in fresh), *names), anew=began)
