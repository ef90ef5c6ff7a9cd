"""Decides which silent nodes count as dead for the operators on them.

Law: only an edge node can count as dead, and only for queries whose operators wait for it. A node that another one
reaches is not dead. What was decided is worked out again from silence after a restart of the coordinator; what has come
of it is in the parts of queries (`deployment/dead/replacement`) and in the counts of nodes that are gone (`ended`).
"""

from __future__ import annotations

from rove.control.asks.requests import FOR_EVER_US
from rove.control.deployment.dead.decision import Decision, Facts, Patience, Verdict, decide
from rove.control.deployment.dead.replacement import remembers
from rove.control.deployment.deployments import Deployments
from rove.control.deployment.query import Query
from rove.control.members.membership import Member, Membership
from rove.model.ids import NodeId, QueryId


class Deaths:
    """Follows silent nodes. `verdicts` are the last decisions, by query and node."""

    def __init__(self) -> None:
        self.patience = Patience()
        self.verdicts: dict[tuple[QueryId, NodeId], Verdict] = {}

    def look(self, deployments: Deployments, membership: Membership, listens_us: int, now: int) -> None:
        """Mark the queries whose operators leave a silent node. The coordinator listens since `listens_us`. O(silent
        nodes × their queries)."""
        self.verdicts = {}
        for node, member in list(membership.silent(now)):
            if member.record.kind != "edge" or member.record.revoked:
                continue
            silent_us = now - max(member.heard_us, listens_us)
            for query in deployments.live(node):
                if query.deployment is None or not remembers(query.deployment, node):
                    continue
                verdict = decide(self._facts(query, node, member, membership, silent_us, now))
                self.verdicts[query.id, node] = verdict
                if verdict.decision is Decision.REPLACE:
                    membership.count_dead(node)
                    deployments.touch_dead(query, node)

    def _facts(
        self, query: Query, node: NodeId, member: Member, membership: Membership, silent_us: int, now: int
    ) -> Facts:
        asked, durable = query.record.replace_us, member.record.durable
        patience = self.patience.of(durable) if asked is None else asked
        return Facts(
            silent_us=silent_us,
            patience_us=None if patience == FOR_EVER_US else patience,
            durable=durable,
            reached_by=_reached_by(node, membership, now),
            obstacle=query.dead.get(node, ""),
        )


def _reached_by(node: NodeId, membership: Membership, now: int) -> str:
    """A node that is up and reports a link with this one that works; empty if there is none. O(its links)."""
    for near in membership.neighbours(node):
        other = membership.members.get(near)
        if other is not None and other.state(now) == "up" and node in (other.reaches or ()):
            return near
    return ""
