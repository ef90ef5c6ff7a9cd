"""The two forms of a complete pane."""

from __future__ import annotations

import struct

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rove.data.operators.complete_panes import NumbersForm, RowsForm, form_of
from rove.data.operators.states import States
from rove.model.schema import parse_schema
from rove.plan.aggregates import aggregate
from rove.plan.expressions.bind import bind

SCHEMA = parse_schema("value double, amount bigint, key string")
VALUES = st.none() | st.floats(allow_subnormal=True) | st.sampled_from([0.1, 0.2, 1e17, -1e17, 0.0, -0.0])
ROWS = st.lists(st.tuples(VALUES, st.none() | st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=12)
PANE = st.lists(ROWS, min_size=1, max_size=3)


def states(*calls: tuple[str, str]) -> States:
    return States((), tuple(aggregate(f, bind(c, SCHEMA), f"{f}_{c}") for f, c in calls), SCHEMA)


SUMS = states(("sum", "value"), ("avg", "value"), ("sum", "amount"), ("count", "value"))


def lifted(rows: list[tuple[float | None, int | None]]) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=False)]
    return SUMS.lift(pa.record_batch([*columns, pa.nulls(len(rows), pa.string())], schema=SCHEMA))


def bits(rows: pa.RecordBatch) -> list[object]:
    """Values that are equal only if all their bits are; any NaN is like any other."""
    values = [column[0].as_py() for column in rows.columns]
    return [struct.pack("d", v) if isinstance(v, float) and v == v else repr(v) for v in values]


@given(PANE, PANE)
def test_numbers_and_rows_give_the_same_bits(
    first: list[list[tuple[float | None, int | None]]], second: list[list[tuple[float | None, int | None]]]
) -> None:
    panes = [[lifted(part) for part in pane] for pane in (first, second)]
    numbers, rows = NumbersForm(SUMS), RowsForm(SUMS)
    as_numbers = numbers.rows(numbers.merge(*(numbers.fold(pane) for pane in panes)))
    as_rows = rows.rows(rows.merge(*(rows.fold(pane) for pane in panes)))
    assert as_numbers.schema == as_rows.schema
    assert bits(as_numbers) == bits(as_rows)
    assert bits(numbers.rows(numbers.read(as_numbers))) == bits(as_numbers)


def test_numbers_are_for_sums_without_keys_in_windows_of_several_panes() -> None:
    assert isinstance(form_of(SUMS, 2), NumbersForm)
    assert isinstance(form_of(SUMS, 1), RowsForm)
    for others in (states(("max", "amount")), states(("stddev", "value")), states(("sum", "value"), ("min", "key"))):
        assert isinstance(form_of(others, 2), RowsForm)
    keyed = States((("key", bind("key", SCHEMA)),), SUMS.aggregates, SCHEMA)
    assert isinstance(form_of(keyed, 2), RowsForm)
