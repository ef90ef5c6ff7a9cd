"""A stream and its verbs: PySpark's names and argument shapes over a Rove plan.

Law: a Stream is a plan and its session, nothing more. Every verb returns a new Stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rove.api.arguments import checks_arguments
from rove.api.column import Column, bracketed, path
from rove.api.verbs.grouped import CountedStream, GroupedStream
from rove.api.verbs.items import (
    INPUT,
    OTHER,
    calls_of,
    checked_column,
    column_item,
    flat,
    key_names,
    listed_item,
    subset_names,
)
from rove.api.verbs.replacing import Replacing
from rove.api.verbs.schema_tree import Printed
from rove.model.clock import parse_duration
from rove.model.errors import ExpressionError, NoSuchVerb, PlanError
from rove.model.ids import checked_name
from rove.model.names import marked, quoted, unmarked
from rove.model.schema import parse_schema, schema_text, type_name
from rove.plan import build
from rove.plan.build import Item
from rove.plan.explain import explain
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import At, Deduplicate, Filter, InSpark, Map, Operator, Scan, Watermark, column_of
from rove.plan.shown import Shown, below_names
from rove.plan.spark.streaming import REFUSED_VERBS
from rove.plan.sql.in_spark.left_to_spark import makes_rows
from rove.plan.sql.query import translate
from rove.plan.verbs import nulls
from rove.plan.verbs.owners import NOBODY, Owners, passed
from rove.plan.verbs.unpivot import unpivoted

if TYPE_CHECKING:
    from rove.api.session import Session
    from rove.api.writer import StreamWriter

EVERY = "1 second"
Fill = bool | int | float | str
_NUMBERS = count(1)  # of streams


@checks_arguments
class Stream(Replacing, Printed):
    """An unbounded table. Get one from `Session.stream`, then chain verbs as on a PySpark DataFrame."""

    def __init__(self, session: Session, plan: Operator, name: str = "", owners: Owners = NOBODY) -> None:
        self._session, self._plan, self._name, self._number = session, plan, name, next(_NUMBERS)
        self._owners = {**owners, self._number: frozenset(plan.schema.names)}

    @property
    def plan(self) -> Operator:
        """The plan of this stream."""
        return self._plan

    @property
    def session(self) -> Session:
        """The session this stream belongs to."""
        return self._session

    @property
    def schema(self) -> pa.Schema:
        """The columns, as an Arrow schema."""
        return self.plan.schema

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Names with Spark's type names."""
        return [(f.name, type_name(f.type)) for f in self.schema]

    def alias(self, alias: str) -> Stream:
        """The stream under a name, by which a join can tell its columns: `F.col("alias.column")`."""
        return Stream(self._session, self._rows(), alias, self._owners)

    def __repr__(self) -> str:
        return f"Stream[{schema_text(self.schema)}]"

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str):
            return bracketed(self, name)
        build.selected(self._rows(), [column_item(Column(path(name)), None)])  # refuse an unknown name here, not later
        return self._own(name) if name in self.columns else Column(path(name))

    def __getattr__(self, name: str) -> Column:
        if not name.startswith("_") and name in self.columns:
            return self._own(name)
        if why := REFUSED_VERBS.get(name):
            raise NoSuchVerb(f"{name}(…) cannot be used on a stream: {why}")
        raise NoSuchVerb(
            f"a stream has no verb or column `{name}`; columns: {', '.join(self.columns)}. For other verbs of "
            "DataFrames use inSpark(lambda df: …)"
        )

    # Verbs on one row at a time

    def where(self, condition: Column | str) -> Stream:
        """Keep the rows for which the condition is true."""
        text = condition if isinstance(condition, str) else unmarked(checked_column(condition, "where").text)
        return self._with(build.filtered(self._rows(), parse_expression(text), text))

    filter = where

    def select(self, *cols: Column | str | list[Column | str]) -> Stream:
        """Columns by name, or expressions. `"*"` means all columns."""
        return self._selected([listed_item(c, self._types(), self._readable) for c in flat(cols)])

    def selectExpr(self, *exprs: str | list[str]) -> Stream:
        """Expressions as Spark SQL text."""
        return self._selected([build.item(str(e), self._types()) for e in flat(exprs)])

    def _selected(self, items: list[Item]) -> Stream:
        if any(makes_rows(item.node) for item in items):  # one entry may stand for several columns
            return self._statement(("SELECT ", ", ".join(i.written for i in items), f" FROM {INPUT}"))
        return self._with(build.selected(self._rows(), items))

    def withColumn(self, colName: str, col: Column) -> Stream:
        """Add a column, or replace the column with that name."""
        text = unmarked(checked_column(col, f"withColumn(`{colName}`, …)").text)
        plan = build.with_column(self._rows(), colName, parse_expression(text), text)
        return self._with(plan)

    def withColumns(self, colsMap: dict[str, Column]) -> Stream:
        """Add or replace several columns. All of them are computed from the columns as they were before."""
        items = []
        replaced = {name.lower() for name in colsMap}
        new = {name.lower(): column_item(col, name) for name, col in colsMap.items()}
        for name in self.columns:
            items.append(new.pop(name.lower()) if name.lower() in replaced else build.item(quoted(name)))
        return self._with(build.selected(self._rows(), [*items, *new.values()]))

    def withColumnRenamed(self, existing: str, new: str) -> Stream:
        """Rename a column. An unknown name changes nothing, as in PySpark."""
        return self._with(build.renamed(self._rows(), existing, new))

    def withColumnsRenamed(self, colsMap: dict[str, str]) -> Stream:
        """Rename several columns. Unknown names change nothing, as in PySpark."""
        new = {old.lower(): name for old, name in colsMap.items()}
        return self.toDF(*(new.get(name.lower(), name) for name in self.columns))

    def toDF(self, *cols: str) -> Stream:
        """The same columns under other names."""
        if len(cols) != len(self.columns):
            raise PlanError(f"toDF got {len(cols)} names for {len(self.columns)} columns")
        pairs = zip(self.columns, cols, strict=True)
        return self._with(build.selected(self._rows(), [column_item(Column(quoted(old)), new) for old, new in pairs]))

    def fillna(self, value: Fill | dict[str, Fill], subset: str | Sequence[str] | None = None) -> Stream:
        """A value in the place of nulls, and of NaN. A number fills numeric columns, a string columns of strings, a
        boolean columns of booleans. A dict has a value for each column."""
        return self._with(nulls.filled(self._rows(), value, subset_names(subset)))

    def dropna(self, how: str = "any", thresh: int | None = None, subset: str | Sequence[str] | None = None) -> Stream:
        """Leave out rows in which `any` or `all` of the columns are null or NaN, or fewer than `thresh` are not."""
        return self._with(nulls.without(self._rows(), how, thresh, subset_names(subset)))

    @property
    def na(self) -> NullVerbs:
        """`na.fill`, `na.drop` and `na.replace`, as in PySpark."""
        return NullVerbs(self)

    def unpivot(
        self,
        ids: str | Sequence[str],
        values: str | Sequence[str] | None,
        variableColumnName: str,
        valueColumnName: str,
    ) -> Stream:
        """One row for each of the value columns, with the name of the column and its value. Without `values` all
        columns that are no ids."""
        given = None if values is None else key_names(values)
        return self._with(unpivoted(self._rows(), key_names(ids), given, variableColumnName, valueColumnName))

    melt = unpivot

    def transform(self, func: Callable[..., Stream], *args: Any, **kwargs: Any) -> Stream:
        """What a function makes of this stream."""
        return func(self, *args, **kwargs)

    def drop(self, *cols: str | Column) -> Stream:
        """All columns except these. Unknown names change nothing, as in PySpark."""
        names = [unmarked(c.text).strip("`") if isinstance(c, Column) else c for c in cols]
        return self._with(build.dropped(self._rows(), names))

    def mapInArrow(
        self, func: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], schema: str | pa.Schema
    ) -> Stream:
        """A Python function over record batches. It must not keep state between batches.

        A function that cannot be imported by name is sent by value to nodes that allow it (`trust_functions`)."""
        columns = parse_schema(schema) if isinstance(schema, str) else schema
        return self._with(Map(self._rows(), func, columns))  # type: ignore[arg-type]

    # Verbs on several streams

    def union(self, other: Stream) -> Stream:
        """The rows of both streams, columns matched by position."""
        return self._with(build.united(self._result(), other._result()))

    unionAll = union

    def unionByName(self, other: Stream, allowMissingColumns: bool = False) -> Stream:
        """The rows of both streams, columns matched by name. Missing columns are refused, or null if allowed."""
        left, right = self, other
        if allowMissingColumns:
            left, right = left._padded(right), right._padded(left)
        return self._with(build.united(left._rows(), right._rows(), by_name=True))

    def _padded(self, other: Stream) -> Stream:
        """This stream with a null column for each column that only the other has."""
        have = {n.lower() for n in self.columns}
        missing = {n: Column(f"CAST(NULL AS {t})") for n, t in other.dtypes if n.lower() not in have}
        return self.withColumns(missing) if missing else self

    def join(self, other: Stream, on: str | list[str] | Column | None = None, how: str = "inner") -> Stream:
        """Match two streams on columns that both have, or on a condition.

        A join on a shared `window(event_time, …)` can run at the edge. Any other join runs in Spark.
        """
        from rove.api.verbs.joined import joined, joined_by_name

        return joined(self, other, on, how) if isinstance(on, Column) else joined_by_name(self, other, on, how)

    def crossJoin(self, other: Stream) -> Stream:
        """Every row of a stream with every row of a table."""
        if self.isStreaming and other.isStreaming:
            raise PlanError("crossJoin needs a table on one side (session.read); two streams need join(…, condition)")
        return self._statement(("SELECT * ", "", f"FROM {INPUT} CROSS JOIN {OTHER}"), other)

    # Verbs on event time

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Stream:
        """Name the event-time column, and how much older than its origin's newest row a row may be."""
        column = column_of(self._rows().schema, eventTime).name
        return self._with(Watermark(self._rows(), column, parse_duration(delayThreshold, "delay")))

    def groupBy(self, *cols: Column | str | list[Column | str]) -> GroupedStream:
        """Group by an event-time window and any other columns."""
        return GroupedStream(self, [listed_item(c, self._types(), self._readable) for c in flat(cols)])

    groupby = groupBy

    def agg(self, *exprs: Column | dict[str, str]) -> Stream:
        """Aggregates over all rows, in output mode `update`."""
        return self.groupBy().agg(*exprs)

    def rollup(self, *cols: Column | str | list[Column | str]) -> GroupedStream:
        """Group by the columns, by all but the last, and so on, in Spark."""
        return GroupedStream(self, [listed_item(c, self._types()) for c in flat(cols)], "ROLLUP")

    def cube(self, *cols: Column | str | list[Column | str]) -> GroupedStream:
        """Group by every choice of the columns, in Spark."""
        return GroupedStream(self, [listed_item(c, self._types()) for c in flat(cols)], "CUBE")

    def dropDuplicates(self, subset: list[str] | None = None) -> Stream:
        """One row for each value of the columns."""
        return self._deduplicated(subset, within_watermark=False)

    drop_duplicates = dropDuplicates

    def distinct(self) -> Stream:
        return self.dropDuplicates()

    def dropDuplicatesWithinWatermark(self, subset: list[str] | None = None) -> Stream:
        """One row for each value of the columns within the watermark's delay."""
        return self._deduplicated(subset, within_watermark=True)

    def countWindow(self, rows: int, by: str | Sequence[str] = (), every: str = EVERY) -> CountedStream:
        """Windows of a fixed number of rows of a key, in event-time order. Call `.agg(…)` on the result. Runs at the
        edge."""
        return CountedStream(self, rows, key_names(by), parse_duration(every, "every"))

    def scan(self, *aggregates: Column, by: str | Sequence[str] = (), every: str = EVERY) -> Stream:
        """Each row with the running aggregates of its key, in event-time order. Runs at the edge.

        `stream.scan(F.max("temperature").alias("peak"), by="room")` is the peak so far, beside every reading.
        """
        calls = calls_of(self._rows(), aggregates, "scan")
        return self._with(Scan(self._rows(), key_names(by), calls, parse_duration(every, "every")))

    # Where it runs

    def at(self, where: str) -> Stream:
        """Say where the steps since the last `at` run: on the `device`, on the `edge`, in the `cloud`, or on the node
        with that name. For steps without an `at` after them the optimizer decides.

        The rows are the same wherever they are computed; only the cost differs. A windowed groupBy on the `device` or
        on the `edge` computes partial results there, for each device or edge; they are merged where all of them meet.
        In the `cloud`, or on a named node, they are merged there. Then, with an `at` right before the groupBy, partial
        results may be computed from that place on.

        PySpark has no such verb. A query that should also run on a DataFrame leaves it out; its caller puts it behind
        the whole query, or between two such queries.

        >>> import rove
        >>> trains = rove.Session.local().stream("trains", schema="train string, coach int, boarding int")
        >>> busy = trains.where("boarding > 0").at("device").selectExpr("upper(train) AS train").at("edge")
        >>> busy.explain()
                        At edge
        edge or Spark   └─ Project upper(train) AS train
                           └─ At device
        edge or Spark         └─ Filter boarding > 0
        edge or Spark            └─ Project train, boarding
        edge or Spark               └─ Source trains: train string, coach int, boarding int
        """
        placed = below_names(self.plan, lambda rows: At(rows, where))
        checked_name(where, "a node")
        return self._with(placed)

    # Ways out

    def inSpark(self, func: Callable[[Any], Any]) -> Stream:
        """Run the rest of the pipeline in the cloud, as a function from DataFrame to DataFrame.

        A function that cannot be imported by name is sent by value, if `rove cloud` allows it (`--trust-functions`)."""
        return self._with(InSpark(self.plan, func))

    @property
    def writeStream(self) -> StreamWriter:
        """Run this stream as a query: say where its rows should end, then call `.toTable(name)` or `.start(path)`."""
        from rove.api.writer import StreamWriter

        return StreamWriter(self)

    def explain(self) -> None:
        """Print the plan, where each operator can run, and why."""
        print(explain(self.plan))

    def toArrow(self) -> pa.Table:
        """All rows of this query over the session's own data, the lower part at the edge, the rest in Spark. For trying
        queries out."""
        return self._session.collect(self)

    @property
    def isStreaming(self) -> bool:
        """True for a stream, false for a table."""
        return not self.plan.static

    def _statement(self, parts: tuple[str, str, str], other: Stream | None = None) -> Stream:
        """A SQL statement over this stream (`INPUT`) and another one (`OTHER`). The user wrote its middle part, which
        is all that errors show."""
        plans = {INPUT: self._result()} | ({} if other is None else {OTHER: other._result()})
        before, own, _ = parts
        try:
            return self._with(translate("".join(parts), plans.__getitem__))
        except ExpressionError as error:
            start, end = (place - len(before) for place in error.span or (0, 0))
            inside = 0 <= start < end <= len(own)
            raise type(error)(error.reason, own, (start, end) if inside else None) from None

    def _types(self) -> dict[str, pa.DataType]:
        return {f.name: f.type for f in self._plan.schema}

    def _own(self, name: str) -> Column:
        return Column(marked(name, self._number))

    def _readable(self, text: str) -> str:
        """A column's text without the mark of its stream."""
        return unmarked(text)

    def _with(self, plan: Operator) -> Stream:
        if isinstance(plan, Shown):
            from rove.api.verbs.joined import stream_of

            return stream_of(self._session, plan)
        same = isinstance(plan, Filter | Watermark | Deduplicate | At) and plan.input is self._plan
        return Stream(self._session, plan, self._name if same else "", passed(self._owners, self._plan, plan))

    def _rows(self) -> Operator:
        last = self._plan
        while isinstance(last, At):
            last = last.input
        if isinstance(last, InSpark):
            raise PlanError("after inSpark(…) only Spark knows the columns; put this step into its function")
        return self._plan

    def _result(self) -> Operator:
        """The plan with all columns that users see. Two of them may have one name."""
        return self._rows()

    def _read(self, items: list[Item]) -> tuple[Operator, list[Item]]:
        """The plan that the entries of a verb read, and the entries over its columns."""
        return self._rows(), items

    def _deduplicated(self, subset: list[str] | None, within_watermark: bool) -> Stream:
        names = tuple(column_of(self._rows().schema, n).name for n in subset or ())
        return self._with(Deduplicate(self._rows(), names, within_watermark))


@checks_arguments
class NullVerbs:
    """The result of `na`: verbs on rows with nulls."""

    def __init__(self, stream: Stream) -> None:
        self.fill, self.drop, self.replace = stream.fillna, stream.dropna, stream.replace
