"""Builds operators from what users write: the meaning of `where`, `select`, `groupBy` and `join`.

Law: verbs and SQL statements build plans through these functions alone, so both mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import ExpressionError, PlanError, TypeMismatch
from rove.model.names import quoted, unowned
from rove.model.schema import BOOLEAN, TIMESTAMP, UNKNOWN, WINDOW, is_spark_only, type_name
from rove.plan.aggregates import (
    AGGREGATE_NAMES,
    RECIPES,
    AggregateCall,
    aggregate,
    distinct,
    distinct_value,
    without_distinct,
)
from rove.plan.expressions.bind import as_written, bind_node
from rove.plan.expressions.functions import RULES
from rove.plan.expressions.functions.registry import coerce
from rove.plan.expressions.parse import SHOWN, parse_expression, span
from rove.plan.expressions.spark_results import result_type
from rove.plan.expressions.syntax import written
from rove.plan.expressions.tree import Call, Column, Expr, Foreign, refusal_of, walk
from rove.plan.expressions.types import Refused, common_type
from rove.plan.operators import (
    Aggregate,
    Filter,
    Join,
    Named,
    Operator,
    Project,
    SparkAggregate,
    Union,
    column_of,
    struct_field,
)
from rove.plan.shown import Shown, by_position, projection, shown
from rove.plan.sql.column_names import Types, spark_name
from rove.plan.sql.filters import without_filters
from rove.plan.sql.reading import Reading
from rove.plan.verbs.stars import bound, named, starred
from rove.plan.windows import Window

JOINS = {
    "inner": "inner",
    "left": "left_outer",
    "leftouter": "left_outer",
    "left_outer": "left_outer",
    "right": "right_outer",
    "rightouter": "right_outer",
    "right_outer": "right_outer",
    "outer": "full_outer",
    "full": "full_outer",
    "fullouter": "full_outer",
    "full_outer": "full_outer",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "left_semi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
    "left_anti": "left_anti",
}


_MAPS = frozenset(  # functions that make maps, of which there are no sets
    "map map_concat map_filter map_from_arrays map_from_entries map_zip_with str_to_map transform_keys "
    "transform_values".split()
)
NO_WINDOW = "without a window a group never ends; Spark holds that state, and output mode `update` shows it"


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a select, groupBy or agg list: its syntax tree, the text it came from, and its column name."""

    node: exp.Expression
    text: str
    name: str
    aliased: bool = False

    @property
    def written(self) -> str:
        """The entry as SQL, with its name if it was given one."""
        text = self.node.sql("spark", normalize_functions=False)
        return f"{text} AS {quoted(self.name)}" if self.aliased else text


def item(text: str, types: Types | None = None) -> Item:
    """An entry from text such as `boarding + 1 AS n`. `types` are those of the columns, as far as they are known."""
    return item_of(parse_expression(text), text, types)


def item_of(node: exp.Expression, text: str, types: Types | None = None) -> Item:
    """An entry from a parsed expression."""
    node, alias = named(node, text)
    if alias is not None:
        return Item(bare(node), text, alias, aliased=True)
    name = spark_name(node, types) or unowned(node.sql("spark", normalize_functions=False))
    # PySpark's F.mean is F.avg, and so is its name.
    return Item(bare(node), text, name.replace("mean(", "avg(", 1) if name.startswith("mean(") else name)


def bare(node: exp.Expression) -> exp.Expression:
    """The expression without its outermost parentheses."""
    return bare(node.this) if isinstance(node, exp.Paren) else node


def filtered(plan: Operator, node: exp.Expression, text: str) -> Operator:
    """`where`."""
    refuse_aggregate(node, text)
    condition = bound(plan, node, text)
    try:
        return Filter(plan, condition)
    except ExpressionError as error:
        raise as_written(error, node).at(text, span(node)) from None


def selected(plan: Operator, items: Sequence[Item]) -> Operator:
    """`select`. If it computes a window, rows whose time is null are dropped, as Spark does."""
    columns: list[Named] = []
    copies: list[bool] = []
    for each in items:
        columns.extend(_expanded(plan, each))
        copies.extend([not each.aliased] * (len(columns) - len(copies)))
    return projected(plan, columns, copies)


