"""Who has been away for too long to be waited for: silent, or without a way for its rows.

Law: a node that is away keeps its place, its fragments and its watermark until the query's patience is over. Then
event time goes on without it; its place stays, and when it is back it is waited for again. A node that is heard, and
says that it reaches no parent, is as far away for its queries as one that is silent; so is what lies behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.control.deployment.query import Query
from rove.control.members.membership import AWAY_US, Membership
from rove.control.placement.placement import Placement
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, QueryId


class Absence:
    """Looks at silences. `since` is when the coordinator began to listen: before that nobody could be heard."""

    def __init__(self) -> None:
        self.since: int | None = None
        self._cut: dict[QueryId, dict[NodeId, int]] = {}  # since when nodes have had no way to a query's end

    def changed(self, queries: Iterable[Query], membership: Membership, now: int) -> list[tuple[Query, list[NodeId]]]:
        """Queries whose list of the absent is not right any more, with the right one. O(nodes + queries × those away,
        and all nodes of a query below a relay that is)."""
        if self.since is None:
            self.since = now
        silent = {
            name: max(member.heard_us, self.since)
            for name, member in membership.members.items()
            if now - max(member.heard_us, self.since) > AWAY_US
        }
        found, before, self._cut = [], self._cut, {}
        for query in queries:
            if query.placement is None or query.record.stopped:
                continue
            known = before.get(query.id, {})
            cut = {n: known.get(n, now) for n in cut_off(query, query.placement, membership.topology)}
            if cut:
                self._cut[query.id] = cut
            away = [(n, now - since) for n, since in (*silent.items(), *cut.items()) if n in query.placement.routes]
            absent = sorted({n for n, us in away if us > max(AWAY_US, query.patience_us(n))})
            if absent != list(query.record.absent):
                found.append((query, absent))
        return found


def cut_off(query: Query, placement: Placement, topology: Topology) -> set[NodeId]:
    """The nodes of a query whose rows have no way to its end now, as they say themselves or those above them."""
    below = {
        node
        for pair in topology.broken
        for node, above in (pair, pair[::-1])
        if placement.routes.get(node) == above and not _has_another(query, node, topology)
    }
    if any(topology.node(node).relays for node in below):
        below = {node for node in placement.routes if not below.isdisjoint(placement.route(node))}
    return below


def _has_another(query: Query, node: NodeId, topology: Topology) -> bool:
    """Whether a node knows another route by itself, and that one works."""
    fragment = query.record.fragments.get(node)
    return fragment is not None and any(topology.works(node, other) for other in fragment.others)
