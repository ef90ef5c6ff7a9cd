"""Keeps rows by pane and origin until the pane is complete, for operators that need all rows of a pane at once.

Law: `take` returns a pane's rows by origin, and in the order of each origin, whatever the interleaving.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rove.data.operators.labels import gathered, unlabelled
from rove.data.operators.pieces import Behind
from rove.model.ids import Origin, read_origin
from rove.model.schema import BIGINT

_LABELS = pa.schema([("__pane", BIGINT), ("__origin", pa.string())])


class RowsByPane:
    """The rows of one input. O(rows of open panes) of memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._panes: dict[int, dict[Origin, list[pa.RecordBatch]]] = {}
        self._behind: Behind[pa.RecordBatch] = Behind()

    def add(self, number: int, origin: Origin, rows: pa.RecordBatch) -> None:
        if not self._behind.keeps(number, origin, rows):
            self._put(number, origin, rows)

    def _put(self, number: int, origin: Origin, rows: pa.RecordBatch) -> None:
        self._panes.setdefault(number, {}).setdefault(origin, []).append(rows)

    def occupied(self) -> list[int]:
        return sorted(self._panes)

    def take(self, number: int) -> pa.Table:
        """Take the rows of a pane out."""
        origins = self._panes.pop(number, {})
        return pa.Table.from_batches([b for o in sorted(origins) for b in origins[o]], self.schema)

    def table(self, panes: Iterable[int] | None = None) -> pa.Table:
        """The rows of these panes, or all rows, for a snapshot."""
        parts = (
            ((number, str(origin)), rows)
            for number in (self.occupied() if panes is None else panes)
            for origin in sorted(self._panes.get(number, ()))
            for rows in self._panes[number][origin]
        )
        return gathered(parts, _LABELS, self.schema)

    def load(self, table: pa.Table) -> None:
        """Restore what `table` returned."""
        self._panes = {}
        self._merge(table)

    def merge(self, table: pa.Table | None, until: int) -> None:
        """Merge in rows that another node had. With them the rows of all panes below `until` are here."""
        if table is not None:
            self._merge(table)
        for number, origin, rows in self._behind.come(until):
            self._put(number, origin, rows)

    def _merge(self, table: pa.Table) -> None:
        for (number, origin), rows in unlabelled(table, _LABELS, self.schema):
            self._put(number, read_origin(origin), rows)
