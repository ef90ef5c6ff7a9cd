"""Tumbling and hopping event-time aggregates: whole, partial (emits panes) or final (takes panes).

Law: window *n* is emitted as batch *n*, its rows in key order. The same input set gives the same batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.data.operators.aggregate_states import States
from rove.data.operators.folded import rows_in
from rove.data.operators.labels import gathered, unlabelled
from rove.data.operators.logic import NOTHING, Output, late_rows
from rove.data.operators.pane_forms import OpenPane, form_of
from rove.data.operators.panes import PaneClock, micros_of
from rove.data.operators.pieces import UNTIL, Behind, Piece, first_pane, pieces
from rove.data.operators.sliding import Sliding
from rove.model.batch import Batch, Header
from rove.model.ids import Origin, read_origin
from rove.model.schema import BIGINT, WINDOW
from rove.model.state import Snapshot
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Column
from rove.plan.operators import PANE, Aggregate

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
        self._open: dict[int, dict[Origin, OpenPane[Any]]] = {}  # by number and origin
        self._form = form_of(self._states, self._clock.panes_per_window)
        self._merged: dict[int, Any] = {}  # complete panes, in that form
        self._sliding = Sliding(self._clock.panes_per_window, self._pane, self._form.merge)
        self._behind: Behind[Any] = Behind()

    def probe(self, data: pa.RecordBatch) -> None:
        """Compute what can fail for single rows, and change nothing."""
        moments = self._time(data)
        if moments.null_count:
            data = data.filter(pc.is_valid(moments))
        if data.num_rows:
            self._states.lift(data)

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
        split = self._clock.split(micros, bounds)
        parts = (
            self._form.states_of(data.select(self._states.schema.names), split)
            if header.folded
            else self._form.lift(data, split)
        )
        for number, part in zip(split.numbers, parts, strict=True):
            if not self._behind.keeps(number, header.origin, part):
                self._opened(number, header.origin).add(part)
        late = () if split.late is None else (_late(header, data, split.late),)
        return Output(late=late, open_until=self._clock.open_until(split.numbers))

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
        states = gathered(self._labelled(self._occupied()), _LABELS, self._states.schema)
        return Snapshot("window", self._clock.facts(), {"states": states})

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("window")
        self._clock.resume(snapshot.facts)
        self._open, self._merged = {}, {}
        self._put(snapshot)
        self._sliding = Sliding(self._clock.panes_per_window, self._pane, self._form.merge)

    def beginning(self) -> Snapshot:
        return Snapshot("window", {**self._clock.facts(), UNTIL: first_pane(self._occupied())})

    def pieces(self) -> Iterator[Piece]:
        return pieces("window", self._occupied(), self._states_of)

    def complete_until(self, pane: int) -> int:
        return self._clock.complete_until(pane)

    def begin(self, snapshot: Snapshot) -> None:
        snapshot.expect("window")
        self._clock.resume(snapshot.facts)
        self._behind.come(snapshot.facts[UNTIL])

    def merge(self, snapshot: Snapshot) -> None:
        snapshot.expect("window")
        self._put(snapshot)
        for number, origin, part in self._behind.come(snapshot.facts[UNTIL]):
            self._opened(number, origin).add(part)

    def rename(self, origin: Origin) -> Output:
        return self._clock.rename(origin)

    def _put(self, snapshot: Snapshot) -> None:
        if "states" not in snapshot.tables:
            return
        for (number, origin, level), part in unlabelled(snapshot.tables["states"], _LABELS, self._states.schema):
            if level == _MERGED:
                found, known = self._form.read(part), self._merged.get(number)
                self._merged[number] = found if known is None else self._form.merge(known, found)
            else:
                self._opened(number, read_origin(origin)).put(level, part)

    def _states_of(self, number: int) -> dict[str, pa.Table]:
        return {"states": gathered(self._labelled([number]), _LABELS, self._states.schema)}

    def _opened(self, number: int, origin: Origin) -> OpenPane[Any]:
        origins = self._open.setdefault(number, {})
        if origin not in origins:
            origins[origin] = self._form.open()
        return origins[origin]

    def _occupied(self) -> list[int]:
        return sorted({*self._open, *self._merged})

    def _pane(self, number: int) -> Any:
        """The states of a complete pane, merged once, in the order of origins, so that sums do not depend on
        arrival."""
        if number not in self._merged and number in self._open:
            origins = self._open[number]
            self._merged[number] = self._form.complete([origins[origin] for origin in sorted(origins)])
            del self._open[number]
        return self._merged.get(number)

    def _emit(self, number: int) -> pa.RecordBatch | None:
        found = self._sliding.window(number * self._clock.panes_per_slide)
        if found is None:
            return None
        first = number * self._clock.panes_per_slide
        start = self._clock.moment(first)
        if self._plan.mode == "partial":
            states = self._form.rows(found)
            moments = pa.repeat(start, states.num_rows)
            return pa.RecordBatch.from_arrays([moments, *states.columns], schema=self._plan.schema)
        results = self._form.results(found)
        window = window_column(start, self._clock.moment(first + self._clock.panes_per_window), len(results[0]))
        return pa.RecordBatch.from_arrays([window, *results], schema=self._plan.schema)

    def _dated(self, batch: Batch) -> Batch:
        """A batch whose rows all have the start of the window as their time."""
        start = self._clock.window.start_us(batch.header.seq)
        return Batch(replace(batch.header, event_min=start, event_max=start), batch.data) if batch.rows else batch

    def _labelled(self, panes: Iterable[int]) -> Iterator[tuple[tuple[int, str, int], pa.RecordBatch]]:
        for number in panes:
            if number in self._merged:
                yield (number, "", _MERGED), self._form.rows(self._merged[number])
            for origin in sorted(self._open.get(number, ())):
                for level, part in self._open[number][origin].labelled():
                    yield (number, str(origin), level), part


def _late(header: Header, data: pa.RecordBatch, which: pa.Array) -> Batch:
    """The late rows. Folded rows are counted as the rows that they hold."""
    late = late_rows(header, data, which)
    return Batch(replace(late.header, born=rows_in(late.data)), late.data) if header.folded else late


def window_column(start: pa.Scalar, end: pa.Scalar, rows: int) -> pa.Array:
    """The struct column that Spark calls `window`."""
    return pa.StructArray.from_arrays([pa.repeat(start, rows), pa.repeat(end, rows)], fields=_WINDOW_FIELDS)
