"""Migrations: operators that leave a node with their state, and go on at another one.

Law: an operator has one owner. It ends on the old node and begins on the new one in the same change set. The parts of
both nodes name the migration until both have said that it is over, so a coordinator that restarts goes on with it. The
rows of all sources below the old node pass the new one: it is above on the same route, or their routes were changed in
the same change set (`aside`).

    put          the new node is told to wait for the state, then the old one to send it
    arrived      both have said so: the old node forgets the state
    lost         the old node has lost its state: the new one goes on without, under a new name
    sent again   the new node has lost what came: the old one sends everything again, under another origin

Every step costs O(route).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from rove.control.deployment.aside import leads
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.fragments import origin, state_origin
from rove.control.deployment.part import At, Named, Part
from rove.control.placement.estimate import memory_bytes
from rove.control.placement.placement import Load, costs_a_slot
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Origin, Stage, Version
from rove.plan.explain import describe
from rove.plan.stages import ordered, stateful


def lift(deployment: Deployment, request: Request, node: NodeId, topology: Topology, load: Load) -> str:
    """Move all operators of a node to the first node above it that can take them. Returns why that cannot be, or an
    empty text. O(route × stages)."""
    part = deployment.tree.parts[node]
    moving = [stage for stage in part.hosts if request.stages.inputs[stage]]
    if not moving:
        return ""
    if part.moves:
        return "the state of an earlier move is still on its way"
    why = f"`{node}` is where its rows end"
    for target in list(deployment.tree.route(node))[1:]:
        if any(deployment.hosts(s, target) for s in moving if ordered(request.stages.operators[s])):
            return f"`{target}` runs the same operators for rows of other nodes"
        why = unfit(deployment, request, node, moving, target, topology, load) or _put(deployment, node, target, moving)
        if not why:
            return ""
        if any(deployment.hosts(reader, target) for stage in moving for reader in request.stages.readers[stage]):
            return why  # an operator cannot be above those that read it
    return why


def unfit(
    deployment: Deployment,
    request: Request,
    node: NodeId,
    moving: list[Stage],
    target: NodeId,
    topology: Topology,
    load: Load,
) -> str:
    """Why a node cannot take the operators of another one; empty if it can. A disk that has the earlier input of an
    operator would give it that again."""
    been = deployment.tree.parts[node].been
    operators, at = request.stages.operators, topology.node(target)
    if topology.is_drained(target):
        return f"`{target}` is being drained too"
    if (part := deployment.tree.parts.get(target)) is not None and part.moves:
        return f"`{target}` has not finished an earlier move"
    for stage in moving:
        if (stage, target) in been and not deployment.starts.get(target):
            return f"the disk of `{target}` has earlier input of `{describe(operators[stage])}`"
        hint = request.hints.get(stage)
        if hint not in (None, "cloud", target) and hint != at.kind:
            return f"`{describe(operators[stage])}` is wanted at `{hint}`, which `{target}` is not"
        if request.lacks is not None and request.lacks(stage, target):
            return f"`{target}` lacks a function of `{describe(operators[stage])}`"
    costly = [operators[stage] for stage in moving if costs_a_slot(operators[stage])]
    room = load.free_slots(at) >= len(costly) and load.free_memory_bytes(at) >= sum(map(memory_bytes, costly))
    return "" if target == request.gateway or room else f"`{target}` has no room for its operators"


def _put(deployment: Deployment, node: NodeId, target: NodeId, moving: list[Stage]) -> str:
    """Move operators, unless rows of other nodes pass the target on their way to the same operators further up: these
    have taken their first batches. Returns why not. O(nodes below the target × stages × height)."""
    position, below = deployment.journal.position, set(deployment.tree.below((node,)))
    put(deployment, node, target, moving)
    others = [other for other in deployment.meetings.disturbed(deployment.journal, position) if other not in below]
    if others:
        deployment.roll_back(position)
    return f"rows of `{others[0]}` pass `{target}` and are taken further up" if others else ""


@dataclass(frozen=True, slots=True)
class Departure:
    """Operators that leave a node: those `moving`, the names of those that have one, and the states of those that
    `keep` one. Before, the node was `running` these. The operators have `been` there, and on other nodes before."""

    node: NodeId
    moving: tuple[Stage, ...]
    keep: tuple[Stage, ...]
    names: Mapping[Stage, Origin]
    states: Mapping[Stage, Origin]
    running: frozenset[Stage]
    been: tuple[At, ...]


def put(deployment: Deployment, node: NodeId, target: NodeId, moving: Iterable[Stage]) -> None:
    """Move operators, with the state of those that have one, from a node to another one."""
    come(deployment, target, leave(deployment, node, moving))


def leave(deployment: Deployment, node: NodeId, moving: Iterable[Stage]) -> Departure:
    """Let operators leave a node."""
    terms, version = deployment.terms, Version(deployment.version + 1)
    stages, old = tuple(moving), deployment.tree.parts[node]
    keep = tuple(stage for stage in stages if ordered(terms.stages.operators[stage]))
    named = [stage for stage in keep if stateful(terms.stages.operators[stage])]
    departure = Departure(
        node,
        stages,
        keep,
        {stage: origin(terms, stage, node, deployment.starts, old) for stage in named},
        {stage: state_origin(terms, stage, node, version) for stage in keep},
        frozenset(deployment.meetings.running(node)),
        (*(at for at in old.been if at[0] in keep), *((stage, node) for stage in keep)),
    )
    left = tuple(stage for stage in old.hosts if stage not in stages)
    sends, lost = tuple((stage, version) for stage in keep), tuple(each for each in old.lost if each[0] in left)
    deployment.put({node: replace(old, hosts=left, sends=sends, lost=lost)})
    return departure


def come(deployment: Deployment, target: NodeId, departure: Departure) -> None:
    """Let operators that leave one node go on at another."""
    node, moving, parts = departure.node, departure.moving, deployment.tree.parts
    new, start = parts[target], deployment.starts.get(target) or 0
    names = tuple(Named(stage, name.node, name.start, start) for stage, name in departure.names.items())
    deployment.put(
        {
            target: replace(
                new,
                hosts=tuple(sorted({*new.hosts, *moving})),
                awaits=(*new.awaits, *departure.states.items()),
                names=(*(n for n in new.names if n.stage not in moving), *names),
                been=tuple(dict.fromkeys((*(at for at in new.been if at[0] not in moving), *departure.been))),
            )
        }
    )
    if departure.keep:
        ends = departure.running - set(deployment.meetings.running(node))
        deployment.put({node: replace(parts[node], ends=tuple(sorted(ends)))})
        leads.lead(deployment, node, target, tuple(departure.states.values()))


def arrived(deployment: Deployment, state: Origin) -> None:
    """A state has left its old node and has come whole to the new one. O(route)."""
    node, target = NodeId(state.node), awaiting(deployment, state)
    if target is not None:
        deployment.put({target: _without(deployment.tree.parts[target], (state,))})
    leads.forget(deployment, (state,))
    part = deployment.tree.parts.get(node)
    if part is not None:
        left = tuple(sent for sent in part.sends if state_origin(deployment.terms, sent[0], node, sent[1]) != state)
        if left != part.sends:
            deployment.put({node: replace(part, sends=left, ends=part.ends if left else (), names=_named(part, left))})
    prune(deployment, node)


def prune(deployment: Deployment, node: NodeId) -> None:
    """Take a node out that nothing is left to do for, and so on upwards. O(route)."""
    for at in list(deployment.tree.route(node)) if node in deployment.tree else ():
        part = deployment.tree.parts[at]
        idle = not (part.hosts or part.sources or part.stays or part.gone)
        if not idle or at == deployment.root or deployment.tree.children.get(at):
            return
        deployment.put({at: None})


def removed(deployment: Deployment, node: NodeId, part: Part) -> None:
    """A node was removed from the network. States that were leaving it, or were to pass it on a way of their own, do
    not come any more. O(route of each)."""
    for sender in dict.fromkeys((*((node,) if part.sends else ()), *(NodeId(state.node) for state, _ in part.leads))):
        lost(deployment, sender)
    if (left := deployment.tree.parts.get(node)) is not None:
        retire(deployment, node, left)


def retire(deployment: Deployment, node: NodeId, part: Part) -> None:
    """Take out a node that gives nothing any more and has none below it. Nobody waits for its operators. Operators
    elsewhere that took rows of it alone stay: without the operators that its rows passed there, they would no longer
    reach these."""
    if node not in deployment.tree or deployment.tree.children.get(node) or node == deployment.root:
        return
    passed = tuple(stage for stage in part.hosts if not deployment.meetings.is_stateful(stage))
    last = deployment.meetings.is_last(node)
    deployment.put({node: Part(next=part.next, hosts=passed, gone=True) if last else None})


def lost(deployment: Deployment, node: NodeId) -> None:
    """A node without a disk has restarted, or a node was removed, and its operators have lost their state. A state that
    was leaving it does not come any more: the operator goes on without, under a new name. A state that was coming to it
    is sent again. O(route)."""
    part = deployment.tree.parts[node]
    start = deployment.version + 1
    if part.sends:
        states = tuple(state_origin(deployment.terms, stage, node, version) for stage, version in part.sends)
        target = awaiting(deployment, states[0])
        if target is not None:
            above = _without(deployment.tree.parts[target], states)
            stages = {stage for stage, _ in part.sends}
            names = tuple(replace(name, start=start) if name.stage in stages else name for name in above.names)
            given_up = tuple(each for each in deployment.tree.parts[target].awaits if each[1] in states)
            left = tuple(each for each in above.lost if each[0] not in stages)
            deployment.put({target: replace(above, names=names, lost=(*left, *given_up))})
            deployment.restarted(target)  # its readers learn the new names
        leads.forget(deployment, states)
        deployment.put({node: replace(deployment.tree.parts[node], sends=(), ends=())})
        prune(deployment, node)
    elif part.awaits:
        _again(deployment, node, part)


def _again(deployment: Deployment, target: NodeId, part: Part) -> None:
    version = Version(deployment.version + 1)
    leads.forget(deployment, [state for _, state in part.awaits])
    awaits, names = [], list(part.names)
    for stage, state in part.awaits:
        sender = NodeId(state.node)
        old = deployment.tree.parts.get(sender)
        if old is None or stage not in dict(old.sends):
            continue
        deployment.put({sender: replace(old, sends=tuple((s, version if s == stage else v) for s, v in old.sends))})
        awaits.append((stage, state_origin(deployment.terms, stage, sender, version)))
        now = deployment.starts.get(target) or 0
        names = [replace(name, while_start=now) if name.stage == stage else name for name in names]
    again = {stage for stage, _ in awaits}
    lost = (*(each for each in part.lost if each[0] not in again), *(each for each in part.awaits if each[0] in again))
    deployment.put({target: replace(part, awaits=tuple(awaits), names=tuple(names), lost=lost)})
    for _, state in awaits:
        leads.lead(deployment, NodeId(state.node), target, (state,))


def over(deployment: Deployment, node: NodeId, state: Origin, moved: dict[Origin, dict[NodeId, None]]) -> bool:
    """A node says that a state has left it, or has come to it, whole. Returns whether both nodes have said so. O(its
    route)."""
    target = awaiting(deployment, state)
    if target is None or node not in (target, state.node):
        return False  # it is over, or does not concern the node
    said = moved.setdefault(state, {})
    said[node] = None
    return target in said and (NodeId(state.node) in said or NodeId(state.node) not in deployment.tree)


def awaiting(deployment: Deployment, state: Origin) -> NodeId | None:
    """The node that waits for a state. O(route)."""
    led = list(leads.way(deployment, state))
    for node in deployment.tree.route(led[-1]) if led else ():
        if any(awaited == state for _, awaited in deployment.tree.parts[node].awaits):
            return node
    return None


def _without(part: Part, states: Container[Origin]) -> Part:
    return replace(part, awaits=tuple(each for each in part.awaits if each[1] not in states))


def _named(part: Part, sends: tuple[tuple[Stage, Version], ...]) -> tuple[Named, ...]:
    """The names of operators that are here, or still send their state."""
    here = {*part.hosts, *(stage for stage, _ in sends)}
    return tuple(name for name in part.names if name.stage in here)
