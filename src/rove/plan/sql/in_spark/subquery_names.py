"""The names that Spark gives to subqueries in an entry without an alias: `scalarsubquery(a)`, `exists()`.

Law: the name lists the columns of the outer query that the subquery reads, in the order of the text. Where Spark may
list them in another order, the name is not known.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rove.plan.expressions.parse import SHOWN
from rove.plan.sql.joins import Relation
from rove.plan.sql.scope import Scope


def with_named_subqueries(node: exp.Expression, members: Mapping[str, Relation], scope: Scope) -> exp.Expression | None:
    """A copy of an expression in which columns of known names stand for its subqueries; None if a name is not known.
    `scope` has the columns of the outer query."""
    root = exp.Paren(this=node.copy())
    while found := root.find(exp.Subquery, exp.Exists, exp.Query):
        asks = found.parent if isinstance(found.parent, exp.In) and found.arg_key == "query" else None
        read = _outer_columns(found, members, scope)
        if read is None or (asks is not None and isinstance(asks.this, exp.Tuple)):
            return None
        word = "listquery" if asks is not None else "exists" if isinstance(found, exp.Exists) else "scalarsubquery"
        name = exp.column("__subquery")
        name.meta[SHOWN] = f"{word}({', '.join(read)})"
        if asks is None:
            found.replace(name)
        else:
            asks.replace(exp.In(this=asks.this.copy(), expressions=[name]))
    inner = root.this
    return inner if isinstance(inner, exp.Expression) else None


def _outer_columns(node: exp.Expr, members: Mapping[str, Relation], scope: Scope) -> list[str] | None:
    """The columns outside of a subquery that it reads in WHERE; None if it is not as plain as that."""
    query = node.this if isinstance(node, exp.Exists | exp.Subquery) else node
    query = query.this if isinstance(query, exp.Subquery) else query
    columns = list(query.find_all(exp.Column))
    if not columns:
        return []
    if not isinstance(query, exp.Select) or query.args.get("from_") is None or query.args.get("with_"):
        return None
    tables = [query.args["from_"].this, *(j.this for j in query.args.get("joins") or [])]
    if any(not isinstance(t, exp.Table) or t.name not in members for t in tables):
        return None
    if any(q is not query for q in query.find_all(exp.Query)):
        return None
    own: dict[str, set[str]] = {}
    for table in tables:
        own[table.alias_or_name.lower()] = {c.name.lower() for c in members[table.name].scope.columns}
    where = query.args.get("where")
    in_where = {id(c) for c in where.find_all(exp.Column)} if where is not None else set()
    read: list[str] = []
    for column in columns:
        first, *rest = (p.name.lower() for p in column.parts)
        if (rest and rest[0] in own.get(first, ())) or any(first in names for names in own.values()):
            continue
        outer, _ = scope.find([p.name for p in column.parts])
        if id(column) not in in_where or len(outer) != 1:
            return None
        read.append(outer[0].name)
    return read
