"""The verb `explain`: says where a query runs, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Named, from_body

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def explain(coordinator: Coordinator, body: bytes) -> Named:
    deployments = coordinator.deployments
    return Named(name=deployments.explained(deployments.query(from_body(body, Named).name)))
