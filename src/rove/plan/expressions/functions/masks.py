"""Computes an expression on some rows of a batch only.

Law: ANSI SQL raises on a bad row only if that row is needed. So a branch that can raise is computed for just the rows
that reach it. Its results are put back in place, with nulls elsewhere.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.plan.expressions.tree import Datum, Evaluator


def true_count(mask: pa.Array) -> int:
    """How many rows a boolean column without nulls picks."""
    return int(mask.true_count)


def row_numbers(rows: int) -> pa.Array:
    """0, 1, 2, … without a loop in Python."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows)), 1)


def as_array(value: Datum, rows: int) -> pa.Array:
    """A constant as a column. A column is returned as it is."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    return value


def evaluate_where(mask: pa.Array, evaluate: Evaluator, batch: pa.RecordBatch, dtype: pa.DataType) -> pa.Array:
    """The expression on the rows that `mask` (no nulls) picks, null on the others."""
    picked = true_count(mask)
    if picked == batch.num_rows:
        return as_array(evaluate(batch), batch.num_rows)
    if picked == 0:
        return pa.nulls(batch.num_rows, dtype)
    values = as_array(evaluate(batch.filter(mask)), picked)
    # Positions among the picked rows, null elsewhere: one `take` puts values of any type back in place.
    positions = pc.if_else(mask, pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1), None)
    return values.take(positions)


def is_not_false(condition: Datum, rows: int) -> pa.Array:
    """True and null become true: the rows for which an AND still needs its right side."""
    return pc.fill_null(as_array(condition, rows), True)


def is_true(condition: Datum, rows: int) -> pa.Array:
    """False and null become false: the rows that a branch takes."""
    return pc.fill_null(as_array(condition, rows), False)


def both_valid(a: Datum, b: Datum) -> Datum:
    """Where neither operand is null."""
    return pc.and_(pc.is_valid(a), pc.is_valid(b))


def any_true(mask: Datum) -> bool:
    """Whether some row is true."""
    if isinstance(mask, pa.Scalar):
        return bool(mask.as_py())
    return bool(mask.true_count)
