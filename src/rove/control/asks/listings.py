"""Queries and nodes as lines that people read."""

from __future__ import annotations

from collections.abc import Iterable

from rove.control.asks.requests import NodeLine, Progress, QueryLine
from rove.control.deployment.query import Query
from rove.control.deployment.rollout import waiting_for
from rove.control.members.membership import Membership
from rove.control.members.spark_side import SparkSide
from rove.control.placement import Load
from rove.model.messages import Sink


def query_lines(queries: Iterable[Query], membership: Membership, spark: SparkSide) -> list[QueryLine]:
    """One line a query: its state, where it ends, who does not run its part yet, and how Spark gets on with it."""
    return [_query_line(query, membership, spark.last(query.id)) for query in queries]


def node_lines(membership: Membership, load: Load, now: int) -> list[NodeLine]:
    """One line a node: its state, its links and streams, and what it runs."""
    topology = membership.topology
    return [
        NodeLine(
            node=member.record.node,
            kind=member.record.kind,
            state=member.state(now),
            address=member.record.address,
            links=topology.neighbours(member.record.node) if topology.has(member.record.node) else (),
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


def _query_line(query: Query, membership: Membership, spark: Progress | None) -> QueryLine:
    record, missing = query.record, waiting_for(query, membership)
    if record.stopped:
        state = "stopped"
    elif not record.fragments:
        state = "waiting"
    else:
        state = "deploying" if missing else "running"
    return QueryLine(
        query=query.id,
        state=state,
        version=record.version,
        strategy=record.strategy,
        sink=_where(record.sink) if record.cloud is None else f"{record.cloud.kind} {record.cloud.name} in Spark",
        nodes=len(record.fragments),
        missing=missing,
        trouble="; ".join([*([query.trouble] if query.trouble else []), *_troubles(query, membership)]),
        spark=spark,
    )


def _troubles(query: Query, membership: Membership) -> list[str]:
    members = (membership.members.get(node) for node in query.record.fragments)
    return [f"{m.record.node}: {m.troubles[query.id]}" for m in members if m is not None and query.id in m.troubles]


def _where(sink: Sink) -> str:
    return " ".join([sink.kind, *([sink.path] if sink.path else []), *([f"on {sink.node}"] if sink.node else [])])