def projected(plan: Operator, columns: Sequence[Named], copies: Sequence[bool] = ()) -> Operator:
    """A projection of typed columns, some of which are `copies`: columns of the plan that were not renamed. If a column
    is a window, rows whose time is null are filtered out first."""
    times = {n.args[0] for _, e in columns for n in walk(e) if isinstance(n, Call) and n.name == "window"}
    for time in sorted(times, key=str):
        plan = Filter(plan, RULES["isnotnull"]((time,)))
    return projection(plan, columns, copies)


def _expanded(plan: Operator, each: Item) -> list[Named]:
    """`*` and `struct.*` stand for several columns."""
    if (several := starred(plan, each.node, each.text)) is not None:
        if each.aliased:
            raise PlanError(f"`{each.text}` stands for several columns, and `{each.name}` names one")
        return several
    refuse_aggregate(each.node, each.text)
    return [(each.name, bound(plan, each.node, each.text))]


def refuse_aggregate(node: exp.Expression, text: str, where: str = "") -> None:
    """Refuse an aggregate where a value of one row is needed."""
    for call in node.find_all(exp.Anonymous):
        if is_aggregate(call) and not isinstance(call.parent, exp.Window):
            what = f"it cannot be in {where}" if where else "use it in groupBy(…).agg(…)"
            raise ExpressionError(f"`{call.name}` is an aggregate; {what}", text, span(call))


def has_aggregate(node: exp.Expression) -> bool:
    """Whether an expression computes an aggregate."""
    return any(is_aggregate(n) and not isinstance(n.parent, exp.Window) for n in node.find_all(exp.Anonymous))


def with_column(plan: Operator, name: str, node: exp.Expression, text: str) -> Operator:
    """`withColumn`: replaces a column of that name, or adds one at the end."""
    ((_, new),) = _expanded(plan, Item(node, text, name, aliased=True))
    kept = [(f.name, Column(f.type, f.name)) for f in plan.schema]
    columns = [(name, new) if n.lower() == name.lower() else (n, e) for n, e in kept]
    return projected(plan, columns if (name, new) in columns else [*columns, (name, new)])


def renamed(plan: Operator, old: str, new: str) -> Operator:
    """`withColumnRenamed`. An unknown column name is ignored, as in Spark."""
    return shown(plan, [(new if f.name.lower() == old.lower() else f.name, f.name) for f in plan.schema])


def dropped(plan: Operator, names: Sequence[str]) -> Operator:
    """`drop`. Unknown column names are ignored, as in Spark."""
    gone = {n.lower() for n in names}
    kept = tuple((f.name, Column(f.type, f.name)) for f in plan.schema if f.name.lower() not in gone)
    if not kept:
        raise PlanError(f"drop({', '.join(names)}) would leave no column")
    return Project(plan, kept)


def united(plan: Operator, other: Operator, by_name: bool = False) -> Operator:
    """`union` by position or by name. Each column gets the type that holds both sides."""
    if isinstance(plan, Shown) or isinstance(other, Shown):
        both = united(by_position(plan), by_position(other))
        return shown(both, list(zip(plan.schema.names, both.schema.names, strict=True)))
    left = plan.schema
    if len(left) != len(other.schema):
        raise PlanError(f"union of {len(left)} and {len(other.schema)} columns; both sides need the same number")
    names = [column_of(other.schema, n).name for n in left.names] if by_name else other.schema.names
    pairs = [(left.field(i), other.schema.field(names[i])) for i in range(len(left))]
    try:
        types = [common_type([a.type, b.type]) for a, b in pairs]
    except Refused as refused:
        raise PlanError(f"union: {refused.reason}") from None

    def aligned(side: Operator, fields: Sequence[pa.Field]) -> Operator:
        if all(f.name == n and f.type == t for f, n, t in zip(fields, left.names, types, strict=True)):
            return side if side.schema.names == left.names else Project(side, _as(fields, left.names, types))
        return Project(side, _as(fields, left.names, types))

    members = (aligned(plan, [a for a, _ in pairs]), aligned(other, [b for _, b in pairs]))
    flat = tuple(m for side in members for m in (side.members if isinstance(side, Union) else (side,)))
    return Union(flat)


