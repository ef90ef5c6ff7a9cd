"""Which rows of one batch are in which pane.

Law: the panes are worked out once for a batch; then any column, or the whole batch, is divided by them. Rows keep their
order, and late rows are in no pane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

Rows = TypeVar("Rows", pa.Array, pa.RecordBatch)
COLUMN_BY_COLUMN = 4
_FILTER = pc.get_function("array_filter")
_DROP_NULLS = pc.FilterOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneSplit:
    """The `numbers` of the panes that have rows, and where the rows are: in `masks`, one a pane, or in runs of the rows
    in `order`, up to `ends`. With neither, all rows are in one pane. `late` marks the late rows, and `kept` the others.
    """

    numbers: list[int]
    masks: list[pa.Array] | None = None
    order: pa.Array | None = None
    ends: tuple[int, ...] = ()
    late: pa.Array | None = None
    kept: pa.Array | None = None

    def of(self, data: Rows, but_last: bool = False) -> list[Rows]:
        """The rows of each pane, or of each `but_last`. O(rows), and O(1) if all rows are in one pane, the common
        case."""
        data, upto = self.in_time(data), len(self.numbers) - but_last
        if self.masks is not None:
            return [_filter(data, mask) for mask in self.masks[:upto]]
        if self.order is None:
            return [data][:upto]
        data, starts = data.take(self.order), [0, *self.ends]
        return [data.slice(starts[n], starts[n + 1] - starts[n]) for n in range(upto)]

    def in_time(self, data: Rows) -> Rows:
        """The rows that are not late."""
        return data if self.kept is None else data.filter(self.kept)

    def by_pane(self, data: Rows) -> list[tuple[int, Rows]]:
        """The rows of each pane, with its number."""
        return list(zip(self.numbers, self.of(data), strict=True))


def _filter(data: Rows, mask: pa.Array) -> Rows:
    """The rows of a mask. A few columns are faster one by one."""
    if isinstance(data, pa.Array):
        return _FILTER.call([data, mask], _DROP_NULLS)
    if data.num_columns > COLUMN_BY_COLUMN:
        return data.filter(mask)
    columns = [_FILTER.call([column, mask], _DROP_NULLS) for column in data.columns]
    return pa.RecordBatch.from_arrays(columns, schema=data.schema)
