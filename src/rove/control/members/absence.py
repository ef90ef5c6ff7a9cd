"""Decides which nodes have been away for too long: silent, or without a route for their rows.

Law: a node that is away keeps its place, its fragments and its watermark until the query's return timeout. Then event
time goes on without it. It keeps its place, and is waited for again when it is back. A node that reports but reaches no
parent counts as away, and so do the nodes behind it.
"""

from __future__ import annotations

from rove.control.deployment.dead.deaths import Deaths
from rove.control.deployment.deployments import Deployments
from rove.control.deployment.query import Query
from rove.control.deployment.tables.broken_hops import BrokenHops
from rove.control.members.membership import AWAY_US, Membership
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, QueryId


class Absence:
    """Follows silences. `since` is when the coordinator began to listen; silence counts from then on. `away` says since
    when nodes of a query are silent or have no route to its end, as of the last look."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.deaths = Deaths()
        self.away: dict[QueryId, dict[NodeId, int]] = {}
        self._hops = BrokenHops()
        self._cut: dict[tuple[QueryId, NodeId], int] = {}  # since when nodes have no route to a query's end

    def look(self, deployments: Deployments, membership: Membership, now: int) -> None:
        """Mark the queries whose absent or dead nodes have changed. O(nodes that are silent or cut off × their
        queries, and what has changed since the last look)."""
        if self.since is None:
            self.since = now
        self.deaths.look(deployments, membership, self.since, now)
        away: dict[tuple[QueryId, NodeId], int] = {}
        for node, member in membership.silent(now):
            since = max(member.heard_us, self.since)
            if now - since > AWAY_US:
                away |= {(query.id, node): since for query in _placed(deployments, node)}
        cut, self._cut = self._cut, {}
        rerouted, deployments.rerouted = deployments.rerouted, {}
        self._hops.follow(deployments.queries, deployments.of_node, rerouted, membership.topology)
        for key in self._hops.behind(deployments.queries):
            since = self._cut[key] = cut.get(key, now)
            away[key] = min(since, away.get(key, since))
        absent = {
            (id, node)
            for (id, node), since in away.items()
            if now - since > max(AWAY_US, deployments.queries[id].patience_us(node))
        }
        self.away = {}
        for (id, node), since in away.items():
            self.away.setdefault(id, {})[node] = since
        for id, node in sorted(absent ^ deployments.absent.keys()):
            deployments.set_absent(deployments.queries[id], node, (id, node) in absent)

    def validate(self, deployments: Deployments, topology: Topology) -> None:
        """Raise if what it knows of routes contradicts them. What has changed since the last look is not known yet.
        O(broken links × queries)."""
        if not deployments.rerouted and not topology.has_relinked:
            self._hops.validate(deployments.queries, topology)


def _placed(deployments: Deployments, node: NodeId) -> list[Query]:
    """The queries that pass a node."""
    found = deployments.live(node)
    return [query for query in found if query.deployment is not None and node in query.deployment.tree]
