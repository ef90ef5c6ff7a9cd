"""How far a deployment has come: who runs their part of a query, who may begin, and who may leave.

Law: a node begins when everyone above it on its route has who has to know what comes; who only passes rows on, and does
not know the query yet, keeps what comes until it does. So a route of relays is told all at once. A node that
the query passes by now leaves when everyone who sent to it sends elsewhere: until then it may hold rows that others
would forget if they heard that it let them go.
"""

from __future__ import annotations

from rove.control.deployment.query import Query
from rove.control.members.membership import Membership
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
    """Whether all nodes from this one on to the end run what they should, or need not yet. O(route)."""
    while node is not None:
        wanted, member = query.record.fragments.get(node), membership.members.get(node)
        if wanted is None or member is None:
            return False
        passes_on = not (wanted.makes or wanted.waits or wanted.sinks)
        runs = member.running.get(query.id)
        if (runs is None and not passes_on) or (runs is not None and runs < wanted.version):
            return False
        node = wanted.next
    return True


def may_leave(query: Query, membership: Membership, node: NodeId) -> bool:
    """Whether nobody counts on a node any more that has no part in a query. O(nodes that sent to it)."""
    for sender in query.record.leaving.get(node, ()):
        wanted, member = query.record.fragments.get(sender), membership.members.get(sender)
        if member is None:
            continue
        runs = member.running.get(query.id, -1)
        if runs >= 0 if wanted is None else runs < wanted.version:
            return False
    return True
