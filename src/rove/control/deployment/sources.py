"""Which sources a query reads, and where they are."""

from __future__ import annotations

from rove.control.deployment.query import Query
from rove.control.members.membership import Membership
from rove.control.placement import SourceAt
from rove.model.ids import NodeId, Stage
from rove.model.schema import schema_text


def sources_of(query: Query, membership: Membership, end: NodeId) -> dict[Stage, tuple[SourceAt, ...]]:
    """By source stage, the producers that have a route to where the query ends. O(nodes × streams).

    A source that is placed keeps its place while it is away or has no route; one that is gone for good does not.
    """
    found: dict[Stage, tuple[SourceAt, ...]] = {}
    for stream, stage in query.streams.items():
        wanted = (stream, schema_text(query.stages.operators[stage].schema))
        here = {
            source.origin: SourceAt(source.origin, member.record.node)
            for member in membership.members.values()
            for source in member.record.sources
            if (source.stream, source.columns) == wanted and _reaches(membership, member.record.node, end)
        }
        placed = query.record.sources.get(stage, ())
        kept = {o: SourceAt(o, n) for o, n in placed if o not in here and o not in membership.ended.gone}
        found[stage] = (*here.values(), *kept.values())
    return found


def _reaches(membership: Membership, node: NodeId, end: NodeId) -> bool:
    return membership.topology.has(node) and membership.topology.reaches(node, end)
