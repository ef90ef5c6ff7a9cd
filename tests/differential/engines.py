"""The two engines side by side: the edge's kernels and Spark, asked the same thing about the same rows.

Law: a difference is a value, a type, or an error that one engine raises and the other does not. NaN equals
NaN; the sign of a zero counts; the transcendental functions may differ by the number of ulps their form
allows.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from rove.model.errors import ArithmeticFault, ParseError
from rove.model.schema import VOID, is_spark_only, parse_type, spark_only, type_name
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Expr


@dataclass(frozen=True, slots=True)
class EdgeAnswer:
    """The values on the rows that have one, and which rows raise."""

    values: pa.Array
    kept: list[int]
    raising: list[int]


def ask_edge(expr: Expr, batch: pa.RecordBatch) -> EdgeAnswer:
    """The whole batch at once; row by row only if that raises."""
    evaluate = compile_expression(expr, batch.schema)
    try:
        values = evaluate(batch)
        assert isinstance(values, pa.Array), f"a kernel answered with {type(values)}"
        assert len(values) == batch.num_rows, f"{len(values)} values for {batch.num_rows} rows"
        values.validate(full=True)
        return EdgeAnswer(values, list(range(batch.num_rows)), [])
    except ArithmeticFault:
        pass
    kept, raising, parts = [], [], []
    for row in range(batch.num_rows):
        try:
            parts.append(evaluate(batch.slice(row, 1)))
            kept.append(row)
        except ArithmeticFault:
            raising.append(row)
    assert raising, "the batch raises, but none of its rows does"
    return EdgeAnswer(pa.concat_arrays(parts) if parts else pa.nulls(0, expr.dtype), kept, raising)


def frame_of(spark, batch: pa.RecordBatch):  # type: ignore[no-untyped-def]
    """The rows in Spark; it takes a timestamp without a zone for one with the session's."""
    frame = spark.createDataFrame(pa.table(batch))
    for field in batch.schema:
        if pt.is_timestamp(field.type) and field.type.tz is None:
            frame = frame.withColumn(field.name, frame[field.name].cast("timestamp_ntz"))
    return frame


def ask_spark(spark, batch: pa.RecordBatch, texts: Sequence[str]) -> tuple[list[pa.Array], list[pa.DataType]]:  # type: ignore[no-untyped-def]
    """Spark's columns and their types, or what it raises."""
    frame = frame_of(spark, batch).selectExpr(*(f"{t} AS c{i}" for i, t in enumerate(texts)))
    types = [spark_type(field.dataType.simpleString()) for field in frame.schema]
    table = frame.toArrow()
    return [pa.concat_arrays(c.chunks) if c.num_chunks else pa.nulls(0, c.type) for c in table.columns], types


def spark_type(name: str) -> pa.DataType:
    """Rove's type for a type that Spark names."""
    try:
        return VOID if name == "void" else parse_type(name)
    except ParseError:
        return spark_only(name)  # `interval hour`, or an array of it


def spark_raises(spark, batch: pa.RecordBatch, text: str) -> bool:  # type: ignore[no-untyped-def]
    """Whether Spark raises on these rows. Small relations are computed by the optimizer, which is quick to
    ask."""
    try:
        frame = frame_of(spark, batch).selectExpr(f"{text} AS c")
        frame._jdf.queryExecution().optimizedPlan()
        frame.toArrow()
    except Exception:
        return True
    return False


@dataclass(frozen=True, slots=True)
class Question:
    """One expression to ask both engines about."""

    text: str
    expr: Expr
    ulps: int = 0


