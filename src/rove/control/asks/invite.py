"""The verbs `invite` and `revoke`: let a node, or a process of `rove cloud`, join, and take its key away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Invite, Invited, Named, from_body
from rove.model.errors import TopologyError
from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def invite(coordinator: Coordinator, body: bytes) -> Named:
    asked = from_body(body, Invite)
    _check_free(coordinator, NodeId(asked.node), asked.kind)
    record = coordinator.invitations.invite(asked)
    coordinator.keep("invite", record.key, record)
    coordinator.allow()
    return Named(name=record.node)


def revoke(coordinator: Coordinator, body: bytes) -> Named:
    node = NodeId(from_body(body, Named).name)
    if node in coordinator.clouds:
        coordinator.clouds.revoke(node)
        coordinator.keep_bytes("cloud", node, None)
        coordinator.allow()
        return Named(name=node)
    member = coordinator.member(node)
    near = coordinator.membership.neighbours(node)
    coordinator.deployments.touch_sources(node, {s.stream: None for s in member.record.sources})
    coordinator.keep("node", node, coordinator.membership.revoke(node))
    coordinator.allow()
    for other in near:
        coordinator.tell_peers(other)
    return Named(name=node)


def _check_free(coordinator: Coordinator, name: NodeId, kind: Invited) -> None:
    """Refuse a name that a node and a process of `rove cloud` would share. `revoke` names one of them. O(open
    invitations)."""
    open = coordinator.invitations.kinds(name)
    if kind == "cloud" and (name in coordinator.membership.members or open - {"cloud"}):
        raise TopologyError(f"`{name}` is a node; choose another name for rove cloud")
    if kind != "cloud" and (name in coordinator.clouds or "cloud" in open):
        raise TopologyError(f"`{name}` is the name of a rove cloud; choose another name for the node")
