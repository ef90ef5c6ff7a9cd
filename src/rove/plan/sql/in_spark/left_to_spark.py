"""A SELECT that only Spark can compute: LATERAL VIEW, subqueries in conditions, grouping sets, pivots.

Law: Spark gets the text that the user wrote, over temporary views whose names no user can write. Every name after FROM
is replaced by such a view, so nothing is read from Spark's own catalogue. What Spark cannot do over a stream is refused
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from rove.model.errors import ExpressionError, ParseError
from rove.plan import build
from rove.plan.expressions.bind import bind_node, refuse_no_value
from rove.plan.expressions.parse import RoveSpark, parse_expression, parse_query, span
from rove.plan.expressions.tokens import NO_OVER
from rove.plan.expressions.tree import Column, fallible, refusal_of
from rove.plan.operators import VIEW, Filter, Operator, Project, SparkSelect
from rove.plan.shown import shown
from rove.plan.sql.entries import WINDOWS
from rove.plan.sql.filters import can_skip_nulls, has_distinct, without_filters
from rove.plan.sql.in_spark.memberships import Membership, kept
from rove.plan.sql.in_spark.outputs import Outputs, outputs_of, visible
from rove.plan.sql.joins import Relation
from rove.plan.sql.reading import Reading, refused
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope

if TYPE_CHECKING:
    from rove.plan.sql.query import Names, Translator

GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple variant_explode".split()
)
_SETS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_FOR_SPARK: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Query, exp.Exists), "a subquery in an expression is computed by Spark"),
    (_SETS, "grouping sets are computed by Spark"),
    ((exp.IgnoreNulls, exp.RespectNulls), "an aggregate with IGNORE NULLS is computed by Spark"),
    ((exp.WithinGroup,), "an aggregate WITHIN GROUP is computed by Spark"),
)
# What a part of the text may have. Spark reads the text, so everything else is refused here.
_ALLOWED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset("expressions from_ joins laterals where group having distinct hint with_".split()),
    exp.Subquery: frozenset(("this", "alias", "with_", "pivots", "joins")),
    exp.Table: frozenset(("this", "alias", "joins", "pivots", "laterals")),
    exp.Join: frozenset(("this", "on", "using", "side", "kind", "method")),
    exp.Union: frozenset(("this", "expression", "distinct", "with_")),
    exp.Group: frozenset(("expressions", "cube", "rollup", "grouping_sets", "all")),
    exp.Lateral: frozenset(("this", "view", "outer", "alias")),
    exp.With: frozenset(("expressions",)),
    exp.CTE: frozenset(("this", "alias")),
    exp.Star: frozenset(("except_",)),
    exp.Values: frozenset(("expressions", "alias")),
}
_NEVER: dict[type[exp.Expr], str] = {
    exp.Window: NO_OVER,
    exp.Except: "EXCEPT needs all rows of a stream that never ends",
    exp.Intersect: "INTERSECT needs all rows of a stream that never ends",
    exp.Pivot: "streaming Spark has no PIVOT; write max(v) FILTER (WHERE key = 'x') AS x, … beside what Spark computes",
    exp.All: "Spark has no comparison with ALL (SELECT …); use max or min",
}
_NO_STREAM = (
    "streaming Spark has no stream in a subquery of an expression; join it (LEFT SEMI JOIN for IN and EXISTS), or read "
    "a table: session.read"
)

_NOT_BESIDE = (
    "IN (SELECT …) and EXISTS over a stream cannot stand beside joins in a SELECT that Spark computes; put the "
    "join, or this condition, into a subquery after FROM"
)


def reason(part: Reading, source: exp.From) -> str:
    """Why Spark has to compute a SELECT; empty if Rove can."""
    asked = part.look()
    items = [source.this, *(j.this for j in asked.get("joins", []))]
    if asked.get("laterals") or any(isinstance(i, exp.Lateral) or i.args.get("laterals") for i in items):
        return "LATERAL is computed by Spark"
    if any(p.args.get("unpivot") for i in items for p in i.args.get("pivots") or []):
        return "UNPIVOT is computed by Spark"
    group = asked.get("group")
    if group is not None and any(group.args.get(k) for k in ("cube", "rollup", "grouping_sets")):
        return "grouping sets are computed by Spark"
    return next((why for node in _expressions(asked) if (why := _expression_reason(node))), "")


def makes_rows(node: exp.Expr) -> bool:
    """Whether a node is a call of a function that makes several rows of one, with names or without."""
    node = node.this if isinstance(node, exp.Aliases) else node
    return isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS


def _expressions(asked: dict[str, Any]) -> list[exp.Expression]:
    """The expressions of a SELECT, without those in FROM."""
    found = list(asked.get("expressions", []))
    found += [asked[k] for k in ("where", "group", "having") if k in asked]
    return found + [j.args["on"] for j in asked.get("joins", []) if j.args.get("on")]


def _expression_reason(root: exp.Expression) -> str:
    for node in root.walk():
        for kinds, why in _FOR_SPARK:
            if isinstance(node, kinds):
                return why
        if isinstance(node, exp.Filter) and not can_skip_nulls(node):
            return "FILTER on an aggregate that Spark computes"
        if isinstance(node, exp.Anonymous) and makes_rows(node):
            return f"`{node.name.lower()}` makes several rows of one, which Spark computes"
    return ""


def block(
    asked: Translator, part: Reading, source: exp.From, names: Names, why: str, asks: Sequence[Membership]
) -> Operator:
    """The SELECT as one step in Spark over the plans of what it names after FROM. The rows it reads are those that its
    memberships in streams keep."""
    select = part.whole().copy()
    select.set("with_", None)
    select.set("distinct", None)
    _check(select, asked.text)
    _check_generators(select, asked.text)
    members: dict[str, Relation] = {}
    for item in _items(select):
        _replace(item, asked, names, members, select)
    if not members:
        raise ExpressionError("the statement reads no stream; name one after FROM", asked.text, span(source))
    outputs = outputs_of(select, members, asked.text)
    _distinct_as_sets(select, members, asked.text)
    if asks:
        members = _kept(asked, select, members, asks, names)
    plans = [_narrowed(view, relation, select) for view, relation in members.items()]
    if len(plans) == 1 and not select.args.get("laterals"):
        plans = [_filtered(plans[0], select, asked.text)]
    text = str(select.sql(dialect=RoveSpark, normalize_functions=False, comments=False))
    if parse_query(text) != select:
        raise ParseError("Rove cannot hand this statement to Spark unchanged; use inSpark(…)", asked.text)
    needs_update = outputs.groups and not _closes(select, outputs, plans)
    made = SparkSelect(tuple(plans), text, outputs.schema, outputs.traits(plans), why, needs_update)
    return shown(made, list(zip(outputs.names, made.schema.names, strict=True)))


def _closes(select: exp.Expression, outputs: Outputs, plans: Sequence[Operator]) -> bool:
    """Whether event time closes the groups: a window, or the event time itself, is among the keys."""
    calls = (c.name.lower() for c in select.find_all(exp.Anonymous) if c.parent_select is select)
    if any(name in WINDOWS for name in calls):
        return True
    group, times = select.args.get("group"), {p.traits.event_time for p in plans} - {None}
    if group is None or any(group.args.get(k) for k in ("cube", "rollup", "grouping_sets")):
        return False
    if group.args.get("all"):
        return any(read is not None and read.name in times for read in outputs.plain)
    return any(isinstance(key, exp.Column) and key.name in times for key in group.expressions)


def _distinct_as_sets(select: exp.Expression, members: dict[str, Relation], text: str) -> None:
    """Write each aggregate with DISTINCT over the set of its values: streaming Spark refuses DISTINCT there."""
    columns = visible(select, members, text)
    scope = Scope(tuple(replace(c, column=f"__c{n}") for n, (c, _) in enumerate(columns)))
    schema = pa.schema([(f"__c{n}", dtype) for n, (_, dtype) in enumerate(columns)])
    names = {f"__c{n}": [w for w in (c.relation, c.name) if w] for n, (c, _) in enumerate(columns)}
    for call in [c for c in select.find_all(exp.Anonymous) if c.parent_select is select and has_distinct(c)]:
        above = call.parent
        place = above if isinstance(above, exp.Filter) and can_skip_nulls(above) else call
        found = without_filters(place.copy())
        made = build.aggregate_call(resolved(found, scope, text), schema, text, "")
        written = parse_expression(made.text)
        for column in list(written.find_all(exp.Column)):
            first, *fields = [p.name for p in column.parts]
            if first in names:
                column.replace(exp.column(*(exp.to_identifier(w, quoted=True) for w in [*names[first], *fields][::-1])))
        place.replace(written)


def _kept(
    asked: Translator, select: exp.Expression, members: dict[str, Relation], asks: Sequence[Membership], names: Names
) -> dict[str, Relation]:
    """The one relation after FROM, as far as memberships in streams keep its rows."""
    table = select.args["from_"].this
    if select.args.get("joins") or table.args.get("pivots") or table.args.get("joins") or table.name not in members:
        raise ExpressionError(_NOT_BESIDE, asked.text, span(asks[0].place))
    relation = members[table.name]
    alias = table.args.get("alias")
    under = relation.scope.under("" if alias is None else alias.name, [c.name for c in alias.columns] if alias else ())
    plan = kept(asked, Relation(relation.plan, under), asks, names).plan
    return {**members, table.name: Relation(plan, relation.scope)}


def _check(select: exp.Expression, text: str) -> None:
    """Refuse what Spark cannot do over a stream, and what Spark has no word for."""
    for node in select.walk():
        refuse_no_value(node, text)
        for kind, why in _NEVER.items():
            if isinstance(node, kind) and not node.args.get("unpivot"):
                raise ExpressionError(why, text, span(node))
        allowed = _ALLOWED.get(type(node))
        for name, value in node.args.items():
            if allowed is not None and value and name not in allowed:
                raise refused(name, node, text)


def _check_generators(select: exp.Expression, text: str) -> None:
    """A function that makes rows must be a whole entry of a select list, or in LATERAL VIEW."""
    for call in select.find_all(exp.Anonymous):
        above = call.parent
        if call.name.lower() in GENERATORS and not isinstance(
            above, exp.Select | exp.Alias | exp.Aliases | exp.Lateral
        ):
            raise ExpressionError(f"`{call.name}` must be a whole entry of the select list", text, span(call))


def _items(select: exp.Expression) -> list[exp.Expression]:
    """What the text names after FROM, at any depth: whole subqueries of its own FROM, tables elsewhere."""
    own = [select.args["from_"].this, *(j.this for j in select.args.get("joins") or [])]
    whole = [
        i for i in own if isinstance(i, exp.Values) or (isinstance(i, exp.Subquery) and isinstance(i.this, exp.Query))
    ]
    inside = {id(n) for w in whole for n in w.walk()}
    return [*whole, *(t for t in select.find_all(exp.Table) if id(t) not in inside)]


def _replace(
    item: exp.Expression, asked: Translator, names: Names, members: dict[str, Relation], select: exp.Expression
) -> None:
    """Put a view in the place of what is named after FROM."""
    view = f"{VIEW}{len(members)}"
    if isinstance(item, exp.Values):
        unnamed = item.copy()
        unnamed.set("alias", None)
        members[view] = asked.relation(unnamed, names)
        item.replace(_table(view, item))
        return
    if isinstance(item, exp.Subquery):
        with Reading(item, asked.text) as part:
            part.skip("alias", "pivots", "joins")
            plan = asked.query(part.take("this"), names)
        members[view] = Relation.of(plan)
        item.replace(_table(view, item))
        return
    if isinstance(item.this, exp.Identifier) and _is_inner_name(item, select):
        return
    members[view] = asked.named(item.this, names)
    if not members[view].plan.static and item.parent_select is not select:
        raise ExpressionError(_NO_STREAM, asked.text, span(item))
    item.replace(_table(view, item))


def _table(view: str, item: exp.Expression) -> exp.Table:
    """The view under the name that the rest of the text uses."""
    table = exp.Table(this=exp.to_identifier(view))
    alias = item.args.get("alias")
    if alias is None and isinstance(item, exp.Table):
        alias = exp.TableAlias(this=item.this.copy())
    for name, value in {"alias": alias, **{k: item.args.get(k) for k in ("joins", "pivots", "laterals")}}.items():
        if value:
            table.set(name, value)
    return table


def _is_inner_name(table: exp.Expression, select: exp.Expression) -> bool:
    """Whether a name is one of a WITH inside the text."""
    above = table.parent
    while above is not None:
        given = above.args.get("with_")
        if given is not None and any(c.alias.lower() == table.name.lower() for c in given.expressions):
            return True
        if above is select:
            return False
        above = above.parent
    return False


def _narrowed(view: str, relation: Relation, select: exp.Expression) -> Operator:
    """The plan under the names of its scope, without columns that the text cannot refer to."""
    columns = [(c.name, c.column) for c in relation.scope.columns if c.listed]
    stars = [s for s in select.find_all(exp.Star) if not _counts_rows(s)]
    whole = (
        stars
        or any(True for _ in select.find_all(exp.Pivot))
        or any(t.name == view and t.alias_column_names for t in select.find_all(exp.Table))
        or any(j.args.get("method") for j in select.find_all(exp.Join))
    )
    said = {i.name.lower() for i in select.find_all(exp.Identifier)}
    plan = relation.plan
    kept = [(n, c) for n, c in columns if whole or n.lower() in said or c == plan.traits.event_time] or columns[:1]
    if [n for n, _ in kept] == plan.schema.names and all(n == c for n, c in kept):
        return plan
    return Project(plan, tuple((n, Column(plan.schema.field(c).type, c)) for n, c in kept))


def _counts_rows(star: exp.Star) -> bool:
    above = star.parent
    return isinstance(above, exp.Anonymous) and above.name.lower() == "count" and len(above.expressions) == 1


def _filtered(plan: Operator, select: exp.Expression, text: str) -> Operator:
    """The plan with the conditions of WHERE that the edge can check. Spark checks them again."""
    where = select.args.get("where")
    table = select.args["from_"].this
    if where is None or table.args.get("pivots") or table.args.get("joins") or select.args.get("joins"):
        return plan
    scope = Scope.of(plan, table.alias_or_name)
    for part in build.conjuncts(where.this):
        if part.find(exp.Query, exp.Exists):
            continue
        condition = bind_node(resolved(part, scope, text), plan.schema, text)
        if condition.dtype == pa.bool_() and not refusal_of(condition) and not fallible(condition):
            plan = Filter(plan, condition)
    return plan
