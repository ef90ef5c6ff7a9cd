"""The verb `status`: the accounts of every row, by query and origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import AccountLine, Named, from_body
from rove.control.asks.snapshot import accounts

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def status(coordinator: Coordinator, body: bytes) -> list[AccountLine]:
    """The accounts of one query, or of all. O(tallies)."""
    name = from_body(body, Named).name
    if name:
        coordinator.deployments.query(name)
    tallies = (t for t in coordinator.membership.tallies() if not name or t.query == name)
    queries = list(coordinator.queries.values())
    return accounts(tallies, queries, coordinator.membership, coordinator.now, coordinator.wall)
