"""Count windows: aggregates of every N rows of a key, in event-time order."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.aggregate_states import States
from rove.data.operators.ordered import OrderedLogic, group_numbers
from rove.data.operators.segments import positions
from rove.model.batch import one_batch
from rove.model.ids import Origin
from rove.model.schema import BIGINT
from rove.plan.aggregates import AggregateCall, aggregate, state_name
from rove.plan.expressions.tree import Column
from rove.plan.operators import CountWindow

_ROWS, _TIME, _NUMBER = "__rows", "__time", "__number"


@dataclass(frozen=True, slots=True)
class CountWindowConfig:
    plan: CountWindow

    def build(self, origin: Origin) -> CountWindowLogic:
        return CountWindowLogic(self.plan, origin)


class CountWindowLogic(OrderedLogic):
    """Keeps the window that is not full yet, one for each key. A pane costs O(keys + rows), two hash aggregations."""

    kind = "count window"

    def __init__(self, plan: CountWindow, origin: Origin) -> None:
        super().__init__(plan, origin)
        schema = plan.input.schema
        self._size = plan.rows
        # Besides the user's aggregates, each window counts its rows and keeps the time of its last row.
        time = Column(schema.field(self._time).type, self._time)
        calls = (*plan.aggregates, aggregate("count", None, _ROWS), aggregate("max", time, _TIME))
        keys = tuple((k, Column(schema.field(k).type, k)) for k in plan.keys)
        self._states = States(keys, calls, schema)
        self._merging = self._numbered(calls)
        self._carried = one_batch(self._states.schema.empty_table())

    def _numbered(self, calls: tuple[AggregateCall, ...]) -> States:
        """The same states with the window's number as an additional key."""
        keys = (*((n, Column(e.dtype, n)) for n, e in self._states.keys), (_NUMBER, Column(BIGINT, _NUMBER)))
        schema = pa.schema([*self._states.schema, (_NUMBER, BIGINT)])
        return States(keys, calls, schema, lifted=True)

    def _advance(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        both = one_batch(pa.Table.from_batches([self._carried, self._states.lift(rows)], self._states.schema))
        groups = group_numbers(both.columns[: len(self._plan.keys)], both.num_rows)
        order = pc.sort_indices(groups)  # a stable sort: the kept window first, then the rows in event-time order
        states, groups = both.take(order), groups.take(order)
        numbers = self._window_numbers(states.column(states.schema.get_field_index(state_name(_ROWS, "n"))), groups)
        numbered = states.append_column(_NUMBER, numbers)
        merged = self._merging.ordered(self._merging.merge([self._merging.lift(numbered)]))
        full = pc.equal(
            merged.column(merged.schema.get_field_index(state_name(_ROWS, "n"))), pa.scalar(self._size, BIGINT)
        )
        kept = [merged.schema.get_field_index(n) for n in self._states.schema.names]
        self._carried = merged.filter(pc.invert(full)).select(kept)
        done = merged.filter(full)
        if not done.num_rows:
            return None
        *results, _, moments = self._merging.finish(done)
        keys = done.columns[: len(self._plan.keys)]
        return pa.RecordBatch.from_arrays([moments, *keys, *results], schema=self._plan.schema)

    def _window_numbers(self, counts: pa.Array, groups: pa.Array) -> pa.Array:
        """The window number of each row within its key: the rows before it, including those of the kept window, divided
        by the size."""
        upto = pc.cumulative_sum(counts)
        before = pc.subtract(upto, counts)
        place = positions(groups)
        at_start = pc.if_else(pc.equal(place, pa.scalar(0, BIGINT)), before, None)
        return pc.divide(pc.subtract(before, pc.fill_null_forward(at_start)), pa.scalar(self._size, BIGINT))
