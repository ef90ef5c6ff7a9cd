"""What is kept of a complete pane, and how two of them become one: rows of states, or plain numbers.

Law: both forms give the same results to the last bit. Python adds integers and doubles as Arrow does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from rove.data.operators.states import States

Numbers: TypeAlias = tuple[int | float | None, ...]
T = TypeVar("T")


class PaneForm(Protocol[T]):
    """The form `T` of a complete pane."""

    def fold(self, parts: Sequence[pa.RecordBatch]) -> T: ...

    def merge(self, a: T, b: T) -> T: ...

    def rows(self, pane: T) -> pa.RecordBatch: ...

    def read(self, rows: pa.RecordBatch) -> T: ...


class RowsForm:
    """Rows of states, one a key."""

    def __init__(self, states: States) -> None:
        self._states = states

    def fold(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return self._states.merge(parts)

    def merge(self, a: pa.RecordBatch, b: pa.RecordBatch) -> pa.RecordBatch:
        return self._states.merge((a, b))

    def rows(self, pane: pa.RecordBatch) -> pa.RecordBatch:
        return pane

    def read(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows


class NumbersForm:
    """Sums without keys, a number a state: to add two numbers costs less than to call a kernel."""

    def __init__(self, states: States) -> None:
        self._states = states

    def fold(self, parts: Sequence[pa.RecordBatch]) -> Numbers:
        return tuple(total.as_py() for total in self._states.totals(parts))

    def merge(self, a: Numbers, b: Numbers) -> Numbers:
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))

    def rows(self, pane: Numbers) -> pa.RecordBatch:
        schema = self._states.schema
        columns = [pa.repeat(pa.scalar(n, f.type), 1) for n, f in zip(pane, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def read(self, rows: pa.RecordBatch) -> Numbers:
        return tuple(column[0].as_py() for column in rows.columns)


def form_of(states: States, panes_per_window: int) -> PaneForm[Any]:
    """Numbers where panes are merged, and rows where a window is one pane."""
    return NumbersForm(states) if states.are_sums and panes_per_window > 1 else RowsForm(states)
