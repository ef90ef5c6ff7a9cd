"""A snapshot of everything the coordinator knows, for metrics.

Law: a snapshot is a value. Another thread may read it while the coordinator goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rove.control.asks.listings import node_lines, query_lines
from rove.control.asks.requests import AccountLine, NodeLine, QueryLine
from rove.control.asks.troubles import Troubles
from rove.control.deployment.query import Query
from rove.control.members.accounts import account_lines
from rove.control.members.membership import Member, Membership
from rove.control.placement import Load
from rove.model.ids import Origin
from rove.model.messages import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One node's numbers for one query: what it keeps until the next node has it, what it resent, and the duplicates
    that it dropped."""

    node: str
    query: str
    rows: int = 0
    bytes: int = 0
    age_us: int = 0
    resent: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    accounts: tuple[AccountLine, ...]
    queries: tuple[QueryLine, ...]
    nodes: tuple[NodeLine, ...]
    holdings: tuple[Holding, ...]


def snapshot(troubles: Troubles, load: Load) -> Snapshot:
    """Everything as it was last reported. O(tallies + queries + nodes)."""
    queries, membership, now = list(troubles.deployments.queries.values()), troubles.membership, troubles.now
    members = membership.members.values()
    return Snapshot(
        accounts=tuple(accounts(membership.tallies(), queries, membership, now, troubles.wall)),
        queries=tuple(query_lines(queries, troubles)),
        nodes=tuple(node_lines(membership, load, now)),
        holdings=tuple(holding for member in members for holding in _holdings(member, now)),
    )


def accounts(
    tallies: Iterable[Tally], queries: Iterable[Query], membership: Membership, now: int, wall: int
) -> list[AccountLine]:
    """The accounts of all rows in these tallies."""
    stopped = {query.id for query in queries if query.stopped}
    troubled = [query.id for query in queries if any(True for _ in membership.troubled.of_query(query.id))]
    found, unheard = alive(queries, membership), membership.unheard(now) | _moving(queries, membership)
    return account_lines(tallies, wall, found, unheard, stopped, membership.missing, troubled)


def _moving(queries: Iterable[Query], membership: Membership) -> set[Origin]:
    """The operators that have made rows on more than one node, of which not all have reported how many: their state is
    being sent, or a node has not reported since the coordinator started. O(parts)."""
    silent = any(member.conn is None for member in membership.members.values())
    return {
        query.fragments[node].makes[name.stage]
        for query in queries
        if query.deployment is not None and not query.stopped
        for node, part in query.deployment.tree.parts.items()
        if part.names and (silent or part.awaits)
        for name in part.names
        if name.stage in query.fragments[node].makes
    }


def alive(queries: Iterable[Query], membership: Membership) -> set[Origin]:
    """The origins that may still make rows: sources of known nodes, and operators where they run now.
    O(sources + fragments)."""
    found: set[Origin] = {source.origin for member in membership.members.values() for source in member.record.sources}
    for query in queries:
        if not query.stopped:
            found.update(origin for fragment in query.fragments.values() for origin in fragment.makes.values())
    return found


def _holdings(member: Member, now: int) -> list[Holding]:
    sums: dict[str, dict[str, int]] = {}
    for tally in member.tallies.values():
        line = sums.setdefault(tally.query, {"rows": 0, "resent": 0, "duplicates": 0})
        line["rows"] += tally.buffered
        line["resent"] += tally.resent
        line["duplicates"] += tally.duplicates
    for held in member.held:
        # Batches in its last report have been waiting since that report too.
        sums.setdefault(held.query, {}).update(bytes=held.bytes, age_us=held.age_us + max(0, now - member.heard_us))
    return [Holding(node=member.record.node, query=query, **line) for query, line in sorted(sums.items())]
