"""The verb `submit`: starts a query, or explains where it would run.

Law: a query that cannot be placed is refused and not stored. A query that waits for sources is stored. Submitting the
same query again gives the same answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rove.control.asks.requests import Submit, Submitted, check_submit, from_body
from rove.control.deployment.query import Query, QueryRecord
from rove.control.members.trust import check_trust
from rove.control.placement import STRATEGIES
from rove.model.errors import PlanError, nearest
from rove.model.ids import QueryId, checked_name
from rove.model.messages import Sink

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def submit(coordinator: Coordinator, body: bytes) -> Submitted:
    asked, deployments = from_body(body, Submit), coordinator.deployments
    check_submit(asked)
    if asked.strategy not in STRATEGIES:
        raise PlanError(f"no placement strategy `{asked.strategy}`; {nearest(asked.strategy, list(STRATEGIES))}")
    record = QueryRecord.of(asked)
    known = deployments.queries.get(QueryId(asked.name))
    if known is not None and not asked.explain:
        _check_same(known, record)
        return Submitted(query=asked.name, version=known.version, text=deployments.explained(known))
    _check_sink(coordinator, asked.sink)
    query = deployments.new(record, asked.plan)
    if unknown := [stream for stream in asked.patience_of if stream not in query.streams]:
        raise PlanError(f"the query reads no stream `{unknown[0]}`; {nearest(unknown[0], list(query.streams))}")
    _declare(coordinator, query, keep=not asked.explain)
    if asked.explain:
        return Submitted(query=asked.name, version=0, text=deployments.explained(query))
    change = deployments.place(query)
    try:
        check_trust(query, coordinator.membership, coordinator.spark)
    except PlanError:
        deployments.withdraw(query)
        raise
    deployments.add(query)
    coordinator.keep_bytes("plan", query.record.plan, asked.plan)
    coordinator.keep("query", query.id, query.record)
    if change is not None:
        coordinator.roll_out(query, replace(change, causes=("it was submitted",)))
    return Submitted(query=asked.name, version=query.version, text=deployments.explained(query))


def _check_same(known: Query, record: QueryRecord) -> None:
    """Refuse a query whose name is taken by a query with other options."""
    if known.stopped:
        raise PlanError(f"a query `{known.id}` was stopped, and its rows are kept; choose another name")
    if others := known.record.asked_otherwise(record):
        raise PlanError(
            f"there is a query `{known.id}` already, with another {' and '.join(others)}; choose another name"
        )


def _check_sink(coordinator: Coordinator, sink: Sink) -> None:
    """Refuse a sink that writes on a node without a disk."""
    member = coordinator.membership.members.get(sink.node) if sink.node is not None else None
    if member is not None and member.conn is not None and sink.kind != "discard" and not member.record.durable:
        raise PlanError(f"`{sink.node}` has no disk for a sink; start it with --data DIR, or choose another node")


def _declare(coordinator: Coordinator, query: Query, keep: bool) -> None:
    """Refuse a query that reads a stream with other columns than the stream has. Declare streams that are new."""
    for stream, columns in query.columns.items():
        known = coordinator.streams.get(checked_name(stream, "a stream"))
        if known is None and keep:
            coordinator.streams[stream] = columns
            coordinator.keep_bytes("stream", stream, columns.encode())
        elif known not in (None, columns):
            raise PlanError(f"stream `{stream}` has columns {known}; the query reads {columns}")
