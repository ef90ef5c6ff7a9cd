"""The verb `relink`: adds and removes links between nodes.

Law: a batch is checked whole, then made. A link that was removed stays away, whatever its nodes report, until it is
added again; so an operator can move nodes about. The queries that it touches are changed together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rove.control.asks.requests import LinkChange, Relink, Relinked, from_body
from rove.control.members.membership import Membership, NodeRecord
from rove.control.topology.changes import AddLink, RemoveLink, check
from rove.control.topology.nodes import Link
from rove.model.errors import TopologyError
from rove.model.ids import NodeId, QueryId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def relink(coordinator: Coordinator, body: bytes) -> Relinked:
    changes = [_change(each) for each in from_body(body, Relink).changes]
    check(coordinator.membership.topology, changes)
    for change in changes:
        if isinstance(change, AddLink):
            check_named(coordinator.membership, change.link.a, change.link.b)
    queries = change_links(coordinator, changes)
    return Relinked(queries=len(queries))


def change_links(coordinator: Coordinator, changes: Sequence[AddLink | RemoveLink]) -> set[QueryId]:
    """Make changes that fit. Returns the queries with a part on one of the nodes: only on the device, if a link has
    one. O(links and queries of these nodes)."""
    membership, deployments = coordinator.membership, coordinator.deployments
    records: dict[NodeId, NodeRecord] = {}
    ends: dict[NodeId, None] = {}
    moved: dict[NodeId, None] = {}  # nodes whose routes may pass the link
    for change in changes:
        records |= {record.node: record for record in _records(membership, records, change)}
        ends |= dict.fromkeys(_ends(change))
        moved |= dict.fromkeys([node for node in _ends(change) if _is_device(membership, node)] or _ends(change))
    for node, record in records.items():
        membership.rewrite(record)
        coordinator.keep("node", node, record)
        coordinator.name_parents(node)
    found: set[QueryId] = set()
    for node in moved:
        deployments.touch_links(node, relay=not _is_device(membership, node))
        found |= {query.id for query in deployments.live(node)}
    coordinator.settle()
    for node in ends:  # after their routes, so that a node is told both at once
        coordinator.tell_peers(node)
    return found


def check_named(membership: Membership, a: NodeId, b: NodeId) -> None:
    """Refuse a link that none of its nodes would dial: both run, and neither names the other as a parent."""
    ends = [membership.members.get(node) for node in (a, b)]
    running = [member for member in ends if member is not None and member.conn is not None]
    if len(running) == 2 and b not in running[0].parents and a not in running[1].parents:
        raise TopologyError(f"`{a}` runs and does not name `{b}` as a parent; start it with --parent {b} as well")


def _records(
    membership: Membership, changed: Mapping[NodeId, NodeRecord], change: AddLink | RemoveLink
) -> list[NodeRecord]:
    """The records that a change makes, after those that were `changed` before. A link is in the record of its lower
    node, the one that names the other as its parent. If both name each other, it is removed from both."""
    a, b = _ends(change)
    records = {node: changed.get(node) or membership.members[node].record for node in (a, b)}
    pairs = [(child, parent) for child, parent in ((a, b), (b, a)) if _names(membership, records[child], parent)]
    pairs = pairs or [(a, b)]
    if isinstance(change, RemoveLink):
        return [_barred(records[child], parent) for child, parent in pairs]
    child, parent = pairs[0]
    before = records[child]
    links = (*_others(before, parent), (parent, change.link.latency_us, change.link.bytes_per_s))
    return [replace(before, links=links, barred=tuple(each for each in before.barred if each != parent))]


def _barred(record: NodeRecord, parent: NodeId) -> NodeRecord:
    barred = dict.fromkeys((*record.barred, parent))
    return replace(record, links=_others(record, parent), barred=tuple(barred))


def _others(record: NodeRecord, parent: NodeId) -> tuple[tuple[NodeId, int, int], ...]:
    return tuple(link for link in record.links if link[0] != parent)


def _names(membership: Membership, record: NodeRecord, parent: NodeId) -> bool:
    """Whether a node reports another as its parent, or has it as one in its record."""
    return parent in membership.members[record.node].parents or any(each == parent for each, _, _ in record.links)


def _is_device(membership: Membership, node: NodeId) -> bool:
    return membership.members[node].record.kind == "device"


def _ends(change: AddLink | RemoveLink) -> tuple[NodeId, NodeId]:
    return (change.link.a, change.link.b) if isinstance(change, AddLink) else (change.a, change.b)


def _change(asked: LinkChange) -> AddLink | RemoveLink:
    a, b = NodeId(asked.a), NodeId(asked.b)
    return AddLink(Link(a, b)) if asked.add else RemoveLink(a, b)
