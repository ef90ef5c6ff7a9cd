"""PIVOT as aggregates with a condition each: `sum(b) FOR s IN ('x', 'y')` is sum(b) where s is x, and where s is y.

Law: a cell is null if no row belongs to it, as in Spark, even if its aggregate would be zero. Streaming Spark has no
PIVOT of its own, so this is the only form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import ExpressionError
from rove.model.schema import VOID
from rove.plan import build
from rove.plan.build import Item
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.parse import span
from rove.plan.expressions.types import is_integral
from rove.plan.operators import Operator
from rove.plan.sql.column_names import spark_name
from rove.plan.sql.entries import Entry
from rove.plan.sql.filters import can_skip_nulls, without_filters
from rove.plan.sql.grouping import aggregated
from rove.plan.sql.joins import Relation
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, column

Named = tuple[str, exp.Expression]
Labelled = tuple[str, Sequence[exp.Expression]]  # the name of a column, and a value of each key
_MARKS = ("columns", "pivot_column_naming", "prefixed_pivot_columns", "identify_pivot_strings")  # made by the parser


def cells(
    keys: Sequence[exp.Expression], values: Sequence[Labelled], aggregates: Sequence[Named], text: str
) -> list[Named]:
    """The columns that a pivot makes: for each value of the keys each aggregate over the rows with that value."""
    found: list[Named] = []
    for label, parts in values:
        pairs = zip(keys, parts, strict=True)
        holds = build.both_true([exp.NullSafeEQ(this=k.copy(), expression=v.copy()) for k, v in pairs])
        for name, node in aggregates:
            cell = exp.Case(ifs=[exp.If(this=_some(holds), true=_only(node, holds, text))])
            found.append((label if len(aggregates) == 1 else f"{label}_{name}", cell))
    return found


def check_values(plan: Operator, key: exp.Expression, values: Sequence[exp.Expression], text: str) -> None:
    """Refuse values that are no constants of the key's type."""
    dtype = bind_node(key, plan.schema, text).dtype
    for value in values:
        positive = Reading(value, text).take("this") if isinstance(value, exp.Neg) else value
        if not isinstance(positive, exp.Literal | exp.Null | exp.Boolean):
            raise ExpressionError("a value of PIVOT is a plain constant, such as 1 or 'x'", text, span(value))
        given = bind_node(value, plan.schema, text).dtype
        if given not in (dtype, VOID) and not (is_integral(given) and is_integral(dtype)):
            raise ExpressionError(
                "a value of PIVOT has another type than its column; write it as one", text, span(value)
            )


def pivoted(found: Relation, pivot: exp.Pivot, text: str) -> tuple[Relation, exp.Expression | None]:
    """A relation after PIVOT, and the alias that it gets. The columns that PIVOT does not read are the groups."""
    with Reading(pivot, text) as part:
        part.skip(*_MARKS)
        written, fields, alias = part.list("expressions"), part.list("fields"), part.take("alias")
    if len(fields) != 1:
        raise ExpressionError("PIVOT has one FOR … IN (…)", text, span(pivot))
    with Reading(fields[0], text) as part:
        keys = [resolved(k, found.scope, text) for k in _members(part.take("this"), text)]
        given = part.list("expressions")
    if not all(isinstance(key, exp.Column) for key in keys):
        raise ExpressionError("name columns after FOR in PIVOT", text, span(pivot))
    values = [_value(v, len(keys), text) for v in given]
    for n, key in enumerate(keys):
        check_values(found.plan, key, [each[n] for _, each in values], text)
    aggregates = [_aggregate(node, found.scope, text) for node in written]
    made = [Entry(without_filters(n), name, aliased=True) for name, n in cells(keys, values, aggregates, text)]
    read = {c.parts[0].name for node in (*keys, *(n for _, n in aggregates)) for c in node.find_all(exp.Column)}
    kept = [c for c in found.scope.columns if c.listed and c.column not in read]
    groups = [Entry(column(c.column, (), pivot, c.name), c.name) for c in kept]
    group = exp.Group(expressions=[g.node.copy() for g in groups]) if groups else None
    plan = aggregated(found.plan, Scope.of(found.plan, ""), [*groups, *made], group, None, text)
    check_cells(plan, len(groups), text, pivot)
    return Relation.of(plan), alias


