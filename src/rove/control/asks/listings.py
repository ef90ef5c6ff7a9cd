"""Lists queries and nodes, one line each."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

import msgspec

from rove.control.asks.requests import AskHistory, HistoryLine, Named, NodeLine, QueryLine, Trouble, from_body
from rove.control.asks.troubles import Troubles
from rove.control.deployment.query import Query, QueryState
from rove.control.members.membership import Member, Membership
from rove.control.placement import Load
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Sink

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator

HELD_UP = "held up"


def queries(coordinator: Coordinator, body: bytes) -> list[QueryLine]:
    """The verb `queries`: one query, if there is one of that name, or all."""
    name = from_body(body, Named).name
    found = coordinator.queries.get(QueryId(name))
    asked = ([] if found is None else [found]) if name else coordinator.queries.values()
    return query_lines(asked, coordinator.troubles(coordinator.now, coordinator.wall))


def topology(coordinator: Coordinator, body: bytes) -> list[NodeLine]:
    """The verb `topology`."""
    deployments = coordinator.deployments
    lines = node_lines(coordinator.membership, deployments.load, coordinator.now, deployments.standing_by())
    named = ((line, coordinator.liars.of(NodeId(line.node), coordinator.now)) for line in lines)
    return [msgspec.structs.replace(line, trouble=lie) if lie else line for line, lie in named]


def streams(coordinator: Coordinator, body: bytes) -> dict[str, str]:
    """The verb `streams`: by name, the columns."""
    return dict(coordinator.streams)


def history(coordinator: Coordinator, body: bytes) -> list[HistoryLine]:
    """The verb `history`: the last changes, the oldest first."""
    asked = from_body(body, AskHistory)
    if asked.query:
        coordinator.deployments.query(asked.query)
    found = [line for line in coordinator.history if asked.query in ("", line.query)]
    return found[-asked.last :] if asked.last > 0 else []


def query_lines(queries: Iterable[Query], troubles: Troubles) -> list[QueryLine]:
    """One line for each query: its state, its sink, the nodes that do not run their fragment yet, what holds it up, and
    Spark's progress."""
    return [_query_line(query, troubles) for query in queries]


def node_lines(membership: Membership, load: Load, now: int, standing_by: Container[NodeId] = ()) -> list[NodeLine]:
    """One line for each node: its state, its links and streams, and what it runs. A gateway that is `standing_by` is up
    and not used."""
    return [
        NodeLine(
            node=member.record.node,
            kind=member.record.kind,
            state=_state(member, now, standing_by),
            address=member.record.address,
            links=membership.neighbours(member.record.node),
            streams=tuple(sorted({s.stream for s in member.record.sources})),
            queries=len(member.running),
            slots=member.record.slots,
            slots_used=load.slots.get(member.record.node, 0),
            refused=member.refused,
            silent_ms=member.silent_us(now) // 1_000,
            memory_bytes=member.record.memory_bytes,
            disk_bytes=member.disk_bytes,
            held_bytes=member.held_bytes(),
            oldest_ms=member.oldest_us(now) // 1_000,
            lasts_ms=None if (lasts := member.lasts_us(now)) is None else lasts // 1_000,
            bytes_per_s=member.bytes_per_s,
            packs_to=member.packs_to(),
            trouble=member.trouble,
        )
        for member in membership.members.values()
    ]


def _state(member: Member, now: int, standing_by: Container[NodeId]) -> str:
    state = member.state(now)
    if state == "up" and member.record.draining:
        return "draining"
    return "stands by" if state == "up" and member.record.node in standing_by else state


def _query_line(query: Query, troubles: Troubles) -> QueryLine:
    record, found = query.record, troubles.of(query)
    members = troubles.membership.members
    missing = tuple(node for node in query.rollout.pending if node in members and not query.stopped)
    return QueryLine(
        query=query.id,
        state=_shown_state(query, found),
        version=query.version,
        strategy=record.strategy,
        in_spark=record.cloud is not None,
        sink=_where(record.sink) if record.cloud is None else f"{record.cloud.kind} {record.cloud.name} in Spark",
        nodes=0 if query.stopped else len(query.fragments),
        missing=missing,
        troubles=found,
        spark=None if query.stopped else troubles.spark.last(query.id),
    )


def _shown_state(query: Query, troubles: Iterable[Trouble]) -> str:
    """The state as people see it. That a query is held up is no state of its own: it follows from troubles, which come
    and go without an event of the query."""
    held_up = query.state is QueryState.RUNNING and any(trouble.holds for trouble in troubles)
    return HELD_UP if held_up else query.state.value


def _where(sink: Sink) -> str:
    return " ".join([sink.kind, *([sink.path] if sink.path else []), *([f"on {sink.node}"] if sink.node else [])])
