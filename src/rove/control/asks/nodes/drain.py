"""The verb `drain`: moves everything off a node, with its state, while rows flow. Then the node can be switched
off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rove.control.asks.requests import Drain, Drained, from_body
from rove.control.members.membership import Member
from rove.model.errors import TopologyError
from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def drain(coordinator: Coordinator, body: bytes) -> Drained:
    """Begin to drain a node, or with `back` undo the drain. O(its queries × route)."""
    asked = from_body(body, Drain)
    node = NodeId(asked.name)
    member = coordinator.member(node)
    if asked.back != member.record.draining:
        state = "is not being drained" if asked.back else "is being drained already"
        raise TopologyError(f"`{node}` {state}; `rove topology` shows which nodes are")
    if not asked.back:
        _refuse(coordinator, node, member)
    member.record = replace(member.record, draining=not asked.back)
    coordinator.keep("node", node, member.record)
    coordinator.membership.topology.drain(node, not asked.back)
    coordinator.deployments.touch_drained(node)
    coordinator.settle()
    return drained(coordinator, node)


def draining(coordinator: Coordinator, body: bytes) -> Drained:
    """The progress of draining a node."""
    node = NodeId(from_body(body, Drain).name)
    coordinator.member(node)
    return drained(coordinator, node)


def drained(coordinator: Coordinator, node: NodeId) -> Drained:
    """What is left on a node, by query, and what holds it up. O(its queries)."""
    left = {str(query.id): query.drained.get(node, "") for query in coordinator.deployments.live(node)}
    member = coordinator.member(node)
    return Drained(name=node, draining=member.record.draining, left=left, held_bytes=member.held_bytes())


def _refuse(coordinator: Coordinator, node: NodeId, member: Member) -> None:
    """Refuse to drain a node that rows come from or end at."""
    if member.record.sources:
        streams = ", ".join(sorted({source.stream for source in member.record.sources}))
        raise TopologyError(
            f"`{node}` has sources of {streams}, which cannot leave it; stop it with Ctrl-C, or forget it with "
            f"rove topology remove {node}"
        )
    ends = [q.id for q in coordinator.deployments.live(node) if q.deployment is not None and q.deployment.root == node]
    if ends:
        raise TopologyError(f"the rows of {', '.join(ends)} end at `{node}`; stop these queries first")
    if coordinator.membership.gateways() == [node]:
        raise TopologyError(f"`{node}` is the last gateway; start another one first: rove gateway")
