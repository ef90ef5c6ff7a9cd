"""The verbs of Spark: `cloud` asks what Spark should run, `progress` reports, `recent` lists the last reports.

`read` asks for rows of a table. Spark asks with `reads` which tables are wanted, and sends their rows with `rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import CloudAsk, CloudQuery, Named, Progress, TableAsk, TableRows, from_body
from rove.control.members.spark_side import SILENT_US
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
    coordinator.deployments.query(said.query)
    coordinator.spark.heard(said, coordinator.now)
    return Named(name=said.query)


def recent(coordinator: Coordinator, body: bytes) -> list[Progress]:
    return coordinator.spark.recent(coordinator.deployments.query(from_body(body, Named).name).id)


def read(coordinator: Coordinator, body: bytes) -> TableRows:
    asked, spark = from_body(body, TableAsk), coordinator.spark
    checked_name(asked.table, "a table")
    if spark.asked_us is None or coordinator.now - spark.asked_us > SILENT_US:
        raise PlanError("only Spark can read tables, and no `rove cloud` has asked for work lately; start: rove cloud")
    return spark.reads.ask(asked, coordinator.now)


def reads(coordinator: Coordinator, body: bytes) -> list[TableAsk]:
    return coordinator.spark.reads.wanted()


def rows(coordinator: Coordinator, body: bytes) -> Named:
    said = from_body(body, TableRows)
    coordinator.spark.reads.heard(said)
    return Named(name=said.id)
