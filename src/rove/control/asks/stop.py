"""The verb `stop`: stops a query. Delivered rows stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Named, from_body

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def stop(coordinator: Coordinator, body: bytes) -> Named:
    query = coordinator.deployments.query(from_body(body, Named).name)
    if not query.stopped:
        coordinator.stop(query)
    return Named(name=query.id)
