"""Folds the rows of one batch into the states of the window that will take them.

Law: a window gives the same result for folded rows as for the rows, because merging is associative. Only sums of
fractions may differ in their last digits, because the order of addition differs. A folded batch keeps its name, and
every state says how many rows it holds.

    ts, key, value   →   __pane, key, states …, rows      the partial's own columns, and a count
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.aggregate_states import States
from rove.data.operators.panes import PaneClock, micros_of
from rove.model.batch import one_batch
from rove.model.ids import NOBODY, Stage
from rove.model.schema import TIMESTAMP
from rove.plan.aggregates import aggregate
from rove.plan.expressions.arrow import compile_expression
from rove.plan.operators import Aggregate
from rove.plan.stages import Stages

_COUNT = aggregate("count", None, "__folded")
_UNKNOWN = (None, None)


def folds_into(stages: Stages, stage: int) -> Aggregate | None:
    """The window that takes the output of a stage, if rows may be folded there, because nothing else reads them."""
    readers = stages.readers[stage]
    if len(readers) != 1 or any(out == stage for _, out in stages.outputs):
        return None
    return window_at(stages, readers[0])


def window_at(stages: Stages, stage: Stage) -> Aggregate | None:
    """The operator of a stage, if it is a window that takes folded rows."""
    operator = stages.operators[stage]
    return operator if isinstance(operator, Aggregate) and operator.mode == "partial" else None


def folded_schema(window: Aggregate) -> pa.Schema:
    """The columns of rows that were folded for a window."""
    return pa.schema([*window.schema, *_COUNT.state_schema])


def rows_in(folded: pa.RecordBatch) -> int:
    """How many rows are in folded rows."""
    return int(pc.sum(folded.column(folded.num_columns - 1)).as_py() or 0)


class Fold:
    """Folds batches for one window; with `count`, every state says how many rows it holds."""

    def __init__(self, window: Aggregate, count: bool = True) -> None:
        source = window.input.schema
        self._schema = folded_schema(window) if count else window.schema
        self._states = States(window.keys, (*window.aggregates, _COUNT) if count else window.aggregates, source)
        self._time = compile_expression(window.time, source)
        self._clock = PaneClock(window.window.panes, NOBODY)

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """One row for each pane and key. Rows without a time are in no window, and are dropped. O(rows)."""
        micros = micros_of(self._time(rows))
        known = pc.is_valid(micros)
        rows, micros = rows.filter(known), micros.filter(known)
        parts = []
        if rows.num_rows:
            split = self._clock.split(micros, _UNKNOWN)
            for number, part in split.by_pane(self._states.lift(rows)):
                states = self._states.ordered(self._states.merge([part]))
                start = pa.scalar(self._clock.window.start_us(number), TIMESTAMP)
                moments = pa.repeat(start, states.num_rows)
                parts.append(pa.RecordBatch.from_arrays([moments, *states.columns], schema=self._schema))
        return one_batch(pa.Table.from_batches(parts, self._schema))
