"""The states of a window without keys whose aggregates are sums: plain numbers instead of rows.

Law: numbers have the columns of states, so both can be exchanged at any time, and they give the same results: Python
adds integers and doubles as Arrow does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.aggregate_states import SKIP_NULLS, States
from rove.data.operators.pane_split import PaneSplit
from rove.model.errors import ArithmeticFault
from rove.model.schema import BIGINT
from rove.plan.aggregates import AggregateCall
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Expr

Numbers: TypeAlias = tuple[int | float | None, ...]
_SUM = pc.get_function("sum")
_MIN_MAX = pc.get_function("min_max")
_HALF_BITS = 32
_HALF_MASK = 2**_HALF_BITS - 1
_BIGINT_MAX = 2**63 - 1


class NumbersForm:
    """A number a state: to add two numbers costs less than to call a kernel, and no row is kept."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._sums = [_sum_of(call, None if states.lifted else states.input_schema) for call in states.aggregates]
        widths = [len(call.states) for call in states.aggregates]
        self._places = [slice(sum(widths[:n]), sum(widths[: n + 1])) for n in range(len(widths))]

    def lift(self, rows: pa.RecordBatch, split: PaneSplit) -> list[Numbers]:
        if self._states.lifted:
            return self.states_of(self._states.lift(rows), split)
        return _across([column for each in self._sums for column in each.of(rows, split)])

    def states_of(self, states: pa.RecordBatch, split: PaneSplit) -> list[Numbers]:
        return _across([_totals(column, split) for column in states.columns])

    def open(self) -> Sums:
        return Sums(self)

    def complete(self, panes: Sequence[Sums]) -> Numbers:
        return reduce(self.merge, [pane.numbers for pane in panes])

    def merge(self, a: Numbers, b: Numbers) -> Numbers:
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))

    def rows(self, pane: Numbers) -> pa.RecordBatch:
        schema = self._states.schema
        columns = [_one_row(number, field.type) for number, field in zip(pane, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def read(self, rows: pa.RecordBatch) -> Numbers:
        return tuple(column[0].as_py() for column in rows.columns)

    def results(self, pane: Numbers) -> list[pa.Array]:
        return [each.result(pane[place]) for each, place in zip(self._sums, self._places, strict=True)]


class Sums:
    """The sums of one pane from one origin. They depend on the origin's own batches and their order only."""

    __slots__ = ("_form", "numbers")

    def __init__(self, form: NumbersForm) -> None:
        self._form = form
        self.numbers: Numbers = ()

    def add(self, part: Numbers) -> None:
        self.numbers = self._form.merge(self.numbers, part) if self.numbers else part

    def labelled(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        yield 0, self._form.rows(self.numbers)

    def put(self, level: int, part: pa.RecordBatch) -> None:
        self.add(self._form.read(part))


class _LiftedSum:
    """Any aggregate whose states are sums: its own lifts, of rows with a schema, and its own finish. For each state it
    gives the sums by pane."""

    def __init__(self, call: AggregateCall, schema: pa.Schema | None) -> None:
        self._lifts = [] if schema is None else [compile_expression(state.lift, schema) for state in call.states]
        self._schema = call.state_schema
        self._finish = compile_expression(call.finish_expression(), self._schema)

    def of(self, rows: pa.RecordBatch, split: PaneSplit) -> list[Numbers]:
        return [_totals(lift(rows), split) for lift in self._lifts]

    def result(self, numbers: Numbers) -> pa.Array:
        columns = [_one_row(number, field.type) for number, field in zip(numbers, self._schema, strict=True)]
        return self._finish(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class _WholeSum:
    """A sum of bigints. Its state is two halves, because Arrow's sums wrap around. A Python integer does not, so the
    halves are summed apart only where Arrow's sum of the whole numbers could wrap around."""

    def __init__(self, call: AggregateCall, argument: Expr, schema: pa.Schema) -> None:
        self._text = call.text
        self._argument = compile_expression(argument, schema)
        self._halves = _LiftedSum(call, schema)

    def of(self, rows: pa.RecordBatch, split: PaneSplit) -> list[Numbers]:
        values = self._argument(rows)
        extremes = _MIN_MAX.call([values], SKIP_NULLS)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low is not None and max(-low, high) * len(values) > _BIGINT_MAX:
            return self._halves.of(rows, split)
        totals = _totals(values, split)
        highs = tuple(None if total is None else total >> _HALF_BITS for total in totals)
        return [highs, tuple(None if total is None else total & _HALF_MASK for total in totals)]

    def result(self, numbers: Numbers) -> pa.Array:
        high, low = numbers
        if high is None or low is None:
            return _one_row(None, BIGINT)
        total = (int(high) << _HALF_BITS) + int(low)
        if not -_BIGINT_MAX - 1 <= total <= _BIGINT_MAX:
            raise ArithmeticFault(f"overflow in `{self._text}`")
        return _one_row(total, BIGINT)


def _sum_of(call: AggregateCall, schema: pa.Schema | None) -> _LiftedSum | _WholeSum:
    """How an aggregate is computed of rows with a schema. Without one, its input is states."""
    if schema is not None and call.function == "sum" and call.argument is not None and call.argument.dtype == BIGINT:
        return _WholeSum(call, call.argument, schema)
    return _LiftedSum(call, schema)


def _totals(column: pa.Array, split: PaneSplit) -> tuple[Any, ...]:
    """The sum of each pane, None where it has no value. Sums of whole numbers are exact, so the last pane has what the
    others leave of the sum of all rows, and its rows are not copied."""
    if column.type == BIGINT and not column.null_count:
        earlier = [_total(part) for part in split.of(column, but_last=True)]
        return (*earlier, _total(split.in_time(column)) - sum(earlier)) if split.numbers else ()
    return tuple(_total(part) for part in split.of(column))


def _total(column: pa.Array) -> Any:
    return _SUM.call([column], SKIP_NULLS).as_py()


def _across(columns: list[Numbers]) -> list[Numbers]:
    """The numbers of each pane, from the sums of each state."""
    return list(zip(*columns, strict=True))


def _one_row(number: int | float | None, dtype: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(number, dtype), 1)
