"""The two forms of a pane."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.data.operators.aggregate_states import States
from rove.data.operators.pane_forms import NumbersForm, PaneForm, RowsForm, form_of
from rove.data.operators.pane_split import PaneSplit
from rove.data.operators.panes import PaneClock
from rove.model.errors import ArithmeticFault
from rove.model.ids import Origin
from rove.model.schema import parse_schema
from rove.plan.aggregates import aggregate
from rove.plan.expressions.bind import bind
from rove.plan.windows import Window

SCHEMA = parse_schema("value double, amount bigint, key string")
VALUES = st.none() | st.floats(allow_subnormal=True) | st.sampled_from([0.1, 0.2, 1e17, -1e17, 0.0, -0.0])
ROWS = st.lists(st.tuples(VALUES, st.none() | st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=12)
PANE = st.lists(ROWS, min_size=1, max_size=3)


def states(*calls: tuple[str, str]) -> States:
    return States((), tuple(aggregate(f, bind(c, SCHEMA), f"{f}_{c}") for f, c in calls), SCHEMA)


ONE_PANE = PaneSplit(numbers=[0])
SUMS = states(("sum", "value"), ("avg", "value"), ("sum", "amount"), ("count", "value"))


def batch(rows: list[tuple[float | None, int | None]]) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=False)]
    return pa.record_batch([*columns, pa.nulls(len(rows), pa.string())], schema=SCHEMA)


def complete(form: PaneForm[Any], batches: list[pa.RecordBatch]) -> Any:
    """A pane that one origin filled, and that went through a snapshot after its first batch."""
    pane = form.open()
    for rows in batches[:1]:
        pane.add(*form.lift(rows, ONE_PANE))
    restored = form.open()
    for level, part in pane.labelled():
        restored.put(level, part)
    for rows in batches[1:]:
        restored.add(*form.lift(rows, ONE_PANE))
    return form.complete([restored])


def bits(columns: list[pa.Array]) -> list[object]:
    """Values that are equal only if all their bits are; any NaN is like any other."""
    values = [column[0].as_py() for column in columns]
    return [struct.pack("d", v) if isinstance(v, float) and v == v else repr(v) for v in values]


def results(form: PaneForm[Any], pane: Any) -> list[object]:
    """What comes of a pane, bit by bit; nothing if a sum does not fit its type."""
    try:
        return bits(form.results(pane))
    except ArithmeticFault:
        return []


@given(PANE, PANE)
def test_numbers_and_rows_give_the_same_bits(
    first: list[list[tuple[float | None, int | None]]], second: list[list[tuple[float | None, int | None]]]
) -> None:
    panes = [[batch(part) for part in pane] for pane in (first, second)]
    numbers, rows = NumbersForm(SUMS), RowsForm(SUMS)
    merged = numbers.merge(*(complete(numbers, pane) for pane in panes))
    as_rows = rows.merge(*(complete(rows, pane) for pane in panes))
    assert results(numbers, merged) == results(rows, as_rows)
    assert numbers.rows(merged).schema == as_rows.schema
    assert results(rows, numbers.rows(merged)) == results(numbers, numbers.read(as_rows)) == results(rows, as_rows)


@given(ROWS, st.data())
def test_a_batch_is_lifted_by_pane_as_its_parts_would_be(
    rows: list[tuple[float | None, int | None]], data: st.DataObject
) -> None:
    """Numbers of the last pane may be what the others leave of the whole sum."""
    panes = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    clock = PaneClock(Window(10, 10), Origin("a", "b"))
    split = clock.split(pa.array([10 * pane for pane in panes], pa.int64()), (None, None))
    assert split.numbers == sorted({clock.pane_of(10 * pane) for pane in panes})
    together = NumbersForm(SUMS).lift(batch(rows), split)
    for number, found in zip(sorted(set(panes)), together, strict=True):
        (apart,) = NumbersForm(SUMS).lift(batch([r for r, p in zip(rows, panes, strict=True) if p == number]), ONE_PANE)
        assert results(NumbersForm(SUMS), found) == results(NumbersForm(SUMS), apart)


def test_a_sum_that_does_not_fit_a_bigint_is_a_fault_in_both_forms() -> None:
    for form in (NumbersForm(SUMS), RowsForm(SUMS)):
        for value in (2**62, -(2**62) - 1):
            pane = complete(form, [batch([(0.0, value), (0.0, value)])])
            with pytest.raises(ArithmeticFault, match="overflow"):
                form.results(pane)
        most = complete(form, [batch([(0.0, 2**62), (0.0, 2**62 - 1), (0.0, 2**63 - 1), (0.0, -(2**63) + 1)])])
        assert form.results(most)[2].to_pylist() == [2**63 - 1]


def test_numbers_are_for_sums_without_keys_in_windows_of_several_panes() -> None:
    assert isinstance(form_of(SUMS, 2), NumbersForm)
    assert isinstance(form_of(SUMS, 1), RowsForm)
    for others in (states(("max", "amount")), states(("stddev", "value")), states(("sum", "value"), ("min", "key"))):
        assert isinstance(form_of(others, 2), RowsForm)
    keyed = States((("key", bind("key", SCHEMA)),), SUMS.aggregates, SCHEMA)
    assert isinstance(form_of(keyed, 2), RowsForm)
