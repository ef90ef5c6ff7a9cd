"""The verbs `invite` and `revoke`: let a node join, and take its key away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Invite, Named, from_body
from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def invite(coordinator: Coordinator, body: bytes) -> Named:
    record = coordinator.invitations.invite(from_body(body, Invite))
    coordinator.keep("invite", record.key, record)
    coordinator.allow()
    return Named(name=record.node)


def revoke(coordinator: Coordinator, body: bytes) -> Named:
    node = NodeId(from_body(body, Named).name)
    member = coordinator.member(node)
    near = coordinator.membership.neighbours(node)
    coordinator.deployments.touch_sources(node, {s.stream: None for s in member.record.sources})
    coordinator.keep("node", node, coordinator.membership.revoke(node))
    coordinator.allow()
    for other in near:
        coordinator.tell_peers(other)
    return Named(name=node)
