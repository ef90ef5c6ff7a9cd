"""The rows that an operator has taken and has not given out: those of its open windows.

Law: a batch is open until the watermark passes the end of the last window that holds one of its rows. Until then its
rows are not delivered: they are in no result, and are lost with the operator's state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rove.model.batch import Header
from rove.model.ids import Origin
from rove.model.spans import Coverage


@dataclass(slots=True)
class _Open:
    """The open batches of one origin that close at the same time."""

    rows: int = 0
    batches: Coverage = field(default_factory=Coverage)


class OpenRows:
    """By the watermark at which they close, the open batches of each origin. Batches that close together and follow
    each other take no memory of their own."""

    def __init__(self) -> None:
        self._open: dict[int, dict[Origin, _Open]] = {}

    def take(self, header: Header, rows: int, until: int) -> None:
        """So many rows of a batch are open until the watermark `until`. O(1)."""
        found = self._open.setdefault(until, {}).setdefault(header.origin.unsided, _Open())
        found.rows += rows
        found.batches.add(header.seq, header.through)

    def close(self, low: int) -> Iterator[tuple[Origin, int]]:
        """The low watermark has risen to `low`. Returns the origins and numbers of rows that are no longer open.
        O(open windows, and origins of those that close)."""
        for until in [until for until in self._open if until <= low]:
            for origin, found in self._open.pop(until).items():
                yield origin, found.rows

    def last(self) -> int | None:
        """The watermark at which all open rows are closed; None if there are none. O(open windows)."""
        return max(self._open, default=None)

    def batches(self) -> Iterator[tuple[Origin, Coverage]]:
        """The open batches of each origin. O(open windows × origins)."""
        return ((origin, found.batches) for origins in self._open.values() for origin, found in origins.items())

    def rows(self) -> dict[Origin, int]:
        """How many rows of each origin are open. O(open windows × origins)."""
        sums: dict[Origin, int] = {}
        for origins in self._open.values():
            for origin, found in origins.items():
                sums[origin] = sums.get(origin, 0) + found.rows
        return sums
