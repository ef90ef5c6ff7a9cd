"""Batches whose rows could not be computed, as the trouble of their queries.

Law: a query's trouble names its last such batch and says why. It is over after a while without another one, or with
another plan of the query. The rows stay counted as lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from rove.model.batch import Header
from rove.model.errors import DataError
from rove.model.ids import QueryId

SHOWN_US = 300_000_000  # how long a fault is reported
TEXT_CHARS_MAX = 1_000  # of a fault's text: it may be a user's


@dataclass(frozen=True, slots=True)
class _Fault:
    text: str
    count: int
    until: int


class Faults:
    """Of all queries of one node."""

    def __init__(self) -> None:
        self._last: dict[QueryId, _Fault] = {}

    def add(self, query: QueryId, header: Header, fault: DataError, now: int) -> None:
        """A batch of a query is at fault."""
        before = self._last.get(query)
        count = 1 if before is None or now >= before.until else before.count + 1
        text = f"batch {header.seq} of `{header.origin}` is lost: {str(fault)[:TEXT_CHARS_MAX]}"
        self._last[query] = _Fault(text, count, now + SHOWN_US)

    def forget(self, query: QueryId) -> None:
        """The query has another plan, or does not run here any more."""
        self._last.pop(query, None)

    def troubles(self, now: int) -> dict[QueryId, str]:
        """The last fault of each query. O(queries)."""
        return {
            query: fault.text if fault.count == 1 else f"{fault.text} ({fault.count} batches so far)"
            for query, fault in self._last.items()
            if now < fault.until
        }
