"""Inner join of two streams within a shared event-time window.

Law: window *n*'s matches are batch *n*, ordered by the left row and then the right, each side in its own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.buffered import RowsByPane
from rove.data.operators.logic import NOTHING, Output, late_rows
from rove.data.operators.panes import PaneClock, micros_of
from rove.data.operators.pieces import UNTIL, Piece, first_pane, pieces
from rove.data.operators.window import window_column
from rove.model.batch import Batch, one_batch
from rove.model.errors import PlanError
from rove.model.ids import Origin
from rove.model.schema import BIGINT, TIMESTAMP
from rove.model.state import Snapshot
from rove.plan.expressions.arrow import compile_expression
from rove.plan.operators import Join, column_of, struct_field
from rove.plan.windows import Window

LEFT, RIGHT = 0, 1
_HALF = pa.scalar(32, BIGINT)  # bits


@dataclass(frozen=True, slots=True)
class JoinConfig:
    plan: Join

    def build(self, origin: Origin) -> JoinLogic:
        return JoinLogic(self.plan, origin)


class JoinLogic:
    """Keeps both sides of open windows. A window costs one look-up of keys, then one take a column."""

    def __init__(self, plan: Join, origin: Origin) -> None:
        found = plan.window_key()
        if found is None:
            raise PlanError("the edge joins only within a shared window of event time")
        position, self._window = found
        slide, offset = self._window.slide_us, self._window.offset_us
        self._plan = plan
        # The start of a row's window identifies the window; overlapping windows are one slide apart.
        self._clock = PaneClock(Window(slide, slide, offset), origin)
        sides = ((plan.left, plan.left_keys), (plan.right, plan.right_keys))
        self._windows = tuple(keys[position] for _, keys in sides)
        self._sides = tuple(
            RowsByPane(_without(side.schema, name)) for (side, _), name in zip(sides, self._windows, strict=True)
        )
        self._starts = tuple(
            compile_expression(struct_field(column_of(side.schema, name), "start"), side.schema)
            for (side, _), name in zip(sides, self._windows, strict=True)
        )
        self._keys = tuple([k for i, k in enumerate(keys) if i != position] for _, keys in sides)
        # The optimizer makes the condition a filter after the join; a plan may come without it.
        both = pa.schema([*plan.left.schema, *plan.right.schema]) if not plan.using else plan.schema
        self._condition = compile_expression(plan.condition, both) if plan.condition is not None else None

    def process(self, batch: Batch, side: int = LEFT) -> Output:
        data, header = batch.data, batch.header
        if data is None:
            return NOTHING
        micros = micros_of(self._starts[side](data))
        if micros.null_count:  # a null never matches
            known = pc.is_valid(micros)
            data, micros = data.filter(known), micros.filter(known)
            if not data.num_rows:
                return NOTHING
        rows = data.select(self._sides[side].schema.names)
        split = self._clock.split(micros, (None, None))
        for number, part in split.by_pane(rows):
            self._sides[side].add(number, header.origin, part)
        late = () if split.late is None else (late_rows(header, data, split.late),)
        return Output(late=late, open_until=self._clock.open_until(split.numbers))

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

    def beginning(self) -> Snapshot:
        return Snapshot("join", {**self._clock.facts(), UNTIL: first_pane(self._occupied())})

    def pieces(self) -> Iterator[Piece]:
        left, right = self._sides
        return pieces("join", self._occupied(), lambda n: {"left": left.table([n]), "right": right.table([n])})

    def complete_until(self, pane: int) -> int:
        return self._clock.complete_until(pane)

    def begin(self, snapshot: Snapshot) -> None:
        snapshot.expect("join")
        self._clock.resume(snapshot.facts)
        for side in self._sides:
            side.merge(None, snapshot.facts[UNTIL])

    def merge(self, snapshot: Snapshot) -> None:
        snapshot.expect("join")
        for side, name in zip(self._sides, ("left", "right"), strict=True):
            side.merge(snapshot.tables.get(name), snapshot.facts[UNTIL])

    def rename(self, origin: Origin) -> Output:
        return self._clock.rename(origin)

    def _occupied(self) -> list[int]:
        return sorted({number for side in self._sides for number in side.occupied()})

    def _emit(self, number: int) -> pa.RecordBatch | None:
        left, right = (one_batch(side.take(number)) for side in self._sides)
        if not left.num_rows or not right.num_rows:
            return None
        left_rows, right_rows = matches(
            [left.column(name) for name in self._keys[LEFT]] or [_one_key(left)],
            [right.column(name) for name in self._keys[RIGHT]] or [_one_key(right)],
        )
        columns = []
        for name in self._plan.schema.names:
            if name in self._windows:
                columns.append(self._window_column(number, len(left_rows)))
            elif name in left.schema.names:
                columns.append(left.column(name).take(left_rows))
            else:
                columns.append(right.column(name).take(right_rows))
        pairs = pa.RecordBatch.from_arrays(columns, schema=self._plan.schema)
        return pairs if self._condition is None else pairs.filter(self._condition(pairs))

    def _window_column(self, number: int, rows: int) -> pa.Array:
        end = self._clock.window.start_us(number) + self._window.size_us
        return window_column(self._clock.moment(number), pa.scalar(end, TIMESTAMP), rows)


def matches(left: list[pa.Array], right: list[pa.Array]) -> tuple[pa.Array, pa.Array]:
    """The numbers of the rows whose keys are equal, a pair for each match, by the left row and then the right row.

    The keys of the smaller side become codes, and the rows of the larger side look theirs up. O(rows + matches) for one
    key. Null equals nothing.
    """
    if len(right[0]) <= len(left[0]):
        return _looked_up(left, right)
    right_rows, left_rows = _looked_up(right, left)
    order = pc.sort_indices(left_rows)
    return left_rows.take(order), right_rows.take(order)


def _looked_up(many: list[pa.Array], few: list[pa.Array]) -> tuple[pa.Array, pa.Array]:
    """The matches by the row of `many`, and then the row of `few`."""
    many_codes, few_codes, keys = _codes(many, few)
    if keys == len(few_codes):  # each key is there once, so its code is the number of its row
        rows = pc.indices_nonzero(many_codes.is_valid())
        return rows, many_codes.drop_null()
    order = pc.sort_indices(few_codes).slice(0, len(few_codes) - few_codes.null_count)
    ends = pc.run_end_encode(few_codes.take(order), pa.int32()).run_ends
    lists = pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), order)
    found = lists.take(many_codes)
    return pc.list_parent_indices(found), found.flatten()


def _codes(many: list[pa.Array], few: list[pa.Array]) -> tuple[pa.Array, pa.Array, int]:
    """A number from 0 on for every key of the few rows, the same numbers for the many rows, and how many keys there
    are. Keys that are null, or only in the many rows, have none."""
    many_codes, few_codes, keys = _codes_of(many[0], few[0])
    for many_key, few_key in zip(many[1:], few[1:], strict=True):
        also_many, also_few, _ = _codes_of(many_key, few_key)
        # Codes are 32 bits wide, so two of them fit one number; the pairs get codes again.
        many_codes, few_codes, keys = _codes_of(_pair(many_codes, also_many), _pair(few_codes, also_few))
    return many_codes, few_codes, keys


def _codes_of(many: pa.Array, few: pa.Array) -> tuple[pa.Array, pa.Array, int]:
    keys = few.dictionary_encode()
    return pc.index_in(many, keys.dictionary), keys.indices, len(keys.dictionary)


def _pair(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(a.cast(BIGINT), _HALF), b.cast(BIGINT))


def _one_key(rows: pa.RecordBatch) -> pa.Array:
    """All rows have this key in common, where nothing but the window is asked for."""
    return pa.repeat(pa.scalar(0, BIGINT), rows.num_rows)


def _without(schema: pa.Schema, window: str) -> pa.Schema:
    """What is kept of a side's rows: the window is known by its number, but no row is without columns."""
    return schema if len(schema) == 1 else schema.remove(schema.get_field_index(window))
