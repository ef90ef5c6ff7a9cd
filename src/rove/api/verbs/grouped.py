"""Groups of a stream: the results of `groupBy`, `rollup`, `cube` and `countWindow`, which wait for their aggregates.

Law: nothing is computed for a group until its aggregates are named. Then the result is a stream again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rove.api.arguments import checks_arguments
from rove.api.column import Column, literal, path
from rove.api.verbs.items import INPUT, calls_of, checked_column, column_item, listed_item
from rove.model.errors import PlanError
from rove.plan import build
from rove.plan.build import Item
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import CountWindow
from rove.plan.sql import pivots

if TYPE_CHECKING:
    from rove.api.stream import Stream


@checks_arguments
class GroupedStream:
    """The result of `groupBy`, `rollup` or `cube`. Say what to compute for each group."""

    def __init__(self, stream: Stream, groups: list[Item], sets: str = "") -> None:
        self._stream, self._groups, self._sets = stream, groups, sets
        self._pivot: tuple[Item, list[tuple[str, Any]]] | None = None

    def pivot(self, pivot_col: str, values: list[Any] | None = None) -> GroupedStream:
        """A column for each of the values, with the aggregates of the rows that have it."""
        if not values:
            raise PlanError("name the values of pivot(…): a stream never ends, so its values are never all known")
        if self._sets:
            raise PlanError(f"pivot(…) after {self._sets.lower()}(…) is not read here; group with groupBy(…)")
        found = GroupedStream(self._stream, self._groups)
        found._pivot = listed_item(pivot_col), [(pivots.label(v), parse_expression(literal(v))) for v in values]
        return found

    def agg(self, *exprs: Column | dict[str, str]) -> Stream:
        """Aggregates, as columns or as `{"column": "function"}`."""
        if len(exprs) == 1 and isinstance(exprs[0], dict):
            texts = [f"{f}({'*' if c == '*' else path(c)})" for c, f in exprs[0].items()]
            return self._computed([build.item(t) for t in texts])
        columns = [checked_column(e, "agg") for e in exprs]
        stream = self._stream
        return self._computed([column_item(c, c.name, stream._types(), stream._readable) for c in columns])

    def count(self) -> Stream:
        return self._computed([build.item("count(1) AS `count`")])

    def sum(self, *cols: str) -> Stream:
        return self._each("sum", cols)

    def min(self, *cols: str) -> Stream:
        return self._each("min", cols)

    def max(self, *cols: str) -> Stream:
        return self._each("max", cols)

    def avg(self, *cols: str) -> Stream:
        return self._each("avg", cols)

    mean = avg

    def _each(self, function: str, cols: Sequence[str]) -> Stream:
        return self._computed([build.item(f"{function}({path(c)}) AS `{function}({c})`") for c in cols])

    def _computed(self, outputs: list[Item]) -> Stream:
        if not outputs:
            raise PlanError("agg needs at least one aggregate, for example F.count('*')")
        if self._sets:
            keys, all_of_them = [g.text for g in self._groups], [*self._groups, *outputs]
            entries = ", ".join(i.written for i in all_of_them)
            after = f" FROM {INPUT} GROUP BY {self._sets} ({', '.join(keys)})"
            return self._stream._statement(("SELECT ", entries, after))
        plan, groups = self._stream._read(self._groups)
        _, outputs = self._stream._read(outputs)
        if self._pivot is not None:
            _, (key,) = self._stream._read([self._pivot[0]])
            outputs = pivots.outputs(plan, key, self._pivot[1], outputs)
        return self._stream._with(build.grouped(plan, groups, outputs))


@checks_arguments
class CountedStream:
    """The result of `countWindow`. Say what to compute for each window."""

    def __init__(self, stream: Stream, rows: int, keys: tuple[str, ...], every_us: int) -> None:
        self._stream, self._rows, self._keys, self._every_us = stream, rows, keys, every_us

    def agg(self, *aggregates: Column) -> Stream:
        """Aggregates over the rows of each window, beside the event time of its last row."""
        plan = self._stream._rows()
        calls = calls_of(plan, aggregates, "countWindow")
        return self._stream._with(CountWindow(plan, self._keys, calls, self._every_us, self._rows))
