"""The share of one device moves alone: its rows leave an edge, and what the edge has taken of them stays there.

Law: the operators that take a device's rows on its old edge let its origins go. The same operators at the root take
them from there on, batch by batch (`data/fragment/reconfigure/shares`). All routes end at the root, so from then on no
operator is in the way of the device: it may take any route, at once and as often as it likes. Where an origin begins at
the root is known when the old edge has said how far it came; until then the root holds the batches. So the device waits
for nobody, and the old edge may be cut off, or may be told later.

An edge that was not heard for a moment may be dead. Its windows are not left before it is heard again. If it counts as
dead, they begin anew elsewhere (`deployment/dead`).

    put          the root holds the device's rows, the old edge is told to let its origins go
    released     the old edge has said how far it came: the root takes the rows from there on
    lost         the old edge has lost what it had taken: the root takes the first batch that comes

Every step costs O(route).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.part import Begins
from rove.control.deployment.reroute import better, met_by, move_all
from rove.control.deployment.touched import Touched
from rove.control.members.membership import Membership
from rove.control.placement.placement import Load
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.clock import MICROS_MIN
from rove.model.ids import SOURCE, NodeId, Origin, QueryId, Stage
from rove.model.messages import ANYWHERE, Begin
from rove.plan.operators import Aggregate, Filter, Project, Watermark
from rove.plan.stages import Stages

FRESH_US = 2_000_000  # an edge that was heard so lately is not dead


@dataclass(frozen=True, slots=True)
class Share:
    """What keeps a device from leaving: the operators `taking` its rows on an old edge (`at`), and the operators of the
    plan from the lowest of these to the highest (`chain`)."""

    at: NodeId
    taking: tuple[Stage, ...]
    chain: tuple[Stage, ...]


class Leavers:
    """Devices that could leave an edge which was not heard for a moment, by the edge and the query."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._waiting: dict[NodeId, dict[QueryId, dict[NodeId, None]]] = {}

    def heard(self, edge: NodeId) -> Mapping[QueryId, dict[NodeId, None]]:
        """An edge reports. Returns the devices that may leave it now."""
        return self._waiting.pop(edge, {})

    def follow(
        self, deployment: Deployment, request: Request, nodes: Iterable[NodeId], load: Load, now: int
    ) -> list[NodeId]:
        """Move devices that have a better route, and that only partial windows on their old edge keep from taking it.
        Returns those that moved. O(nodes × stages × height)."""
        return [node for node in nodes if self._leaves(deployment, request, node, load, now)]

    def _leaves(self, deployment: Deployment, request: Request, node: NodeId, load: Load, now: int) -> bool:
        topology = self._membership.topology
        route = better(deployment, node, topology)
        share = share_of(deployment, node) if route else None
        if share is None or share.at in route or any(request.hints.get(stage) == share.at for stage in share.taking):
            return False
        edge = self._membership.members.get(share.at)
        if edge is not None and edge.conn is not None and now - edge.heard_us <= FRESH_US:
            return _move(deployment, request, node, share, topology, load)
        self._waiting.setdefault(share.at, {}).setdefault(request.query, {})[node] = None
        return False


def _move(deployment: Deployment, request: Request, node: NodeId, share: Share, topology: Topology, load: Load) -> bool:
    position, tree = deployment.journal.position, deployment.tree
    broken = topology.broken_on(tree.route(node))
    _release(deployment, node, share)
    met, since = met_by(deployment, node), deployment.journal.position
    stuck = move_all(deployment, request, [node], topology, load)
    astray = topology.broken_on(tree.route(node)) >= broken or met_by(deployment, node) != met
    if stuck or astray or deployment.meetings.disturbed(deployment.journal, since):
        deployment.roll_back(position)
        return False
    return True


def share_of(deployment: Deployment, node: NodeId) -> Share | None:
    """The share of a device that can move alone; None if it cannot. All operators that take its rows in order are on
    one edge, where they can let it go, or at the root."""
    tree, stages = deployment.tree, deployment.terms.stages
    part = tree.parts[node]
    if part.stays or deployment.others(node) or part.lifts or tree.children.get(node):
        return None
    sources = dict.fromkeys(stage for stage, _ in part.sources)
    off = {s: at for s, at in met_by(deployment, node).items() if at not in (node, deployment.root)}
    hosts, chain = set(off.values()), _chain(stages, sources)
    if len(hosts) != 1 or not chain or not off.keys() <= set(chain) or chain[-1] not in off:
        return None
    at = hosts.pop()
    if tree.parts[at].sends or tree.parts[at].awaits:
        return None
    return Share(at, tuple(sorted(off)), tuple(chain[chain.index(min(off)) :]))


