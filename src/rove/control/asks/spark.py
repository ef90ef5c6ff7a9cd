"""The verbs of Spark: `cloud` asks what Spark should run, `progress` reports, `recent` lists the last reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import CloudAsk, CloudQuery, Named, Progress, from_body

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
