"""The columns of a SELECT that Spark computes, as far as they can be known without Spark.

Law: every output has a name before Spark is asked. Stars are written out, and expressions get the name that Spark
would give them. A type that is not known is Spark's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rove.model.errors import ExpressionError
from rove.model.schema import UNKNOWN
from rove.plan import build
from rove.plan.expressions.parse import span
from rove.plan.operators import Operator, Traits
from rove.plan.shown import free_name
from rove.plan.sql.entries import own_name
from rove.plan.sql.joins import Relation
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, Visible, excepted

_Typed = tuple[Visible, pa.DataType]
_MADE = {  # the columns that a generator makes of an array
    "explode": ("col",),
    "explode_outer": ("col",),
    "posexplode": ("pos", "col"),
    "posexplode_outer": ("pos", "col"),
}


@dataclass(frozen=True, slots=True)
class Outputs:
    """The output columns, and for each the column of FROM that it is, if it is one."""

    schema: pa.Schema
    plain: tuple[Visible | None, ...]
    groups: bool
    names: tuple[str, ...]  # as users see them; those of the schema are all different

    def traits(self, plans: Sequence[Operator]) -> Traits:
        """Event time goes through if a column of it does and nothing is grouped."""
        first = next((p for p in plans if not p.static), plans[0])
        time = first.traits.event_time
        for name, read in zip(self.schema.names, self.plain, strict=True):
            if read is not None and not self.groups and time is not None and read.name == time:
                return Traits(name, first.traits.delay_us)
        return Traits()


def outputs_of(select: exp.Expression, members: Mapping[str, Relation], text: str) -> Outputs:
    """The outputs of a SELECT whose tables are views already. Stars in its list are written out in place."""
    columns = visible(select, members, text)
    types = {(c.relation.lower(), c.name.lower()): t for c, t in columns}
    scope = Scope(tuple(c for c, _ in columns))
    fields: list[tuple[str, pa.DataType]] = []
    names: list[str] = []
    used: set[str] = set()
    plain: list[Visible | None] = []
    items: list[exp.Expression] = []
    grouped_by = _names_of_sets(select.args.get("group"))
    for node in select.expressions:
        for made in _spread(node, scope, text):
            items.append(made)
            for given, read in _names(made, scope, types, text, items):
                name = grouped_by.get(given.lower(), given) if isinstance(made, exp.Column) else given
                own = free_name(name, used) if name.lower() in used else name
                used.add(own.lower())
                names.append(name)
                fields.append((own, types[read.relation.lower(), read.name.lower()] if read else UNKNOWN))
                plain.append(read)
    select.set("expressions", items)
    calls = (call for call in select.find_all(exp.Anonymous) if call.parent_select is select)
    grouped = select.args.get("group") is not None or any(build.is_aggregate(call) for call in calls)
    return Outputs(pa.schema(fields), tuple(plain), grouped, tuple(names))


def _names_of_sets(group: exp.Expression | None) -> dict[str, str]:
    """The names of the columns of grouping sets, as GROUP BY writes them: Spark names its outputs by these."""
    if group is None or group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is None:
        return {}
    return {column.name.lower(): column.name for column in reversed(list(group.find_all(exp.Column)))}


def visible(select: exp.Expression, members: Mapping[str, Relation], text: str) -> list[_Typed]:
    """The columns of FROM, with their types where they are known."""
    found: list[_Typed] = []
    for item, join in [(select.args["from_"].this, None), *((j.this, j) for j in select.args.get("joins") or [])]:
        own = _columns(item, members, text)
        kind = "" if join is None else str(join.args.get("kind") or "")
        if kind in ("SEMI", "ANTI"):
            continue
        using = [] if join is None else [u.name.lower() for u in join.args.get("using") or []]
        if join is not None and join.args.get("method"):
            theirs = {c.name.lower() for c, _ in own}
            using = [c.name.lower() for c, _ in found if c.listed and c.name.lower() in theirs]
        if using:
            first = [(Visible("", c.name, c.name), t) for k in using for c, t in found if c.name.lower() == k]
            found = [*first, *_keys_first(found, using)]
            own = _keys_first(own, using)
        found += own
    for lateral in select.args.get("laterals") or []:
        found += _lateral(lateral, text)
    return found


def _keys_first(columns: Sequence[_Typed], keys: Sequence[str]) -> list[_Typed]:
    """The columns of one side of USING: `t.*` shows its keys first, and `*` does not show them again."""
    hidden = [(replace(c, listed=False), t) for k in keys for c, t in columns if c.name.lower() == k]
    return [*hidden, *((c, t) for c, t in columns if c.name.lower() not in keys)]


def _columns(item: exp.Expression, members: Mapping[str, Relation], text: str) -> list[_Typed]:
    if isinstance(item, exp.Lateral):
        return _lateral(item, text)
    if isinstance(item, exp.Subquery):
        raise ExpressionError("a join in parentheses beside what Spark computes: name a subquery", text, span(item))
    relation = members.get(item.name)
    if relation is None:
        raise ExpressionError("name a stream or a subquery after FROM", text, span(item))
    alias = item.args.get("alias")
    name = item.alias_or_name if alias is not None else ""
    schema = relation.plan.schema
    found = [(c.name, schema.field(c.column).type) for c in relation.scope.columns if c.listed]
    for pivot in item.args.get("pivots") or []:
        found = _unpivoted(pivot, found, text)
        name = pivot.alias or name
    if alias is not None and alias.columns:
        if len(alias.columns) != len(found):
            raise ExpressionError(f"`{name}` names {len(alias.columns)} of {len(found)} columns", text, span(alias))
        found = [(new.name, t) for new, (_, t) in zip(alias.columns, found, strict=True)]
    return [(Visible(name, n, n), t) for n, t in found]


def _unpivoted(pivot: exp.Pivot, columns: list[tuple[str, pa.DataType]], text: str) -> list[tuple[str, pa.DataType]]:
    """The columns after UNPIVOT."""
    fields = pivot.args.get("fields") or []
    read = {c.name.lower() for c in pivot.find_all(exp.Column)}
    kept = [(n, t) for n, t in columns if n.lower() not in read]
    if len(fields) != 1:
        raise ExpressionError("UNPIVOT over several columns is not read here", text, span(pivot))
    values = [e.name for e in pivot.expressions]
    return [*kept, *((n, UNKNOWN) for n in (fields[0].this.name, *values))]


def _lateral(lateral: exp.Lateral, text: str) -> list[_Typed]:
    """The columns that LATERAL makes."""
    alias = lateral.args.get("alias")
    name = alias.name if alias is not None else ""
    given = [c.name for c in alias.columns] if alias is not None else []
    call = lateral.this
    if not given and isinstance(call, exp.Subquery):
        given = [e.alias_or_name for e in call.this.expressions]
    if not given and isinstance(call, exp.Anonymous):
        given = list(_MADE.get(call.name.lower(), ()))
    if not all(given) or not given:
        raise ExpressionError("name the columns that LATERAL makes: LATERAL VIEW … t AS a, b", text, span(lateral))
    return [(Visible(name, n, n), UNKNOWN) for n in given]


def _spread(node: exp.Expression, scope: Scope, text: str) -> list[exp.Expression]:
    """A star as the columns it stands for; any other entry as it is."""
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        return [node]
    parts = [p.name for p in node.parts[:-1]] if isinstance(node, exp.Column) else []
    found = scope.starred(".".join(parts)) if len(parts) < 2 else []
    if not found:
        raise ExpressionError(f"`{'.'.join(parts)}.*` names no relation here; name its columns", text, span(node))
    found = excepted(found, star.args.get("except_") or [], text)
    return [_column(c) for c in found]


def _column(column: Visible) -> exp.Column:
    table = exp.to_identifier(column.relation, quoted=True) if column.relation else None
    return exp.Column(this=exp.to_identifier(column.name, quoted=True), **({"table": table} if table else {}))


def _names(
    node: exp.Expression,
    scope: Scope,
    types: Mapping[tuple[str, str], pa.DataType],
    text: str,
    items: list[exp.Expression],
) -> list[tuple[str, Visible | None]]:
    """The names of one entry. An entry without an alias gets the name that Spark would give it."""
    if isinstance(node, exp.Aliases):
        made = _MADE.get(node.this.name.lower(), node.expressions)
        if len(made) != len(node.expressions):
            why = f"`{node.this.name}` makes {len(made)} columns, and here are {len(node.expressions)} names"
            raise ExpressionError(why, text, span(node))
        return [(i.name, None) for i in node.expressions]
    inner = build.bare(node.this if isinstance(node, exp.Alias) else node)
    if isinstance(inner, exp.Column):
        found, fields = scope.find([p.name for p in inner.parts])
        read = found[0] if len(found) == 1 and not fields else None
        return [(node.alias if isinstance(node, exp.Alias) else inner.name, read)]
    if isinstance(node, exp.Alias):
        return [(node.alias, None)]
    call = inner.name.lower() if isinstance(inner, exp.Anonymous) else ""
    if call in _MADE:
        return [(name, None) for name in _MADE[call]]
    if inner.find(exp.Query, exp.Exists):
        raise ExpressionError("give this column a name with AS: only Spark knows the one it makes", text, span(node))
    known = {name: dtype for (_, name), dtype in types.items()}
    name = own_name(resolved(inner, scope, text, otherwise=lambda c: c.copy()), known, text)
    items[-1] = exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))
    return [(name, None)]
