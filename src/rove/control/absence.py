"""Who has been silent for too long to be waited for.

Law: a node that is away keeps its place, its fragments and its watermark until the query's patience is over. Then
event time goes on without it; its place stays, and when it is back it is waited for again.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.control.membership import AWAY_US, Membership
from rove.control.queries import Query
from rove.model.ids import NodeId


class Absence:
    """Looks at silences. `since` is when the coordinator began to listen: before that nobody could be heard."""

    def __init__(self) -> None:
        self.since: int | None = None

    def changed(self, queries: Iterable[Query], membership: Membership, now: int) -> list[tuple[Query, list[NodeId]]]:
        """Queries whose list of the absent is not right any more, with the right one. O(nodes + queries × silent)."""
        if self.since is None:
            self.since = now
        silent = {
            name: now - max(member.heard_us, self.since)
            for name, member in membership.members.items()
            if now - max(member.heard_us, self.since) > AWAY_US
        }
        found = []
        for query in queries:
            if query.placement is None or query.record.stopped:
                continue
            patience = max(AWAY_US, query.record.patience_us)
            absent = sorted(n for n, us in silent.items() if us > patience and n in query.placement.roads)
            if absent != list(query.record.absent):
                found.append((query, absent))
        return found
