"""The verbs of Spark: `cloud` asks what Spark should run, `progress` reports, `recent` lists the last reports.

`read` asks for rows of a table. Spark asks with `reads` which tables are wanted, and sends their rows with `rows`.
`check` asks whether Spark would run a plan. Spark asks with `checks` for such plans, and answers with `checked`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import (
    CloudAsk,
    CloudQuery,
    Named,
    PlanAsk,
    PlanSaid,
    Progress,
    TableAsk,
    TableRows,
    from_body,
)
from rove.model.errors import PlanError
from rove.model.ids import checked_name

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def cloud(coordinator: Coordinator, body: bytes) -> list[CloudQuery]:
    """What Spark should run. O(queries)."""
    spark, deployments = coordinator.spark, coordinator.deployments
    spark.trusts, spark.asked_us = from_body(body, CloudAsk).trusts, coordinator.now
    placed = [q for q in deployments.queries.values() if q.deployment is not None and not q.stopped]
    return [spark.part_of(q, *deployments.parts(q)) for q in placed if q.record.cloud is not None]


def progress(coordinator: Coordinator, body: bytes) -> Named:
    said = from_body(body, Progress)
    if not coordinator.deployments.query(said.query).stopped:
        coordinator.spark.heard(said, coordinator.now)
    return Named(name=said.query)


def recent(coordinator: Coordinator, body: bytes) -> list[Progress]:
    return coordinator.spark.recent(coordinator.deployments.query(from_body(body, Named).name).id)


def read(coordinator: Coordinator, body: bytes) -> TableRows:
    asked, spark = from_body(body, TableAsk), coordinator.spark
    checked_name(asked.table, "a table")
    if not spark.listens(coordinator.now):
        raise PlanError("only Spark can read tables, and no `rove cloud` has asked for work lately; start: rove cloud")
    return spark.reads.ask(asked, coordinator.now) or TableRows(id=asked.id)


def reads(coordinator: Coordinator, body: bytes) -> list[TableAsk]:
    return coordinator.spark.reads.wanted()


def rows(coordinator: Coordinator, body: bytes) -> Named:
    said = from_body(body, TableRows)
    coordinator.spark.reads.heard(said)
    return Named(name=said.id)


def check(coordinator: Coordinator, body: bytes) -> PlanSaid:
    asked, spark = from_body(body, PlanAsk), coordinator.spark
    if not spark.listens(coordinator.now):
        return PlanSaid(id=asked.id, ready=True, known=False)
    return spark.checks.ask(asked, coordinator.now) or PlanSaid(id=asked.id)


def checks(coordinator: Coordinator, body: bytes) -> list[PlanAsk]:
    return coordinator.spark.checks.wanted()


def checked(coordinator: Coordinator, body: bytes) -> Named:
    said = from_body(body, PlanSaid)
    coordinator.spark.checks.heard(said)
    return Named(name=said.id)
