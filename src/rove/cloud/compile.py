"""Compiles the upper part of a plan to a PySpark DataFrame, with expressions as SQL text.

Law: the DataFrame computes exactly the plan. With the cut right behind the sources it is the oracle that tests compare
every other cut with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rove.data.operators.map import name_of
from rove.model.clock import duration_text
from rove.model.errors import RAISED_BY_USERS, DataError, EdgeRefusal, PlanError, SchemaMismatch, UdfError
from rove.model.names import quoted
from rove.model.schema import WINDOW, schema_text, type_name
from rove.plan.aggregates import AggregateCall, StateColumn, state_name
from rove.plan.expressions.tree import sql
from rove.plan.operators import (
    BY_NAME,
    INLINE,
    VIEW,
    Aggregate,
    At,
    Deduplicate,
    Filter,
    InSpark,
    Join,
    Map,
    Operator,
    Project,
    Received,
    Source,
    SparkAggregate,
    SparkSelect,
    Table,
    Union,
    Watermark,
)
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.plan.shown import Shown, repeated

# Formats whose files are read with the plan's columns. Other formats know their own columns.
TOLD_THEIR_COLUMNS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")


def compile_plan(plan: Operator, frames: Mapping[str, Any]) -> Any:
    """A DataFrame for the plan. `frames` holds the DataFrames of its sources by name. What Spark refuses is a
    `PlanError` in Spark's words."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    def build(operator: Operator) -> Any:
        match operator:
            case Source(stream=stream):
                return frames[stream]
            case Received(stream=stream):
                return _received(operator, frames[stream])
            case Table():
                return _table(operator, next(iter(frames.values())).sparkSession)
            case Filter(input=below, condition=condition):
                return build(below).where(F.expr(sql(condition)))
            case Project(input=below, columns=columns):
                return build(below).select(*(F.expr(sql(e)).alias(name) for name, e in columns))
            case Watermark(input=below, column=column, delay_us=delay):
                return build(below).withWatermark(column, duration_text(delay) if delay else "0 seconds")
            case Union(members=members):
                first, *rest = (build(m) for m in members)
                for other in rest:
                    first = first.union(other)
                return first
            case At(input=below):
                return build(below)
            case Map(input=below, function=function, columns=columns):
                return build(below).mapInArrow(function, schema_text(columns))
            case Deduplicate(input=below, columns=columns, within_watermark=within):
                frame = build(below)
                named = list(columns) or None
                return frame.dropDuplicatesWithinWatermark(named) if within else frame.dropDuplicates(named)
            case InSpark(input=below, function=function):
                return _applied(function, build(below))
            case Shown(input=below, columns=columns):
                return build(below).select(*(_named(F.col(quoted(c)), c, name) for name, c in columns))
            case SparkAggregate(input=below, groups=groups, aggregates=aggregates):
                grouped = build(below).groupBy(*(F.expr(sql(e)).alias(name) for name, e in groups))
                return grouped.agg(*(F.expr(a.text).alias(a.name) for a in aggregates))
            case SparkSelect(members=members, text=text, columns=columns):
                made = _select(text, [build(m) for m in members])
                return made if repeated(made.columns) is None else made.toDF(*columns.names)
            case Join():
                return _join(operator, build(operator.left), build(operator.right))
            case Aggregate(mode="final"):
                return _final(operator, build(operator.input))
            case Aggregate(mode="whole"):
                frame = build(operator.input).groupBy(*_groups(operator))
                return frame.agg(*(F.expr(a.text).alias(a.name) for a in operator.aggregates))
        raise EdgeRefusal(f"{type(operator).__name__} runs at the edge only; Spark has no such step")

    try:
        return build(merge_aggregates(plan))
    except AnalysisException as error:
        raise PlanError(f"Spark refuses this query: {refusal(error)}") from error
    except Py4JJavaError as error:  # a fault in Spark itself
        raise PlanError(f"Spark fails to read this query: {refusal(error.java_exception.toString())}") from error


def _applied(function: Callable[[Any], Any], frame: Any) -> Any:
    """What a function of `inSpark` makes of a DataFrame. Its faults are a `UdfError`; what Spark refuses is Spark's."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    what = f"the function `{name_of(function)}` of inSpark"
    try:
        made = function(frame)
    except (PySparkException, Py4JJavaError):
        raise
    except RAISED_BY_USERS as error:
        raise UdfError(f"{what} raised {type(error).__name__}: {error}") from error
    if not isinstance(made, DataFrame):
        raise UdfError(f"{what} returned {type(made).__name__}; it has to return a DataFrame")
    return made


def collected(frame: Any) -> pa.Table:
    """All rows of a DataFrame. What Spark cannot compute is an error of ours, in Spark's words."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return frame.toArrow()
    except PySparkException as error:
        raise DataError(f"Spark cannot compute this: {refusal(error)}") from None
    except Py4JJavaError as error:  # PySpark does not know it; its own text is a stack of Java
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise DataError(f"Spark cannot compute this: {refusal(cause.getMessage() or cause.toString())}") from None


def refusal(error: Exception | str) -> str:
    """Spark's reason to refuse a query, in one line, without its numbers and links."""
    said = str(error).strip().splitlines()[0]
    return re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE: .*$|(?<=\w)#\d+L?", "", said)


def _named(column: Any, own: str, name: str) -> Any:
    """A column under a name. Under its own name it stays the same column to Spark."""
    return column if own == name else column.alias(name)


