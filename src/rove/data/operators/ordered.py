"""Gives rows in event-time order, one pane at a time: the common part of scans and count windows.

Law: rows are ordered by event time, then origin, then the origin's own order. The output of pane *n* is batch *n*.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.aggregate_states import States
from rove.data.operators.buffered import RowsByPane
from rove.data.operators.logic import NOTHING, Output, late_rows
from rove.data.operators.panes import PaneClock, micros_of
from rove.data.operators.pieces import UNTIL, Piece, first_pane, pieces
from rove.model.batch import Batch, one_batch
from rove.model.ids import Origin
from rove.model.schema import BIGINT
from rove.model.state import Snapshot
from rove.plan.expressions.tree import Column, fallible
from rove.plan.operators import CountWindow, Scan
from rove.plan.windows import Window


class OrderedLogic:
    """Buffers rows until their pane is complete, then passes them on sorted. `carried` has one state row for each
    key."""

    kind = "ordered"

    def __init__(self, plan: Scan | CountWindow, origin: Origin) -> None:
        schema = plan.input.schema
        self._plan = plan
        self._clock = PaneClock(Window(plan.every_us, plan.every_us), origin)
        self._rows = RowsByPane(schema)
        self._time = str(plan.input.traits.event_time)
        keys = tuple((k, Column(schema.field(k).type, k)) for k in plan.keys)
        self._states = States(keys, plan.aggregates, schema)
        self._carried = one_batch(self._states.schema.empty_table())
        self._lifts_fail = any(fallible(s.lift) for call in plan.aggregates for s in call.states)

    def probe(self, data: pa.RecordBatch) -> None:
        """Compute what can fail for single rows, and change nothing."""
        self._states.lift(data)

    def process(self, batch: Batch) -> Output:
        data, header = batch.data, batch.header
        if data is None:
            return NOTHING
        if self._lifts_fail:  # rows at fault are found before they are among those of other batches
            self.probe(data)
        micros = micros_of(data.column(self._time))
        outside: list[Batch] = []
        until: int | None = None
        if micros.null_count:  # rows without a time have no place in the order
            known = pc.is_valid(micros)
            outside.append(late_rows(header, data, pc.invert(known)))
            data, micros = data.filter(known), micros.filter(known)
        if data.num_rows:
            split = self._clock.split(micros, (header.event_min, header.event_max))
            until = self._clock.open_until(split.numbers)
            for number, rows in split.by_pane(data):
                self._rows.add(number, header.origin, rows)
            if split.late is not None:
                outside.append(late_rows(header, data, split.late))
        return Output(late=tuple(outside), open_until=until)

    def watermark(self, time_us: int) -> Output:
        return self._clock.close(time_us, self._rows.occupied, self._emit)

    def snapshot(self) -> Snapshot:
        carried = pa.Table.from_batches([self._carried])
        return Snapshot(self.kind, self._clock.facts(), {"rows": self._rows.table(), "carried": carried})

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect(self.kind)
        self._clock.resume(snapshot.facts)
        self._rows.load(snapshot.tables["rows"])
        self._carried = one_batch(snapshot.tables["carried"])

    def beginning(self) -> Snapshot:
        return Snapshot(self.kind, {**self._clock.facts(), UNTIL: first_pane(self._moving())})

    def pieces(self) -> Iterator[Piece]:
        return pieces(self.kind, self._moving(), self._of_pane)

    def _moving(self) -> list[int]:
        """The panes with state, in order. What is carried belongs to the next pane that closes, so no pane closes
        before it is there."""
        return sorted({*self._rows.occupied(), *((self._clock.complete,) if self._carried.num_rows else ())})

    def _of_pane(self, number: int) -> dict[str, pa.Table]:
        rows = {"rows": self._rows.table([number])}
        carries = number == self._clock.complete and self._carried.num_rows
        return {"carried": pa.Table.from_batches([self._carried])} | rows if carries else rows

    def complete_until(self, pane: int) -> int:
        return self._clock.complete_until(pane)

    def begin(self, snapshot: Snapshot) -> None:
        snapshot.expect(self.kind)
        self._clock.resume(snapshot.facts)
        self._rows.merge(None, snapshot.facts[UNTIL])

    def merge(self, snapshot: Snapshot) -> None:
        snapshot.expect(self.kind)
        if (carried := snapshot.tables.get("carried")) is not None:
            self._carried = one_batch(pa.Table.from_batches([self._carried, *carried.to_batches()]))
        self._rows.merge(snapshot.tables.get("rows"), snapshot.facts[UNTIL])

    def rename(self, origin: Origin) -> Output:
        return self._clock.rename(origin)

    def _emit(self, number: int) -> pa.RecordBatch | None:
        return self._advance(one_batch(self._rows.take(number).sort_by(self._time)))

    def _advance(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        raise TypeError(f"{type(self).__name__} does not define `_advance`")


def group_numbers(keys: list[pa.Array], rows: int) -> pa.Array:
    """A number for every distinct key. Null is a key like any other."""
    if not keys:
        return pa.repeat(pa.scalar(0, BIGINT), rows)
    names = [f"k{i}" for i in range(len(keys))]
    table = pa.Table.from_arrays(keys, names=names).append_column("row", pa.arange(0, rows))
    lists = pa.TableGroupBy(table, names, use_threads=False).aggregate([("row", "list")])["row_list"].combine_chunks()
    places, members = pc.list_parent_indices(lists), pc.list_flatten(lists)
    return pc.cast(pc.take(places, pc.sort_indices(members)), BIGINT)
