"""Translates one SELECT.

Law: FROM, WHERE, GROUP BY, HAVING, the list, DISTINCT: each clause sees what the one before it has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rove.model.errors import ExpressionError
from rove.plan import build
from rove.plan.expressions.parse import span
from rove.plan.operators import Deduplicate, Operator
from rove.plan.shown import below_names
from rove.plan.sql.entries import entries_of, listed
from rove.plan.sql.grouping import aggregated, refuse_ordinals
from rove.plan.sql.in_spark import left_to_spark, memberships
from rove.plan.sql.joins import Relation, is_cross, joined
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import NO_NAME, star_of

if TYPE_CHECKING:
    from rove.plan.sql.query import Names, Translator


def select(asked: Translator, part: Reading, names: Names) -> Operator:
    """The plan of a SELECT whose WITH has been read."""
    part.skip("hint")  # hints change the cost of a query in Spark, never its rows
    source, distinct = part.take("from_"), part.take("distinct")
    if source is None:
        source = _one_row(part, asked.text)
    if distinct is not None:
        with Reading(distinct, asked.text):
            pass
    given = part.look()
    if "group" in given and any(map(_has_star, given.get("expressions", ()))):
        refuse_ordinals(given["group"], asked.text)
    _check_order([Reading(source, asked.text).take("this")], given, asked.text)
    asks = memberships.taken(asked, part, names)
    if why := left_to_spark.reason(part, source):
        plan = left_to_spark.block(asked, part, source, names, why, asks)
    else:
        plan = _select(asked, part, source, names, asks)
    return plan if distinct is None else below_names(plan, lambda rows: Deduplicate(rows, ()))


def _has_star(node: exp.Expression) -> bool:
    """Whether an entry lists columns by a star. The star of `count(*)` lists none."""
    return any(
        not (isinstance(above := star.parent, exp.Anonymous) and above.name.lower() == "count")
        for star in node.find_all(exp.Star)
    )


def _one_row(part: Reading, text: str) -> exp.From:
    """What a SELECT without FROM reads, as in `(SELECT 1 AS x)`: a table of one row, whose column has no name."""
    for node in part.look().get("expressions", ()):
        if star_of(node) is not None:
            raise ExpressionError("`*` needs a FROM: there are no columns here", text, span(node))
    row = exp.Tuple(expressions=[exp.Literal.number(0)])
    unnamed = exp.TableAlias(columns=[exp.to_identifier(NO_NAME)])
    source = exp.From(this=exp.Values(expressions=[row], alias=unnamed))
    part.change("from_", source)
    part.skip("from_")
    return source


def _check_order(items: list[exp.Expression], given: dict[str, Any], text: str) -> None:
    """Refuse what the parser takes in another order than Spark: joins after LATERAL VIEW, and a word such as LEFT right
    after PIVOT, which Spark takes as its alias."""
    views = list(given.get("laterals", ()))
    for join in given.get("joins", ()):
        words = Reading(join, text).look()
        before = Reading(items[-1], text).look()
        views += [view for item in items for view in Reading(item, text).look().get("laterals", ())]
        place = span(words["this"])
        if place and (view := next((v for v in views if (at := span(v)) and at[0] < place[0]), None)):
            raise ExpressionError("LATERAL VIEW stands after all joins in Spark", text, span(view))
        pivots = before.get("pivots")
        if pivots and "alias" not in Reading(pivots[-1], text).look() and words.keys() & {"side", "kind", "method"}:
            raise ExpressionError("give PIVOT a name: PIVOT (…) AS p", text, span(pivots[-1]))
        items.append(words["this"])


def _select(
    asked: Translator, part: Reading, source: exp.From, names: Names, asks: Sequence[memberships.Membership]
) -> Operator:
    text, where = asked.text, part.take("where")
    condition = None if where is None else Reading(where, text).take("this")
    relation, condition = from_and_joins(asked, source, part.list("joins"), condition, names)
    relation = memberships.kept(asked, relation, asks, names)
    plan = relation.plan
    if condition is not None:
        plan = build.filtered(plan, resolved(condition, relation.scope, text), text)
    types = {f.name: f.type for f in plan.schema}
    entries = entries_of(part.list("expressions"), relation.scope, types, text)
    group, having = part.take("group"), part.take("having")
    if group is not None or having is not None or any(build.has_aggregate(e.node) for e in entries):
        return aggregated(plan, relation.scope, entries, group, having, text)
    return listed(plan, entries, text)


def from_and_joins(
    asked: Translator, source: exp.From, joins: Sequence[exp.Join], condition: exp.Expression | None, names: Names
) -> tuple[Relation, exp.Expression | None]:
    """What FROM and its joins give, and what is left of WHERE: an equality in WHERE that matches the sides of a comma
    or of CROSS JOIN is the condition of that join."""
    found = asked.relation(Reading(source, asked.text).take("this"), names)
    waiting = [] if condition is None else build.conjuncts(condition)
    for join in joins:
        other = asked.joins_to(join, names)
        here = [c for c in waiting if is_cross(join) and _matches(c, found, other)]
        waiting = [c for c in waiting if c not in here]
        found = joined(found, other, join, asked.text, here)
    if condition is not None and len(waiting) < len(build.conjuncts(condition)):
        condition = build.both_true(waiting) if waiting else None
    return found, condition


def _matches(condition: exp.Expression, left: Relation, right: Relation) -> bool:
    """Whether a condition is an equality between a column of each side."""
    if not isinstance(condition, exp.EQ):
        return False
    sides = [s for s in (condition.left, condition.right) if isinstance(s, exp.Column)]
    if len(sides) < 2:
        return False
    found = [[bool(r.scope.find([p.name for p in s.parts])[0]) for r in (left, right)] for s in sides]
    return found in ([[True, False], [False, True]], [[False, True], [True, False]])