def _as(fields: Sequence[pa.Field], names: Sequence[str], types: Sequence[pa.DataType]) -> tuple[Named, ...]:
    return tuple((n, coerce(Column(f.type, f.name), t)) for f, n, t in zip(fields, names, types, strict=True))


def grouped(plan: Operator, groups: Sequence[Item], outputs: Sequence[Item]) -> Operator:
    """`groupBy(groups).agg(outputs)`. Expressions over aggregates become a projection above the aggregate."""
    found = Grouping.of(plan, groups)
    calls, results = found.calls(outputs)
    base = found.aggregate(tuple(calls))
    grouping = [(name, Column(base.schema.field(name).type, name)) for name in found.order]
    columns = [*grouping, *((r.name, bind_node(r.node, base.schema, r.text)) for r in results)]
    if [n for n, _ in columns] == base.schema.names and all(isinstance(e, Column) and e.name == n for n, e in columns):
        return base
    return Project(base, tuple(columns))


@dataclass(slots=True)
class Grouping:
    """The parts of a groupBy: its one window, its other keys, and the order they were written in."""

    plan: Operator
    window_name: str
    window: Window | Foreign | None  # a window that the edge can compute, or the text of one that only Spark can
    time: Expr | None
    keys: list[Named]
    order: list[str]

    @classmethod
    def of(cls, plan: Operator, groups: Sequence[Item]) -> Grouping:
        keys: list[Named] = []
        windows: list[tuple[str, Window | Foreign, Expr | None]] = []
        order: list[str] = []
        for each in groups:
            order.append(each.name)
            if spec := _window_spec(plan, each):
                windows.append((each.name, *spec))
            else:
                refuse_aggregate(each.node, each.text)
                keys.append((each.name, bind_node(each.node, plan.schema, each.text, stars=False)))
        if len(windows) > 1:
            raise PlanError(f"a groupBy has one window at most, and here are {len(windows)}, as in Spark")
        if not windows:
            return cls(plan, "", None, None, keys, order)
        name, window, time = windows[0]
        return cls(plan, name, window, time, keys, order)

    def aggregate(self, calls: tuple[AggregateCall, ...]) -> Operator:
        """The operator for these calls."""
        if self.window is None:
            return SparkAggregate(self.plan, tuple(self.keys), calls, NO_WINDOW)
        if isinstance(self.window, Foreign):
            by = {**dict(self.keys), self.window_name: self.window}
            return SparkAggregate(self.plan, tuple((n, by[n]) for n in self.order), calls, self.window.refusal)
        if self.time is None:
            raise PlanError("a window without a time column")
        return Aggregate(self.plan, self.window, self.time, tuple(self.keys), calls, window_name=self.window_name)

    def calls(self, outputs: Sequence[Item]) -> tuple[list[AggregateCall], list[Item]]:
        """The aggregate calls, and each output as an expression over their results."""
        calls: dict[str, AggregateCall] = {}
        results: list[Item] = []
        for each in outputs:
            results.append(Item(self._lifted(each, calls), each.text, each.name))
        return list(calls.values()), results

    def _lifted(self, each: Item, calls: dict[str, AggregateCall]) -> exp.Expression:
        """The output with every aggregate call replaced by a column that will hold its result."""
        top = without_filters(each.node)
        if is_aggregate(top):
            return self._call(top, each, calls, each.name)
        inside = [n for n in top.find_all(exp.Anonymous) if is_aggregate(n)]
        if not inside:
            raise PlanError(f"`{each.text}` in agg is not an aggregate; add it to groupBy, or wrap it in min or max")
        copy = top.copy()
        for call in [n for n in copy.find_all(exp.Anonymous) if is_aggregate(n)]:
            call.replace(self._call(call, each, calls, f"__{len(calls)}"))
        return copy

    def _call(self, node: exp.Expression, each: Item, calls: dict[str, AggregateCall], name: str) -> exp.Expression:
        text = node.sql("spark")
        if text not in calls:  # the same call twice is computed once
            calls[text] = aggregate_call(node, self.plan.schema, each.text, name)
        found = exp.column(calls[text].name, quoted=True)
        found.meta[SHOWN] = written(node)
        return found


