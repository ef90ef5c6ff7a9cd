"""Inner join of two streams within a shared event-time window.

Law: window *n*'s matches are batch *n*, ordered by the left row and then the right, each side in its own order.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.buffered import RowsByPane
from rove.data.operators.logic import NOTHING, Output, late_rows
from rove.data.operators.panes import PaneClock
from rove.model.batch import Batch, one_batch
from rove.model.errors import PlanError
from rove.model.ids import Origin
from rove.model.schema import BIGINT
from rove.model.state import Snapshot
from rove.plan.expressions.arrow import compile_expression
from rove.plan.operators import Join, column_of, struct_field
from rove.plan.windows import Window

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class JoinConfig:
    plan: Join

    def build(self, origin: Origin) -> JoinLogic:
        return JoinLogic(self.plan, origin)


class JoinLogic:
    """Keeps both sides of open windows. Each window costs one hash join on keys, then one `take` for each column."""

    def __init__(self, plan: Join, origin: Origin) -> None:
        found = plan.window_key()
        if found is None:
            raise PlanError("the edge joins only within a shared window of event time")
        position, window = found
        self._plan = plan
        # The start of a row's window identifies the window; overlapping windows are one slide apart.
        self._clock = PaneClock(Window(window.slide_us, window.slide_us, window.offset_us), origin)
        self._sides = (RowsByPane(plan.left.schema), RowsByPane(plan.right.schema))
        self._starts = tuple(
            compile_expression(struct_field(column_of(side.schema, keys[position]), "start"), side.schema)
            for side, keys in ((plan.left, plan.left_keys), (plan.right, plan.right_keys))
        )
        self._keys = tuple(
            [k for i, k in enumerate(keys) if i != position] for keys in (plan.left_keys, plan.right_keys)
        )
        both = pa.schema([*plan.left.schema, *plan.right.schema]) if not plan.using else plan.schema
        self._condition = compile_expression(plan.condition, both) if plan.condition is not None else None

    def process(self, batch: Batch, side: int = LEFT) -> Output:
        data, header = batch.data, batch.header
        if data is None:
            return NOTHING
        micros = self._starts[side](data).cast(BIGINT)
        if micros.null_count:  # a null never matches
            known = pc.is_valid(micros)
            data, micros = data.filter(known), micros.filter(known)
            if not data.num_rows:
                return NOTHING
        panes, late = self._clock.split(data, micros, (None, None))
        for number, rows in panes:
            self._sides[side].add(number, header.origin, rows)
        return NOTHING if late is None else Output(late=(late_rows(header, data, late),))

    def watermark(self, time_us: int) -> Output:
        return self._clock.close(time_us, self._occupied, self._emit)

    def snapshot(self) -> Snapshot:
        left, right = self._sides
        return Snapshot("join", self._clock.facts(), {"left": left.table(), "right": right.table()})

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("join")
        self._clock.resume(snapshot.facts)
        for side, name in zip(self._sides, ("left", "right"), strict=True):
            side.load(snapshot.tables[name])

    def _occupied(self) -> list[int]:
        return sorted({number for side in self._sides for number in side.occupied()})

    def _emit(self, number: int) -> pa.RecordBatch | None:
        left, right = (side.take(number) for side in self._sides)
        if not left.num_rows or not right.num_rows:
            return None
        matches = self._matches(left, right)
        left, right = left.take(matches["left"]), right.take(matches["right"])
        names = self._plan.schema.names
        columns = {name: left[name] for name in left.column_names} | {
            name: right[name] for name in right.column_names if not self._plan.using or name not in left.column_names
        }
        joined = one_batch(pa.Table.from_arrays([columns[n] for n in names], schema=self._plan.schema))
        return joined if self._condition is None else joined.filter(self._condition(joined))

    def _matches(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """The pairs of row numbers that match, in order. Only keys are hashed, so other columns may be nested."""
        keys = [f"k{i}" for i in range(len(self._keys[LEFT]))]
        sides = []
        for table, names, label in ((left, self._keys[LEFT], "left"), (right, self._keys[RIGHT], "right")):
            columns = [table[n] for n in names] if names else [pa.repeat(pa.scalar(0), table.num_rows)]
            numbers = pa.arange(0, table.num_rows)
            sides.append(pa.Table.from_arrays([*columns, numbers], names=[*(keys or ["k0"]), label]))
        found = sides[0].join(sides[1], keys or ["k0"], join_type="inner", use_threads=False)
        return found.sort_by([("left", "ascending"), ("right", "ascending")])