def _chain(stages: Stages, sources: Iterable[Stage]) -> list[Stage]:
    """The operators from one source up to the partial aggregate that takes its rows, if these go no other way."""
    several = list(sources)
    at, found = several[0] if len(several) == 1 else None, list[Stage]()
    outputs = {stage for _, stage in stages.outputs}
    while at is not None:
        operator = stages.operators[at]
        if isinstance(operator, Aggregate):
            return found if operator.mode == "partial" else []
        readers = stages.readers[at]
        if len(readers) != 1 or at in outputs or (found and not isinstance(operator, Filter | Project | Watermark)):
            return []
        at = readers[0]
        found.append(at)
    return []


def _release(deployment: Deployment, node: NodeId, share: Share) -> None:
    parts, root = deployment.tree.parts, deployment.root
    origins = tuple(origin for _, origin in parts[node].sources)
    top, old, mine = parts[root], parts[share.at], parts[node]
    kept = tuple(each for each in old.releases if each[1] not in origins)
    deployment.put(
        {
            root: replace(top, lifting=tuple(sorted({*top.lifting, *share.taking}))),
            share.at: replace(
                old,
                releases=(*kept, *((stage, origin) for stage in share.taking for origin in origins)),
                keeps=tuple(sorted({*old.keeps, *share.taking})),
            ),
            node: replace(
                mine,
                lifts=share.taking,
                along=share.chain,
                held=tuple((origin, share.at) for origin in origins),
            ),
        }
    )


def settled(deployment: Deployment, touched: Touched, members: Container[NodeId]) -> dict[NodeId, None]:
    """Nodes have let origins go, have lost their state, or were removed. Returns the devices that waited for this."""
    found = [released(deployment, node, origin, begin) for (node, origin), begin in touched.released.items()]
    gone = [node for node in touched.nodes if node not in members]
    for node in (*touched.restarted, *gone):
        found += lost(deployment, node, forgets=True)
    return dict.fromkeys(node for node in found if node is not None)


def released(deployment: Deployment, node: NodeId, origin: Origin, begin: Begin) -> NodeId | None:
    """A node has let an origin go. Returns the device that it is of, if somebody waited for this. O(route)."""
    part, device = deployment.tree.parts.get(node), deployment.tree.parts.get(NodeId(origin.node))
    if part is not None and any(each == origin for _, each in part.releases):
        deployment.put({node: replace(part, releases=tuple(each for each in part.releases if each[1] != origin))})
        return _begin(deployment, node, origin, begin)
    if part is None or device is None or not (part.keeps and device.lifts):
        return None
    # An earlier origin of the device. One with a disk sends batches of it again when it starts again.
    known = (*(each.origin for each in device.begins), *(each for _, each in device.sources))
    if origin in known or origin.stage != SOURCE:
        return None
    deployment.put(
        {NodeId(origin.node): replace(device, begins=(*device.begins, Begins(origin, begin.next, begin.mark)))}
    )
    deployment.heard_above(NodeId(origin.node))
    return NodeId(origin.node)


def lost(deployment: Deployment, node: NodeId, forgets: bool) -> list[NodeId]:
    """A node has lost what it had taken, or counts as dead: nobody waits for it to let origins go. One that `forgets`
    has let them go with its state. Returns the devices that they are of. O(routes of these)."""
    part = deployment.tree.parts.get(node)
    origins = () if part is None else dict.fromkeys(origin for _, origin in part.releases)
    if part is not None and forgets and part.releases:
        deployment.put({node: replace(part, releases=())})
    devices = [_begin(deployment, node, origin, Begin(ANYWHERE, MICROS_MIN)) for origin in origins]
    return [device for device in devices if device is not None]


def _begin(deployment: Deployment, node: NodeId, origin: Origin, begin: Begin) -> NodeId | None:
    device = NodeId(origin.node)
    part = deployment.tree.parts.get(device)
    if part is None or (origin, node) not in part.held:
        return None
    held = tuple(each for each in part.held if each[0] != origin)
    begins = (*part.begins, Begins(origin, begin.next, begin.mark))
    deployment.put({device: replace(part, held=held, begins=begins)})
    deployment.heard_above(device)
    return device


def waits_for(deployment: Deployment, node: NodeId) -> bool:
    """Whether devices wait for a node to let their origins go."""
    part = deployment.tree.parts.get(node)
    return part is not None and any(_holds(deployment, node, origin) for _, origin in part.releases)


def _holds(deployment: Deployment, node: NodeId, origin: Origin) -> bool:
    device = deployment.tree.parts.get(NodeId(origin.node))
    return device is not None and (origin, node) in device.held