def every_row() -> AggregateCall:
    """A count that is not read, for groups of which only the keys are wanted."""
    return aggregate("count", None, "__rows")


def aggregate_call(node: exp.Expression, schema: pa.Schema, text: str, name: str) -> AggregateCall:
    """A parsed `sum(x)` over the columns of `schema`."""
    if not is_aggregate(node):
        raise PlanError(f"`{text}` is not an aggregate; write for example max(value)")
    function = node.name.lower()
    args = node.expressions
    if function in ("grouping", "grouping_id"):
        raise ExpressionError(f"{function} needs CUBE, ROLLUP or GROUPING SETS", text, span(node))
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        function, args = _over_distinct(function, args[0].expressions, schema, text, node)
    if len(args) == 1 and isinstance(args[0], exp.Star):
        with Reading(args[0], text):
            return aggregate(function, None, name)
    if len(args) == 1:
        argument = bind_node(args[0], schema, text)
        try:
            return aggregate(function, argument, name)
        except ExpressionError as error:
            raise error.at(text, span(node)) from None
    if function in RECIPES and function not in ("count", "approx_count_distinct"):
        raise TypeMismatch(f"{function} takes 1 argument, got {len(args)}", text, span(node))
    columns = tuple(bind_node(c, schema, text) for c in node.find_all(exp.Column))
    foreign = Foreign(
        UNKNOWN,
        ", ".join(a.sql("spark", normalize_functions=False) for a in args),
        tuple(c for c in columns if isinstance(c, Column)),
        f"`{function}` with {len(args)} arguments runs in Spark only",
    )
    dtype = result_type(function, [bind_node(a, schema, text).dtype for a in args])
    return AggregateCall(function, foreign, name, dtype, partial_refusal=foreign.refusal)


def _over_distinct(
    function: str, values: list[exp.Expression], schema: pa.Schema, text: str, node: exp.Expression
) -> tuple[str, list[exp.Expression]]:
    """The aggregate that computes `function(DISTINCT values)`, and its arguments."""
    if function == "count":
        return distinct(function), [distinct_value([_exact(v, schema, text) for v in values])]
    if len(values) > 1 and (function in RECIPES or without_distinct(function)):
        raise TypeMismatch(f"{function} takes 1 argument, got {len(values)}", text, span(node))
    if same := without_distinct(function):
        return same, values
    if distinct(function) in RECIPES:
        return distinct(function), [_unsigned(v, schema, text) for v in values]
    raise ExpressionError(
        f"streaming Spark has no DISTINCT in an aggregate, and no set can stand for it in {function}; group by the "
        "value in a subquery, or collect the values in inSpark(…)",
        text,
        span(node),
    )


def _unsigned(node: exp.Expression, schema: pa.Schema, text: str) -> exp.Expression:
    """A number that is zero of one sign only; Spark takes 0.0 and -0.0 as one value."""
    if not pt.is_floating(bind_node(node, schema, text).dtype):
        return node
    return exp.Add(this=exp.Paren(this=node.copy()), expression=parse_expression("0D"))


