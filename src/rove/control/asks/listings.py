"""Lists queries and nodes, one line each."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from rove.control.asks.requests import NodeLine, Progress, QueryLine
from rove.control.deployment.query import Query
from rove.control.members.membership import Member, Membership
from rove.control.members.spark_side import SparkSide
from rove.control.placement import Load
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.model.spans import text_of

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def queries(coordinator: Coordinator, body: bytes) -> list[QueryLine]:
    """The verb `queries`."""
    return query_lines(coordinator.queries.values(), coordinator.membership, coordinator.spark)


def topology(coordinator: Coordinator, body: bytes) -> list[NodeLine]:
    """The verb `topology`."""
    deployments = coordinator.deployments
    return node_lines(coordinator.membership, deployments.load, coordinator.now, deployments.standing_by())


def streams(coordinator: Coordinator, body: bytes) -> dict[str, str]:
    """The verb `streams`: by name, the columns."""
    return coordinator.streams


def query_lines(queries: Iterable[Query], membership: Membership, spark: SparkSide) -> list[QueryLine]:
    """One line for each query: its state, its sink, the nodes that do not run their fragment yet, and Spark's
    progress."""
    return [_query_line(query, membership, spark.last(query.id)) for query in queries]


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
        )
        for member in membership.members.values()
    ]


def _state(member: Member, now: int, standing_by: Container[NodeId]) -> str:
    state = member.state(now)
    return "stands by" if state == "up" and member.record.node in standing_by else state


def _query_line(query: Query, membership: Membership, spark: Progress | None) -> QueryLine:
    record = query.record
    missing = tuple(node for node in query.rollout.pending if node in membership.members and not query.stopped)
    return QueryLine(
        query=query.id,
        state=query.state.value,
        version=query.version,
        strategy=record.strategy,
        sink=_where(record.sink) if record.cloud is None else f"{record.cloud.kind} {record.cloud.name} in Spark",
        nodes=0 if query.stopped else len(query.fragments),
        missing=missing,
        trouble="; ".join(
            [*([query.trouble] if query.trouble else []), *_troubles(query, membership), *_missing(query, membership)]
        ),
        spark=spark,
    )


def _troubles(query: Query, membership: Membership) -> list[str]:
    members = (membership.members.get(node) for node in query.fragments)
    return [f"{m.record.node}: {m.troubles[query.id]}" for m in members if m is not None and query.id in m.troubles]


def _missing(query: Query, membership: Membership) -> list[str]:
    return [
        f"batches {text_of(doubt.batches)} of `{origin}` are missing: no node has them, and they did not arrive; see "
        f"rove status {query.id}"
        for origin, doubt in membership.missing.lines(query.id)
    ]


def _where(sink: Sink) -> str:
    return " ".join([sink.kind, *([sink.path] if sink.path else []), *([f"on {sink.node}"] if sink.node else [])])
