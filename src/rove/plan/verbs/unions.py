"""UNION: the rows of two plans under the names of the first. Over tables also INTERSECT and EXCEPT.

Law: each column gets the type that holds both sides. Where Spark casts in a way that the edge does not, as from text to
a number, Spark makes the union.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rove.model.errors import PlanError
from rove.model.names import quoted
from rove.model.schema import UNKNOWN
from rove.plan.expressions.functions.registry import coerce
from rove.plan.expressions.tree import Column
from rove.plan.expressions.types import Refused, common_type, type_beside_text
from rove.plan.operators import VIEW, Named, Operator, Project, SparkSelect, Traits, Union, column_of
from rove.plan.shown import Shown, by_position, shown

_OVER_TABLES = "INTERSECT and EXCEPT of tables are computed by Spark"


def united(plan: Operator, other: Operator, by_name: bool = False) -> Operator:
    """`union` by position or by name. Each column gets the type that holds both sides."""
    if isinstance(plan, Shown) or isinstance(other, Shown):
        both = united(by_position(plan), by_position(other))
        return shown(both, list(zip(plan.schema.names, both.schema.names, strict=True)))
    left, pairs = plan.schema, _pairs(plan, other, "union", by_name)
    types, why = _types(pairs)
    if why:
        return _in_spark(plan, other, pairs, types, "UNION ALL", why)

    def aligned(side: Operator, fields: Sequence[pa.Field]) -> Operator:
        if all(f.name == n and f.type == t for f, n, t in zip(fields, left.names, types, strict=True)):
            return side if side.schema.names == left.names else Project(side, _as(fields, left.names, types))
        return Project(side, _as(fields, left.names, types))

    members = (aligned(plan, [a for a, _ in pairs]), aligned(other, [b for _, b in pairs]))
    flat = tuple(m for side in members for m in (side.members if isinstance(side, Union) else (side,)))
    return Union(flat)


def of_tables(plan: Operator, other: Operator, words: str) -> Operator:
    """INTERSECT or EXCEPT, with ALL or without, of two tables."""
    left, right = by_position(plan), by_position(other)
    pairs = _pairs(left, right, words, by_name=False)
    made = _in_spark(left, right, pairs, _types(pairs)[0], words, _OVER_TABLES)
    return shown(made, list(zip(plan.schema.names, made.schema.names, strict=True)))


def _pairs(plan: Operator, other: Operator, word: str, by_name: bool) -> list[tuple[pa.Field, pa.Field]]:
    """The columns that meet."""
    left, right = plan.schema, other.schema
    if len(left) != len(right):
        raise PlanError(f"{word} of {len(left)} and {len(right)} columns; both sides need the same number")
    names = [column_of(right, n).name for n in left.names] if by_name else right.names
    return [(left.field(i), right.field(names[i])) for i in range(len(left))]


def _types(pairs: Sequence[tuple[pa.Field, pa.Field]]) -> tuple[list[pa.DataType], str]:
    """The types of the columns, and why Spark has to make the union; empty if the edge can."""
    found: list[pa.DataType] = []
    reason = ""
    for a, b in pairs:
        try:
            found.append(common_type([a.type, b.type]))
        except Refused as refused:
            found.append(type_beside_text(a.type, b.type) or UNKNOWN)
            reason = reason or f"column `{a.name}` of the union: {refused.reason.partition(';')[0]}"
    return found, reason


def _in_spark(
    plan: Operator,
    other: Operator,
    pairs: Sequence[tuple[pa.Field, pa.Field]],
    types: Sequence[pa.DataType],
    word: str,
    why: str,
) -> Operator:
    if plan.static != other.static:
        raise PlanError("Spark has no union of a stream and a table; join them, or send both as streams")
    names = plan.schema.names
    sides = ([a for a, _ in pairs], [b for _, b in pairs])
    texts = [
        f"SELECT {', '.join(f'{quoted(f.name)} AS {quoted(n)}' for f, n in zip(fields, names, strict=True))} "
        f"FROM {VIEW}{number}"
        for number, fields in enumerate(sides)
    ]
    times = {plan.traits.event_time, other.traits.event_time}
    time = times.pop() if len(times) == 1 else None
    if time is not None and any(a.type != b.type or a.name != b.name for a, b in pairs if time in (a.name, b.name)):
        time = None  # a column that is cast is no event time any more
    delay = max(plan.traits.delay_us, other.traits.delay_us) if time is not None else 0
    columns = pa.schema(list(zip(names, types, strict=True)))
    return SparkSelect((plan, other), f" {word} ".join(texts), columns, Traits(time, delay), why)


def _as(fields: Sequence[pa.Field], names: Sequence[str], types: Sequence[pa.DataType]) -> tuple[Named, ...]:
    return tuple((n, coerce(Column(f.type, f.name), t)) for f, n, t in zip(fields, names, types, strict=True))