def differences(spark, asked: Sequence[Question], batch: pa.RecordBatch, raising_rows: int = 3) -> list[str]:  # type: ignore[no-untyped-def]
    """What the engines say differently about these rows; empty if nothing.

    All questions go to Spark in one select. A row that raises at the edge is kept from Spark by a lazy CASE;
    some such rows are then asked about one by one, for Spark must raise as well.
    """
    answers = [ask_edge(q.expr, batch) for q in asked]
    found: list[str] = []
    kept = {
        f"kept{i}": pa.array([row not in set(answer.raising) for row in range(batch.num_rows)])
        for i, answer in enumerate(answers)
        if answer.raising
    }
    rows = pa.record_batch([*batch.columns, *kept.values()], names=[*batch.schema.names, *kept])
    texts = [f"CASE WHEN kept{i} THEN {q.text} END" if f"kept{i}" in kept else q.text for i, q in enumerate(asked)]
    try:
        columns, types = ask_spark(spark, rows, texts)
    except Exception as error:
        if len(asked) > 1:
            return [line for q in asked for line in differences(spark, [q], batch, raising_rows)]
        where = _culprit(spark, rows, texts[0])
        return [f"`{asked[0].text}`: Spark raises where the edge does not: {where} {_line(error)}"]
    for question, answer, column, dtype in zip(asked, answers, columns, types, strict=True):
        if answer.raising:
            column = column.take(pa.array(answer.kept, pa.int64()))
        some = batch.take(pa.array(answer.kept, pa.int64())) if answer.raising else batch
        wrong = column_differences(answer.values, column, question.expr.dtype, dtype, some, question.ulps)
        found += [f"`{question.text}`: {line}" for line in wrong]
        step = max(1, len(answer.raising) // max(1, raising_rows))
        for row in answer.raising[::step][:raising_rows]:
            one = batch.slice(row, 1)
            if not spark_raises(spark, one, question.text):
                found.append(f"`{question.text}`: the edge raises, Spark does not: {show(one, 0)}")
    return found


def column_differences(
    edge: pa.Array,
    spark: pa.Array,
    edge_type: pa.DataType,
    spark_type: pa.DataType,
    rows: pa.RecordBatch,
    ulps: int,
) -> list[str]:
    """The rows on which two columns differ, at most five."""
    if not same_type(edge_type, spark_type) or edge.type != edge_type:
        return [f"type: edge {type_name(edge_type)} (column {edge.type}), Spark {type_name(spark_type)}"]
    left, right = comparable(edge), comparable(spark.cast(edge_type))
    wrong = [i for i, (x, y) in enumerate(zip(left, right, strict=True)) if not same(x, y, ulps)]
    return [f"{show(rows, i)}: edge {left[i]!r}, Spark {right[i]!r}" for i in wrong[:5]]


def same_type(a: pa.DataType, b: pa.DataType) -> bool:
    return is_spark_only(a) or type_name(a) == type_name(b)


def comparable(column: pa.Array) -> list[object]:
    """Python values; moments and days as integers, since Python's calendar ends at the year 9999."""
    if pt.is_timestamp(column.type) or pt.is_duration(column.type):
        return column.cast(pa.int64()).to_pylist()
    if pt.is_date(column.type):
        return column.cast(pa.int32()).to_pylist()
    if pt.is_float32(column.type):
        return [None if x is None else _Single(x) for x in column.to_pylist()]
    return column.to_pylist()


class _Single(float):
    """A float of 32 bits, for counting ulps."""


def same(x: object, y: object, ulps: int) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        if math.isnan(x) or math.isnan(y):
            return math.isnan(x) and math.isnan(y)
        return (x == y and math.copysign(1, x) == math.copysign(1, y)) or _ulps_apart(x, y) <= ulps
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(same(a, b, ulps) for a, b in zip(x, y, strict=True))
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(same(x[k], y[k], ulps) for k in x)
    return type(x) is type(y) and x == y


def _ulps_apart(x: float, y: float) -> int:
    code, lowest = ("f", 1 << 31) if isinstance(x, _Single) else ("d", 1 << 63)
    a, b = (int.from_bytes(struct.pack(f">{code}", v), "big") for v in (x, y))
    a, b = (lowest - v if v >= lowest else v for v in (a, b))
    if a == b:
        return 1  # zeros of either sign
    return abs(a - b)


def show(rows: pa.RecordBatch, row: int) -> str:
    """One row as text, in values that any year fits."""
    return ", ".join(f"{name}={comparable(rows.column(name).slice(row, 1))[0]!r}" for name in rows.schema.names)


def _culprit(spark, rows: pa.RecordBatch, text: str) -> str:  # type: ignore[no-untyped-def]
    for row in range(rows.num_rows):
        if spark_raises(spark, rows.slice(row, 1), text):
            return f"{show(rows, row)};"
    return "(no single row)"


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:160]
