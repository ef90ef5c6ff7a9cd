"""What is kept of a pane, while it is open and when it is complete: rows of states, or plain numbers.

Law: both forms give the same results. Only a sum of fractions may differ in its last digits, if one origin has more
than `FOLD_ROWS` rows in a pane, because rows are then added in runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from rove.data.operators.aggregate_states import States
from rove.data.operators.numbers import NumbersForm
from rove.data.operators.pane_split import PaneSplit
from rove.data.operators.runs import Runs

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class OpenPane(Protocol[T_contra]):
    """The states of one pane from one origin, as long as rows may come."""

    def add(self, part: T_contra) -> None:
        """Take the states of one batch."""

    def labelled(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Everything for a snapshot: parts with their levels, oldest first."""

    def put(self, level: int, part: pa.RecordBatch) -> None:
        """Restore a part from a snapshot, in the order of `labelled`."""


class PaneForm(Protocol[T]):
    """The form `T` of states."""

    def lift(self, rows: pa.RecordBatch, split: PaneSplit) -> list[T]:
        """The states of a batch, by pane. All rows are computed before anything is returned."""

    def states_of(self, states: pa.RecordBatch, split: PaneSplit) -> list[T]:
        """The same as `lift`, for rows that are states already."""

    def open(self) -> OpenPane[T]: ...

    def complete(self, panes: Sequence[Any]) -> T:
        """The states of a pane from all origins, in their order."""

    def merge(self, a: T, b: T) -> T: ...

    def rows(self, pane: T) -> pa.RecordBatch:
        """Rows of states, in the order of their keys."""

    def read(self, rows: pa.RecordBatch) -> T: ...

    def results(self, pane: T) -> list[pa.Array]:
        """The columns of keys, then the result of each aggregate."""


class RowsForm:
    """Rows of states, one a key."""

    def __init__(self, states: States) -> None:
        self._states = states

    def lift(self, rows: pa.RecordBatch, split: PaneSplit) -> list[pa.RecordBatch]:
        return split.of(self._states.lift(rows))

    def states_of(self, states: pa.RecordBatch, split: PaneSplit) -> list[pa.RecordBatch]:
        return split.of(states)

    def open(self) -> Runs:
        return Runs(self._states)

    def complete(self, panes: Sequence[Runs]) -> pa.RecordBatch:
        return self._states.merge([part for pane in panes for part in pane.parts()])

    def merge(self, a: pa.RecordBatch, b: pa.RecordBatch) -> pa.RecordBatch:
        return self._states.merge((a, b))

    def rows(self, pane: pa.RecordBatch) -> pa.RecordBatch:
        return self._states.ordered(pane)

    def read(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    def results(self, pane: pa.RecordBatch) -> list[pa.Array]:
        states = self.rows(pane)
        return [*states.columns[: len(self._states.keys)], *self._states.finish(states)]


def form_of(states: States, panes_per_window: int) -> PaneForm[Any]:
    """Numbers where panes are merged, and rows where a window is one pane."""
    return NumbersForm(states) if states.are_sums and panes_per_window > 1 else RowsForm(states)
