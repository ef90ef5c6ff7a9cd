"""The verb `replay`: checks a topology file with its changes over time, and gives the nodes the links that they have at
the beginning.

Law: both files are checked whole, also against the nodes that run, before anything changes. The changes themselves are
sent later, batch by batch (`relink`), at the times that the answer names. Nodes that do not run are expected, as with
`import`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rove.control.asks.nodes.import_topology import records_of
from rove.control.asks.nodes.relink import change_links, check_named
from rove.control.asks.requests import LinkChange, Replay, ReplayBatch, Replayed, from_body
from rove.control.topology.changes import AddLink, Change, RemoveLink
from rove.control.topology.files import Imported, read
from rove.control.topology.nodes import Link
from rove.model.errors import TopologyError
from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def replay(coordinator: Coordinator, body: bytes) -> Replayed:
    asked = from_body(body, Replay)
    found = read(asked.text, asked.updates)
    if not found.batches:
        raise TopologyError("the updates have no batches of changes, so there is nothing to play")
    _check_network(coordinator, found)
    _begin(coordinator, found)
    members = coordinator.membership.members
    return Replayed(
        nodes=len(found.nodes),
        running=sum(members[node.id].conn is not None for node in found.nodes),
        links=len(found.links),
        batches=tuple(ReplayBatch(at_ms=ms, changes=tuple(map(_said, batch))) for ms, batch in found.batches),
    )


def _check_network(coordinator: Coordinator, found: Imported) -> None:
    """Refuse a file that the nodes that run could not follow."""
    membership = coordinator.membership
    for node in found.nodes:
        member = membership.members.get(node.id)
        if member is None:
            continue
        if member.record.revoked:
            raise TopologyError(f"the key of `{node.id}` was revoked; invite it again, or leave it out of the file")
        if member.conn is not None and member.record.kind != node.kind:
            raise TopologyError(f"`{node.id}` runs as {member.record.kind}, and the file says {node.kind}")
    added = [change.link for _, batch in found.batches for change in batch if isinstance(change, AddLink)]
    for link in dict.fromkeys((*found.links, *added)):
        check_named(membership, link.a, link.b)


def _begin(coordinator: Coordinator, found: Imported) -> None:
    """Give the nodes of a file the links that they have at its beginning. Links to other nodes stay. O(nodes + links
    of the file)."""
    membership = coordinator.membership
    for record in records_of(found.topology()):
        if record.node not in membership.members:
            coordinator.keep("node", record.node, membership.plan(replace(record, links=())))
    wanted = {_pair(link): link for link in found.links}
    here = dict.fromkeys(node.id for node in found.nodes)
    have = {_pair(Link(a, b)): (a, b) for a in here for b in membership.neighbours(a) if b in here}
    removed = [RemoveLink(a, b) for pair, (a, b) in sorted(have.items()) if pair not in wanted]
    change_links(coordinator, [*removed, *(AddLink(link) for pair, link in wanted.items() if pair not in have)])
    coordinator.deployments.grown()


def _pair(link: Link) -> tuple[NodeId, NodeId]:
    return min(link.a, link.b), max(link.a, link.b)


def _said(change: Change) -> LinkChange:
    match change:
        case AddLink(link):
            return LinkChange(a=link.a, b=link.b, add=True)
        case RemoveLink(a, b):
            return LinkChange(a=a, b=b, add=False)
    raise TopologyError(f"{change} is not a change of a link")
