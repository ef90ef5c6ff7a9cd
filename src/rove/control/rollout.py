"""How far a deployment has come: who runs their part of a query, and who may begin.

Law: a node begins when everyone above it on its road has, so what it sends is known wherever it arrives.
"""

from __future__ import annotations

from rove.control.membership import Membership
from rove.control.queries import Query
from rove.model.ids import NodeId


def waiting_for(query: Query, membership: Membership) -> tuple[NodeId, ...]:
    """Nodes that do not run their part of a query yet. O(nodes of the query)."""
    members = membership.members
    return tuple(
        node
        for node, fragment in query.record.fragments.items()
        if node in members and members[node].running.get(query.id, -1) < fragment.version
    )


def runs_above(query: Query, membership: Membership, node: NodeId | None) -> bool:
    """Whether all nodes from this one on to the end run what they should. O(road)."""
    while node is not None:
        wanted, member = query.record.fragments.get(node), membership.members.get(node)
        if wanted is None or member is None or member.running.get(query.id, -1) < wanted.version:
            return False
        node = wanted.next
    return True
