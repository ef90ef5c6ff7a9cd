"""Tumbling and hopping event-time aggregates: whole, partial (emits panes) or final (takes panes).

Law: window *n* is emitted as batch *n*, its rows in key order. The same input set gives the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.data.operators.complete_panes import form_of
from rove.data.operators.folded import rows_in
from rove.data.operators.labels import gathered, unlabelled
from rove.data.operators.logic import NOTHING, Output, late_rows
from rove.data.operators.panes import PaneClock, micros_of
from rove.data.operators.runs import Runs
from rove.data.operators.sliding import Sliding
from rove.data.operators.states import States
from rove.model.batch import Batch, Header
from rove.model.ids import Origin, read_origin
from rove.model.schema import BIGINT, TIMESTAMP, WINDOW
from rove.model.state import Snapshot
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Column
from rove.plan.operators import PANE, Aggregate
from rove.plan.windows import Window

_LABELS = pa.schema([("__pane", BIGINT), ("__origin", pa.string()), ("__level", BIGINT)])
_WINDOW_FIELDS = list(WINDOW.fields)
_MERGED = -2  # the level of a complete, merged pane in a snapshot


@dataclass(frozen=True, slots=True)
class WindowConfig:
    plan: Aggregate

    def build(self, origin: Origin) -> WindowLogic:
        return WindowLogic(self.plan, origin)


class WindowLogic:
    """Lift, merge, finish. A batch costs its lifts and, every `FOLD_ROWS` rows, one hash aggregation."""

    def __init__(self, plan: Aggregate, origin: Origin) -> None:
        self._plan = plan
        schema = plan.input.schema
        window = plan.window.panes if plan.mode == "partial" else plan.window
        self._clock = PaneClock(window, origin)
        self._states = States(plan.keys, plan.aggregates, schema, lifted=plan.mode == "final")
        self._time = compile_expression(plan.time, schema)
        self._bounds_known = isinstance(plan.time, Column) and plan.time.name == plan.input.traits.event_time
        self._open: dict[int, dict[Origin, Runs]] = {}
        self._form = form_of(self._states, self._clock.panes_per_window)
        self._merged: dict[int, Any] = {}  # complete panes, in that form
        self._sliding = Sliding(self._clock.panes_per_window, self._pane, self._form.merge)

    def process(self, batch: Batch) -> Output:
        data, header = batch.data, batch.header
        if data is None:
            return NOTHING
        micros = micros_of(data.column(PANE) if header.folded else self._time(data))
        if micros.null_count:  # Spark's window() drops rows without a time
            known = pc.is_valid(micros)
            data, micros = data.filter(known), micros.filter(known)
            if not data.num_rows:
                return NOTHING
        bounds = (header.event_min, header.event_max) if self._bounds_known else (None, None)
        # The whole batch is lifted before anything is kept, so a row that cannot be computed leaves no part of its
        # batch.
        states = data.select(self._states.schema.names) if header.folded else self._states.lift(data)
        panes, late = self._clock.split(states, micros, bounds)
        for number, rows in panes:
            self._runs(number, header.origin).add(rows, self._states)
        return NOTHING if late is None else Output(late=(_late(header, data, late),))

    def watermark(self, time_us: int) -> Output:
        output = self._clock.close(time_us, self._occupied, self._emit)
        if output is NOTHING:
            return NOTHING
        output = Output(tuple(map(self._dated, output.batches)), output.late, output.faults)
        for panes in (self._merged, self._open):
            for number in [n for n in panes if n < self._clock.first_needed_pane]:
                del panes[number]
        return output

    def snapshot(self) -> Snapshot:
        states = gathered(self._labelled(), _LABELS, self._states.schema)
        return Snapshot("window", self._clock.facts(), {"states": states})

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("window")
        self._clock.resume(snapshot.facts)
        self._open, self._merged = {}, {}
        for (number, origin, level), part in unlabelled(snapshot.tables["states"], _LABELS, self._states.schema):
            if level == _MERGED:
                self._merged[number] = self._form.read(part)
            else:
                self._runs(number, read_origin(origin)).put(level, part)
        self._sliding = Sliding(self._clock.panes_per_window, self._pane, self._form.merge)

    def _runs(self, number: int, origin: Origin) -> Runs:
        return self._open.setdefault(number, {}).setdefault(origin, Runs())

    def _occupied(self) -> list[int]:
        return sorted({*self._open, *self._merged})

    def _pane(self, number: int) -> Any:
        """The states of a complete pane, merged once, in the order of origins, so that sums do not depend on
        arrival."""
        if number not in self._merged and number in self._open:
            origins = self._open[number]
            parts = [part for origin in sorted(origins) for part in origins[origin].parts()]
            self._merged[number] = self._form.fold(parts)
            del self._open[number]
        return self._merged.get(number)

    def _emit(self, number: int) -> pa.RecordBatch | None:
        found = self._sliding.window(number * self._clock.panes_per_slide)
        if found is None:
            return None
        states = self._states.ordered(self._form.rows(found))
        start = self._clock.window.start_us(number)
        if self._plan.mode == "partial":
            moment = pa.repeat(pa.scalar(start, TIMESTAMP), states.num_rows)
            return pa.RecordBatch.from_arrays([moment, *states.columns], schema=self._plan.schema)
        window = window_column(self._plan.window, start, states.num_rows)
        keys = states.columns[: len(self._plan.keys)]
        return pa.RecordBatch.from_arrays([window, *keys, *self._states.finish(states)], schema=self._plan.schema)

    def _dated(self, batch: Batch) -> Batch:
        """A batch whose rows all have the start of the window as their time."""
        start = self._clock.window.start_us(batch.header.seq)
        return Batch(replace(batch.header, event_min=start, event_max=start), batch.data) if batch.rows else batch

    def _labelled(self) -> Iterator[tuple[tuple[int, str, int], pa.RecordBatch]]:
        for number in sorted(self._merged):
            yield (number, "", _MERGED), self._form.rows(self._merged[number])
        for number in sorted(self._open):
            for origin in sorted(self._open[number]):
                for level, part in self._open[number][origin].labelled():
                    yield (number, str(origin), level), part


def _late(header: Header, data: pa.RecordBatch, which: pa.Array) -> Batch:
    """The late rows. Folded rows are counted as the rows that they hold."""
    late = late_rows(header, data, which)
    return Batch(replace(late.header, born=rows_in(late.data)), late.data) if header.folded else late


def window_column(window: Window, start_us: int, rows: int) -> pa.Array:
    """The struct column that Spark calls `window`."""
    ends = (start_us, start_us + window.size_us)
    fields = [pa.repeat(pa.scalar(each, TIMESTAMP), rows) for each in ends]
    return pa.StructArray.from_arrays(fields, fields=_WINDOW_FIELDS)
