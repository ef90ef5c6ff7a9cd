"""Users' requests for rows of tables. Spark reads the rows, because only its process sees the tables.

Law: a user asks again and again under one id until there is an answer. Spark asks what should be read, and sends the
rows. An answer is kept for a while, so that a repeated question gets the same one. O(requests that wait) each.
"""

from __future__ import annotations

from dataclasses import dataclass

from rove.control.asks.requests import TableAsk, TableRows
from rove.model.errors import PlanError

KEPT_US = 60_000_000  # after the last question, before a request is forgotten
WAITING_MAX = 16


@dataclass(slots=True)
class _Request:
    asked: TableAsk
    asked_us: int
    rows: TableRows | None = None


class TableReads:
    """The requests by id."""

    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}

    def ask(self, asked: TableAsk, now: int) -> TableRows:
        """The answer to a request, or one that is not `ready`."""
        for id in [id for id, each in self._requests.items() if now - each.asked_us > KEPT_US]:
            del self._requests[id]
        if asked.id not in self._requests and len(self._requests) >= WAITING_MAX:
            raise PlanError(f"{WAITING_MAX} tables are being read already; try again in a minute")
        request = self._requests.setdefault(asked.id, _Request(asked, now))
        request.asked_us = now
        return request.rows or TableRows(id=asked.id)

    def wanted(self) -> list[TableAsk]:
        """What Spark should read."""
        return [each.asked for each in self._requests.values() if each.rows is None]

    def heard(self, rows: TableRows) -> None:
        """Take the rows of a table that Spark has read, or its reason why it cannot. An answer that no request waits
        for is dropped."""
        if (request := self._requests.get(rows.id)) is not None:
            request.rows = rows