def _exact(node: exp.Expression, schema: pa.Schema, text: str) -> exp.Expression:
    """A value that is equal to another just if Spark counts both as one. Spark takes 0.0 and -0.0, and all NaN, as
    one value, but not in the sets that count them here; as text without a sign of zero they are."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in _MAPS:
        why = "count(DISTINCT …) of map values is not exact over a stream; count sort_array(map_entries(…))"
        raise TypeMismatch(why, text, span(node))
    unsigned = _unsigned(node, schema, text)
    if unsigned is node:
        return node
    return exp.Cast(this=unsigned, to=exp.DataType.build("string", dialect="spark"))


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node is a call of an aggregate."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATE_NAMES


def _window_spec(plan: Operator, each: Item) -> tuple[Window | Foreign, Expr | None] | None:
    """The window to group by: `window(time, …)`, a column that already holds windows, or a window only Spark
    computes."""
    node = each.node
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name == "session_window":
        return _foreign_window(plan, each, "session windows grow with their rows; Spark holds that state"), None
    if name == "window":
        time, *spans = node.expressions
        if written := next((s for s in spans if not isinstance(s, exp.Literal)), None):
            raise ExpressionError("write the lengths of a window as text: '10 seconds'", each.text, span(written))
        moment = bind_node(time, plan.schema, each.text)
        if moment.dtype == WINDOW or refusal_of(moment):
            own = moment.dtype == WINDOW
            why = "an aggregate of an aggregate is left to Spark" if own else "its time is one that Spark computes"
            return _foreign_window(plan, each, why), None
        if moment.dtype != TIMESTAMP:
            raise TypeMismatch(f"window needs a timestamp, got {type_name(moment.dtype)}", each.text, span(time))
        time_name = plan.traits.event_time
        if time_name and not (isinstance(moment, Column) and moment.name == time_name):
            raise ExpressionError(
                f"event time is `{time_name}` here (after a join that of the left side); a window of another time "
                "would never close: name its column in withWatermark, or swap the sides of the join",
                each.text,
                span(time),
            )
        return Window.parse([s.name for s in spans]), moment
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        column = column_of(plan.schema, node.name)
        if column.dtype != WINDOW:
            return None
        window = plan.traits.window_of(column.name)
        if window is None or window.slide_us != window.size_us:
            return _foreign_window(plan, each, "groups of overlapping windows are left to Spark"), None
        return window, struct_field(column, "start")
    return None


def _foreign_window(plan: Operator, each: Item, why: str) -> Foreign:
    columns = [bind_node(c, plan.schema, each.text) for c in each.node.find_all(exp.Column)]
    text = each.node.sql("spark", normalize_functions=False)
    return Foreign(WINDOW, text, tuple(c for c in columns if isinstance(c, Column)), why)


def joined(left: Operator, right: Operator, on: Sequence[str] | exp.Expression | None, how: str, text: str) -> Operator:
    """`join` on column names that both sides have, or on a condition."""
    kind = JOINS.get(how.lower().replace(" ", ""))
    if kind is None:
        raise PlanError(f"no join `{how}`; there are: {', '.join(sorted(set(JOINS)))}")
    if on is None:
        raise PlanError("a join of streams needs `on`: joining every row with every row never ends")
    if not isinstance(on, exp.Expression):
        keys_left = tuple(column_of(left.schema, n).name for n in on)
        keys_right = tuple(column_of(right.schema, n).name for n in on)
        return Join(left, right, kind, keys_left, keys_right, using=True)
    if window := next((n for n in on.find_all(exp.Anonymous) if n.name.lower() in ("window", "session_window")), None):
        raise ExpressionError("name the window in a select before the join, and join on its name", text, span(window))
    both = pa.schema([*left.schema, *right.schema])
    pairs: list[tuple[str, str]] = []
    others: list[exp.Expression] = []
    for part in conjuncts(on):
        if pair := _equal_columns(part, left.schema, right.schema):
            pairs.append(pair)
        else:
            others.append(part)
    residual = bind_node(both_true(others), both, text) if others else None
    if residual is not None and residual.dtype != BOOLEAN and not is_spark_only(residual.dtype):
        raise TypeMismatch(f"a condition must be boolean, not {type_name(residual.dtype)}", text, span(others[0]))
    return Join(
        left,
        right,
        kind,
        tuple(a for a, _ in pairs),
        tuple(b for _, b in pairs),
        using=False,
        condition=residual,
    )


def both_true(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """The AND of some conditions."""
    return cast(exp.Expression, exp.and_(*conditions, wrap=False))


def conjuncts(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that an AND joins."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def _equal_columns(node: exp.Expression, left: pa.Schema, right: pa.Schema) -> tuple[str, str] | None:
    """The column of each side, if the condition is `left.column = right.column`."""
    if not isinstance(node, exp.EQ):
        return None
    sides = (node.this, node.expression)
    if not all(isinstance(s, exp.Column) and len(s.parts) == 1 for s in sides):
        return None
    for a, b in (sides, sides[::-1]):
        found = _named_in(left, a.name), _named_in(right, b.name)
        if found[0] and found[1]:
            return found[0], found[1]
    return None


def _named_in(schema: pa.Schema, name: str) -> str | None:
    """The column with that name, ignoring case."""
    return next((n for n in schema.names if n.lower() == name.lower()), None)
