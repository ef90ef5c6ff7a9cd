"""`IN (SELECT …)` and `EXISTS (SELECT …)` over a stream: a semi join.

Law: streaming Spark has no stream in a subquery of an expression, but it has semi joins. A condition that WHERE joins
by AND with others keeps a row just as a semi join does. Anything else over a stream is refused: a subquery under OR or
in the select list, and NOT IN, which no join of streams can compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rove.model.errors import ExpressionError, UnknownColumn
from rove.plan import build
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.parse import span
from rove.plan.expressions.types import is_numeric
from rove.plan.sql.entries import entries_of, listed
from rove.plan.sql.joins import Relation, apart, join_on
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, column

if TYPE_CHECKING:
    from rove.plan.sql.query import Names, Translator

_PLAIN = {"expressions", "from_", "joins", "where", "distinct", "hint"}  # what a subquery that reads outside may have
_NO_ANTI = "streaming Spark has no NOT IN with a stream; read a table there (session.read), or use LEFT JOIN"
_READS_OUTSIDE = (
    "a subquery over a stream that reads a column from outside may have FROM and WHERE only, and reads it in WHERE; "
    "write a join"
)


@dataclass(frozen=True, slots=True)
class Membership:
    """One condition: the values on the left of IN (none for EXISTS), the subquery, and whether it is negated."""

    place: exp.Expression
    values: tuple[exp.Expression, ...]
    query: exp.Query
    negated: bool


def taken(asked: Translator, part: Reading, names: Names) -> list[Membership]:
    """The conditions of WHERE that ask a stream. They are taken out of WHERE."""
    where = part.look().get("where")
    if where is None or where.find(exp.Query, exp.Exists) is None:
        return []
    found: list[Membership] = []
    others: list[exp.Expression] = []
    for each in build.conjuncts(Reading(where, asked.text).take("this")):
        membership = _membership(each)
        if membership is not None and _reads_stream(asked, membership.query, names):
            found.append(membership)
        else:
            others.append(each)
    if found:
        part.change("where", exp.Where(this=build.both_true(others)) if others else None)
    return found


def kept(asked: Translator, left: Relation, conditions: Sequence[Membership], names: Names) -> Relation:
    """The rows of a relation for which all conditions hold."""
    for each in conditions:
        left = _joined(asked, left, each, names)
    return left


def _membership(node: exp.Expression) -> Membership | None:
    inner = build.bare(node)
    negated = isinstance(inner, exp.Not)
    inner = build.bare(_parts(inner)["this"]) if negated else inner
    match inner, _parts(inner):
        case exp.Exists(), {"this": exp.Query() as query, **others} if not others:
            return Membership(inner, (), _query(query), negated)
        case exp.In(), {"this": left, "query": exp.Query() as query, **others} if not others:
            left = build.bare(left)
            values = _parts(left)["expressions"] if isinstance(left, exp.Tuple) else [left]
            return Membership(inner, tuple(values), _query(query), negated)
    return None


def _parts(node: exp.Expr) -> dict[str, Any]:
    """The arguments that a node was given."""
    return Reading(node, "").look()


def _query(node: exp.Query) -> exp.Query:
    """The subquery without its parentheses."""
    match node, _parts(node):
        case exp.Subquery(), {"this": exp.Query() as inner, **others} if not others:
            return _query(inner)
    return node


def _reads_stream(asked: Translator, query: exp.Query, names: Names) -> bool:
    own = {_parts(cte)["alias"].name.lower() for cte in query.find_all(exp.CTE)}
    tables = [_parts(table).get("this") for table in query.find_all(exp.Table)]
    read = [name for name in tables if isinstance(name, exp.Identifier) and name.name.lower() not in own]
    return any(not asked.named(name, names).plan.static for name in read)


@dataclass(frozen=True, slots=True)
class _Inside:
    """The subquery's rows, the values that IN compares, as columns of its plan, and the conditions that read the row
    outside, by the names of its scope."""

    relation: Relation
    values: tuple[exp.Expression, ...] = ()
    conditions: tuple[exp.Expression, ...] = ()


def _joined(asked: Translator, left: Relation, each: Membership, names: Names) -> Relation:
    text, outer = asked.text, left.scope
    if each.negated and each.values:
        raise ExpressionError(_NO_ANTI, text, span(each.place))
    try:
        inside = _inside(asked, each, names)
        right = apart(left, inside.relation)
        parts = [resolved(c, right.scope, text, otherwise=lambda n: outer.resolve(n, text)) for c in inside.conditions]
    except UnknownColumn as error:
        raise _clearer(error, each, outer) from None
    if len(inside.values) != len(each.values):
        raise ExpressionError(
            f"IN compares {len(each.values)} values with {len(inside.values)} columns", text, span(each.place)
        )
    columns = apart(left, Relation(inside.relation.plan, Scope.of(inside.relation.plan, ""))).scope
    for mine, theirs in zip(each.values, inside.values, strict=True):
        pair = resolved(mine, outer, text), resolved(theirs, columns, text)
        types = [bind_node(n, s.plan.schema, text).dtype for n, s in zip(pair, (left, right), strict=True)]
        if types[0] != types[1] and not all(map(is_numeric, types)):  # Spark has rules of its own for these
            raise ExpressionError("IN compares values of two types; cast one of them", text, span(each.place))
        parts.append(exp.EQ(this=pair[0], expression=pair[1]))
    how = "left_anti" if each.negated else "left_semi"
    on = build.both_true(parts) if parts else None
    return Relation(join_on(left.plan, right.plan, on, how, each.place, text), outer)


def _inside(asked: Translator, each: Membership, names: Names) -> _Inside:
    query, text = each.query, asked.text
    if isinstance(query, exp.Select) and _is_plain(query, text):
        with Reading(query, text) as part:
            return _plain(asked, part, each, names)
    plan = asked.query(query, names)
    relation = Relation.of(plan)
    columns = [column(c.column, (), each.place, c.name) for c in relation.scope.columns] if each.values else []
    return _Inside(relation, tuple(columns))


def _is_plain(query: exp.Select, text: str) -> bool:
    """Whether a subquery has FROM and WHERE only, so that it may read the row outside."""
    from rove.plan.sql.in_spark.left_to_spark import reason

    given = _parts(query)
    if (
        not given.keys() <= _PLAIN
        or "from_" not in given
        or any(map(build.has_aggregate, given.get("expressions", ())))
    ):
        return False
    return not reason(Reading(query, text), given["from_"])


def _plain(asked: Translator, part: Reading, each: Membership, names: Names) -> _Inside:
    from rove.plan.sql.select import from_and_joins

    text = asked.text
    part.skip("distinct", "hint")  # duplicates do not change membership
    where = part.take("where")
    condition = None if where is None else Reading(where, text).take("this")
    relation, condition = from_and_joins(asked, part.take("from_"), part.list("joins"), condition, names)
    scope, plan = relation.scope, relation.plan
    own, others = _split(condition, scope)
    if own:
        plan = build.filtered(plan, resolved(build.both_true(own), scope, text), text)
    entries = entries_of(part.list("expressions"), scope, {f.name: f.type for f in plan.schema}, text)
    listed(plan, entries, text)  # a list that is wrong is refused, although EXISTS does not read it
    values = [e.node for e in entries] if each.values else []
    return _Inside(Relation(plan, scope), tuple(values), tuple(others))


def _split(condition: exp.Expression | None, scope: Scope) -> tuple[list[exp.Expression], list[exp.Expression]]:
    """The conditions that read the subquery's own columns only, and the others."""
    own: list[exp.Expression] = []
    others: list[exp.Expression] = []
    for each in [] if condition is None else build.conjuncts(condition):
        is_own = all(scope.find([p.name for p in c.parts])[0] for c in each.find_all(exp.Column))
        (own if is_own else others).append(each)
    return own, others


def _clearer(error: UnknownColumn, each: Membership, outer: Scope) -> ExpressionError:
    """A name that exists outside is not unknown: it is read where it cannot be."""
    if "is ambiguous" in error.reason:
        return error
    reads = (c for c in each.query.find_all(exp.Column) if span(c) == error.span)
    if any(outer.find([p.name for p in c.parts])[0] for c in reads):
        return ExpressionError(_READS_OUTSIDE, error.text, error.span)
    return error