def check_cells(plan: Operator, groups: int, text: str, place: exp.Expression) -> None:
    """Refuse cells that hold arrays or structs: Spark makes empty ones of them, not nulls."""
    if any(pt.is_nested(f.type) for f in list(plan.schema)[groups:]):
        raise ExpressionError("PIVOT of arrays and structs is not read here; write FILTER", text, span(place))


def outputs(plan: Operator, key: Item, values: Sequence[Named], aggregates: Sequence[Item]) -> list[Item]:
    """The cells of `groupBy(…).pivot(key, values)` in the place of aggregates."""
    check_values(plan, key.node, [v for _, v in values], key.text)
    if star := next((a for a in aggregates if a.node.find(exp.Star)), None):
        raise ExpressionError(
            f"`{star.text}` cannot stand after pivot(…), as in Spark; use count(), or F.count(F.lit(1))"
        )
    each = [(name, [value]) for name, value in values]
    found = cells([key.node], each, [(a.name, a.node) for a in aggregates], key.text)
    return [Item(node, key.text, name) for name, node in found]


def label(value: Any) -> str:
    """The name of the column for a value."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _aggregate(node: exp.Expression, scope: Scope, text: str) -> Named:
    inner, name = _unaliased(node, text)
    found = resolved(inner, scope, text)
    if not build.has_aggregate(found):
        raise ExpressionError("PIVOT needs aggregates before FOR", text, span(node))
    return name or spark_name(found) or "", build.bare(found)


def _unaliased(node: exp.Expression, text: str) -> tuple[exp.Expression, str]:
    """The expression, and the name that AS gives it."""
    if not isinstance(node, exp.Alias | exp.PivotAlias):
        return node, ""
    with Reading(node, text) as part:
        return part.take("this"), part.word("alias")


def _only(node: exp.Expression, holds: exp.Expression, text: str) -> exp.Expression:
    """The expression with each aggregate over the rows of one cell."""
    root = exp.Paren(this=node.copy())
    for call in [c for c in root.find_all(exp.Anonymous) if build.is_aggregate(c)]:
        only = exp.Filter(this=call.copy(), expression=exp.Where(this=holds.copy()))
        if not can_skip_nulls(only):
            raise ExpressionError(f"`{call.name}` cannot be in PIVOT here; write it with FILTER", text, span(call))
        call.replace(only)
    return build.bare(root)


def _some(holds: exp.Expression) -> exp.Expression:
    """Whether a cell has rows."""
    count = exp.Anonymous(this="count", expressions=[exp.Star()])
    rows = exp.Filter(this=count, expression=exp.Where(this=holds.copy()))
    return exp.GT(this=rows, expression=exp.Literal.number(0))


def _value(node: exp.Expression, count: int, text: str) -> Labelled:
    """The values of all keys, and the name of their column."""
    value, name = _unaliased(node, text)
    parts = _members(value, text)
    if len(parts) != count:
        raise ExpressionError(f"PIVOT over {count} columns needs {count} values in each entry", text, span(node))
    words = [_word(p) for p in parts]
    return name or (words[0] if count == 1 else f"{{{', '.join(words)}}}"), parts


def _word(value: exp.Expression) -> str:
    """A value as Spark writes it in the name of a column."""
    return value.sql("spark").lower() if isinstance(value, exp.Neg | exp.Boolean | exp.Null) else value.name


def _members(node: exp.Expression, text: str) -> list[exp.Expression]:
    """What stands in parentheses, or the node alone."""
    if isinstance(node, exp.Tuple):
        with Reading(node, text) as part:
            return [build.bare(e) for e in part.list("expressions")]
    return [build.bare(node)]