def _received(received: Received, frame: Any) -> Any:
    """A received stream. Window columns get the metadata back by which Spark recognizes them."""
    from pyspark.sql import functions as F

    if frame.columns != received.columns.names:  # another part of the plan reads more columns
        frame = frame.select(*map(quoted, received.columns.names))
    marked: dict[str, Any] = {}
    for name in (f.name for f in received.columns if f.type == WINDOW):
        mark: dict[str, Any] = {"spark.timeWindow": True}
        if frame.isStreaming and name in dict(
            received.traits.windows
        ):  # a window of event time closes with the watermark
            mark["spark.watermarkDelayMs"] = received.traits.delay_us // 1_000
        marked[name] = F.col(quoted(name)).alias(name, metadata=mark)
    return frame.withColumns(marked) if marked else frame


def _table(table: Table, spark: Any) -> Any:
    """Open a table. Its columns must have the types that the plan was made for."""
    from pyspark.sql.types import DataType

    if table.format == INLINE:
        return spark.sql(f"SELECT * FROM {table.path} AS v({', '.join(map(quoted, table.columns.names))})")
    reader = spark.read.options(**dict(table.options))
    if table.format in TOLD_THEIR_COLUMNS:
        reader = reader.schema(schema_text(table.columns))
    found = (
        reader.table(table.path) if table.format == BY_NAME else reader.format(table.format).load(table.path or None)
    )
    found = found.select(*map(quoted, table.columns.names))
    for there, asked in zip(found.schema, table.columns, strict=True):
        kind, wanted = there.dataType.simpleString(), DataType.fromDDL(type_name(asked.type)).simpleString()
        if kind != wanted:
            raise SchemaMismatch(
                f"column `{asked.name}` of table `{table.path}` is {kind}, but the query was written for {wanted}; "
                "correct read.schema(…) and submit the query again"
            )
    return found


def _groups(operator: Aggregate) -> list[Any]:
    from pyspark.sql import functions as F

    keys = [F.expr(sql(e)).alias(name) for name, e in operator.keys]
    if (column := operator.window_column) is not None:
        return [F.col(quoted(column)).alias(operator.window_name), *keys]
    window = operator.window
    spans = [duration_text(window.size_us), duration_text(window.slide_us)]
    if window.offset_us:
        spans.append(duration_text(window.offset_us))
    return [F.window(F.expr(sql(operator.time)), *spans).alias(operator.window_name), *keys]


def _select(text: str, frames: list[Any]) -> Any:
    """A SELECT over views that exist only while Spark reads its text."""
    spark, views = frames[0].sparkSession, [f"{VIEW}{n}" for n in range(len(frames))]
    try:
        for view, frame in zip(views, frames, strict=True):
            frame.createOrReplaceTempView(view)
        return spark.sql(text)
    finally:
        for view in views:
            spark.catalog.dropTempView(view)


def _join(operator: Join, left: Any, right: Any) -> Any:
    from pyspark.sql import functions as F

    if operator.using:
        return left.join(right, list(operator.left_keys), operator.how)
    pairs = zip(operator.left_keys, operator.right_keys, strict=True)
    conditions = [left[quoted(a)] == right[quoted(b)] for a, b in pairs]
    if operator.condition is not None:
        conditions.append(F.expr(sql(operator.condition)))
    if not conditions:
        conditions = [F.lit(True)]
    return left.join(right, conditions, operator.how)


def _final(operator: Aggregate, frame: Any) -> Any:
    """Merge the edge's partial states, then finish them with the same SQL text that the edge would use."""
    from pyspark.sql import functions as F

    merged = [F.expr(text).alias(name) for a in operator.aggregates for name, text in _merges(a)]
    grouped = frame.groupBy(*_groups(operator)).agg(*merged)
    unpacked = {
        state.name: F.col(quoted(_moments_name(a)))[state.name.rpartition("__")[2]]
        for a in operator.aggregates
        for state in a.states
        if state.merge == "moments"
    }
    grouped = grouped.withColumns(unpacked) if unpacked else grouped
    kept = [F.col(quoted(operator.window_name)), *(F.col(quoted(name)) for name, _ in operator.keys)]
    return grouped.select(*kept, *(F.expr(a.finish).alias(a.name) for a in operator.aggregates))


def _moments_name(call: AggregateCall) -> str:
    return state_name(call.name, "moments")


def _merges(call: AggregateCall) -> list[tuple[str, str]]:
    """The name and the merging SQL text of each state column of one aggregate."""
    first = call.states[0]
    if first.merge == "moments":
        return [(_moments_name(call), _moments(call.states))]
    if first.merge == "distinct":
        return [(first.name, call.text_over(quoted(first.name)))]
    # Spark widens a sum of decimals once more than the edge; the type of the state is wide enough.
    return [(s.name, f"CAST({s.merge}({quoted(s.name)}) AS {type_name(s.dtype)})") for s in call.states]


def _moments(states: tuple[StateColumn, ...]) -> str:
    """Merge counts, means and squared distances pair by pair, in one fixed order. Empty parts change nothing."""
    n, mean, m2 = (quoted(s.name) for s in states)
    zero = "named_struct('n', 0D, 'mean', 0D, 'm2', 0D)"
    rows = f"array_sort(collect_list(named_struct('n', {n}, 'mean', {mean}, 'm2', {m2})))"
    both = (
        "named_struct('n', a.n + b.n, 'mean', a.mean + (b.mean - a.mean) * (b.n / (a.n + b.n)), "
        "'m2', a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * a.n * (b.n / (a.n + b.n)))"
    )
    return f"aggregate({rows}, {zero}, (a, b) -> CASE WHEN a.n = 0D THEN b WHEN b.n = 0D THEN a ELSE {both} END)"
