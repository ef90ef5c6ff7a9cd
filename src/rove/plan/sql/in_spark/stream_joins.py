"""Joins of two streams in a SELECT that Spark computes.

Law: streaming Spark joins two streams on an equality of a column of each side only, and says so when the query starts.
So such a join without an equality is refused when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from rove.model.errors import ExpressionError
from rove.plan import build
from rove.plan.sql.joins import NO_KEYS, Relation

Place = tuple[int, int] | None


def refuse_unequal(select: exp.Expression, members: Mapping[str, Relation], text: str, places: Sequence[Place]) -> None:
    """Refuse a join of two streams without an equality. `places` are those of the joins in the text."""
    where = select.args.get("where")
    tables = [select.args["from_"].this]
    for join, place in zip(select.args.get("joins") or [], places, strict=True):
        tables.append(join.this)
        streams = [t for t in tables if t.name in members and not members[t.name].plan.static]
        if join.this not in streams or len(streams) < 2 or join.args.get("using") or join.args.get("method"):
            continue
        conditions = [c for c in (join.args.get("on"), where.this if where is not None else None) if c is not None]
        if not any(_matches(part, tables, members) for c in conditions for part in build.conjuncts(c)):
            raise ExpressionError(NO_KEYS, text, place)


def _matches(part: exp.Expression, tables: Sequence[exp.Expression], members: Mapping[str, Relation]) -> bool:
    """Whether a condition may be an equality of the last table with others."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return False
    sides = [
        {_table_of(c, tables, members) for c in side.find_all(exp.Column)} for side in (part.this, part.expression)
    ]
    last = len(tables) - 1
    return any(one and one <= {last, None} and other and last not in other for one, other in (sides, sides[::-1]))


def _table_of(column: exp.Column, tables: Sequence[exp.Expression], members: Mapping[str, Relation]) -> int | None:
    """The number of the table that a column is of; None if it is not known."""
    first, *rest = (part.name.lower() for part in column.parts)
    for n, table in enumerate(tables):
        if rest and table.alias_or_name.lower() == first:
            return n
    for n, table in enumerate(tables):
        found = members.get(table.name)
        names = table.alias_column_names or ([c.name for c in found.scope.columns] if found is not None else [])
        if first in (name.lower() for name in names):
            return n
    return None
