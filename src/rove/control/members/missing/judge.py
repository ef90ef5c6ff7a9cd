"""Finds the moment up to which it is known which nodes hold the batches of a query and origin."""

from __future__ import annotations

from collections.abc import Mapping

from rove.control.deployment.query import Query
from rove.control.members.membership import Membership
from rove.control.members.missing.missing import NEVER
from rove.model.ids import SOURCE, NodeId, Origin, QueryId


class Judge:
    """For one look at all lines, so that a query is judged once. O(fragments) for each query that is in doubt."""

    def __init__(self, queries: Mapping[QueryId, Query], membership: Membership, now: int) -> None:
        self._queries, self._membership, self._now = queries, membership, now
        self._heard: dict[QueryId, int | None] = {}
        self._makes: dict[QueryId, set[Origin]] = {}

    def __call__(self, query: QueryId, origin: Origin) -> int | None:
        """The moment up to which all nodes that may hold batches of others have reported. It is `NEVER` if one of them
        does not run its fragment, or has not reported since the coordinator started. None if the query or the origin is
        over."""
        if query not in self._heard:
            self._heard[query] = self._all_heard(query)
        return self._heard[query] if self._lives(query, origin) else None

    def _all_heard(self, query: QueryId) -> int | None:
        found = self._queries.get(query)
        if found is None or found.stopped or found.deployment is None:
            return None
        self._makes[query] = {origin for fragment in found.fragments.values() for origin in fragment.makes.values()}
        oldest = self._now
        for node in found.fragments:
            member = self._membership.members.get(node)
            if member is None or member.conn is None or query not in member.running:
                return NEVER
            if member.record.kind != "device":  # a device holds its own batches only
                oldest = min(oldest, member.heard_us)
        return oldest

    def _lives(self, query: QueryId, origin: Origin) -> bool:
        if origin.stage != SOURCE:
            return origin in self._makes.get(query, ())
        member = self._membership.members.get(NodeId(origin.node))
        return member is not None and any(source.origin == origin for source in member.record.sources)
