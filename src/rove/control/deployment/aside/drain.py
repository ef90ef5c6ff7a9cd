"""Drains a node in one query: its operators move up, or aside.

Law: a node above on the route is the first choice, because rows pass it anyway. If none can take the operators, a node
beside the route may: one that the new routes of all sources below the drained node pass. The routes are changed in the
same change set. The sources below are told first, so that no row comes to the old node behind its operators; then the
old node sends the state (`rollout`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.migration import come, leave, lift, unfit
from rove.control.deployment.part import At
from rove.control.deployment.reroute import met_by, move_all
from rove.control.placement.placement import Load
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Stage
from rove.plan.stages import ordered


def drain(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> str:
    """Move all operators of a node to another one. Returns why that cannot be, or an empty text. O(route × stages), and
    O(sources below × stages × height) for each node beside the route that is tried."""
    why = lift(deployment, request, node, topology, load)
    if why and not deployment.tree.parts[node].moves:
        aside = _aside(deployment, request, node, topology, load)
        return f"{why}; {aside}" if aside else ""
    return why


def _aside(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> str:
    """Move all operators of a node to the first node beside its route that can take them."""
    tree, sources = deployment.tree, deployment.source_nodes(node)
    above = set(tree.route(node))
    moving = [stage for stage in deployment.tree.parts[node].hosts if request.stages.inputs[stage]]
    routes: list[list[NodeId]] = []
    for source in sources:
        if any(not topology.works(a, b) for a, b in pairwise(tree.route(source)) if b not in above - {node}):
            return f"`{source}` is away, and would not hear of another route"
        if not topology.has(source) or not topology.reaches(source, deployment.root):
            return f"`{source}` has no other route"
        best, at, route = topology.routes([source], deployment.root), source, [source]
        while (following := best[at]) is not None:
            at = following
            route.append(at)
        if node in route or topology.broken_on(route):
            return f"`{source}` has no other route"
        routes.append(route)
    shared = [at for at in routes[0] if at not in above and all(at in route for route in routes)] if routes else []
    why = "no node beside it is on the other routes of all sources below it"
    for target in shared:
        if topology.node(target).relays and target not in sources:
            why = _unfit(deployment, request, node, moving, target, topology, load) or _step(
                deployment, request, node, target, moving, topology, load
            )
            if not why:
                return ""
    return why


def _unfit(
    deployment: Deployment,
    request: Request,
    node: NodeId,
    moving: list[Stage],
    target: NodeId,
    topology: Topology,
    load: Load,
) -> str:
    if any(deployment.hosts(s, target) for s in moving if ordered(request.stages.operators[s])):
        return f"`{target}` runs the same operators for rows of other nodes"
    return unfit(deployment, request, node, moving, target, topology, load)


def _step(
    deployment: Deployment,
    request: Request,
    node: NodeId,
    target: NodeId,
    moving: list[Stage],
    topology: Topology,
    load: Load,
) -> str:
    """Move operators and the routes of the sources below to a node beside the route, unless that changes more. Returns
    why not."""
    position, sources = deployment.journal.position, deployment.source_nodes(node)
    met = {source: _moved(met_by(deployment, source), node, target, moving) for source in sources}
    keep = [stage for stage in moving if ordered(request.stages.operators[stage])]
    makers = {
        s: {_there(at, node, target, moving) for at in deployment.meetings.makers.get((s, node), ())} for s in keep
    }
    departure = leave(deployment, node, moving)
    try:
        stuck = move_all(deployment, request, sources, topology, load, dict.fromkeys(keep, target))
    except RoveError as error:
        deployment.roll_back(position)
        return str(error)
    why = ""
    if stuck:
        why = f"`{stuck[0]}` has no route past `{target}`"
    elif any(not deployment.hosts(stage, target) for stage in keep):
        why = f"rows of the sources below do not reach `{target}`"
    elif left := deployment.source_nodes(node):
        why = f"rows of `{left[0]}` still pass it"
    else:
        others = [n for n in deployment.meetings.disturbed(deployment.journal, position) if n not in met]
        others += [source for source in sources if met_by(deployment, source) != met[source]]
        if others:
            why = f"rows of `{others[0]}` would be taken elsewhere"
        elif any(set(deployment.meetings.makers.get((s, target), ())) != makers[s] for s in keep):
            why = "operators below it give rows that would not reach the new place"
    if why:
        deployment.roll_back(position)
        return why
    come(deployment, target, dataclasses.replace(departure, moving=departure.keep))  # the others are placed anew
    return ""


def _moved(met: Mapping[Stage, NodeId], node: NodeId, target: NodeId, moving: list[Stage]) -> dict[Stage, NodeId]:
    """Where rows are taken in order, after operators have moved."""
    return {stage: target if at == node and stage in moving else at for stage, at in met.items()}


def _there(at: At, node: NodeId, target: NodeId, moving: list[Stage]) -> At:
    return (at[0], target) if at[1] == node and at[0] in moving else at
