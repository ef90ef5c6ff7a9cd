"""Joins of a statement: both sides may have columns of one name.

Law: columns of one name get names of their own below the join. The scope knows which is which, and the select list
gives the names back. A join of two streams needs an equality, because streaming Spark has no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import ExpressionError, PlanError
from rove.plan import build
from rove.plan.expressions.functions import RULES
from rove.plan.expressions.parse import span
from rove.plan.expressions.tree import Column
from rove.plan.operators import Join, Operator, Project
from rove.plan.shown import Shown, free_name
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, Visible, column

_LEFT_ONLY = ("left_semi", "left_anti")
_NO_KEYS = (
    "a join of two streams needs an equality of a column of each side, because streaming Spark has no other; "
    "add `ON a.key = b.key`"
)


@dataclass(frozen=True, slots=True)
class Relation:
    """A plan, and the names by which a statement calls its columns."""

    plan: Operator
    scope: Scope

    @classmethod
    def of(cls, plan: Operator, name: str = "") -> Relation:
        """A plan under a name. Columns of one name are told apart by their columns in the plan."""
        if isinstance(plan, Shown):
            return cls(plan.input, Scope(tuple(Visible(name, each, column) for each, column in plan.columns)))
        return cls(plan, Scope.of(plan, name))


def joined(
    left: Relation, right: Relation, join: exp.Join, text: str, matching: Sequence[exp.Expression] = ()
) -> Relation:
    """One JOIN. The caller has already translated its right side. `matching` are conditions of WHERE that belong to
    it."""
    with Reading(join, text) as part:
        part.take("this")
        side, kind, method = (part.word(n).lower() for n in ("side", "kind", "method"))
        on, using = part.take("on"), [u.name for u in part.list("using")]
        how = build.JOINS.get({"outer": side, "inner": "inner", "cross": "inner"}.get(kind, side + kind) or "inner")
        if how is None or method not in ("", "natural") or (kind == "outer" and not side):
            words = " ".join(w for w in (method, side, kind) if w).upper()
            raise ExpressionError(f"Spark has no {words} JOIN", text, span(join))
        if method == "natural":
            theirs = {c.name.lower() for c in right.scope.starred("")}
            using = [c.name for c in left.scope.starred("") if c.name.lower() in theirs]
        if kind == "cross" and (on is not None or using):
            raise ExpressionError("CROSS JOIN has no condition; write JOIN", text, span(join))
    if using:
        return joined_using(left, right, using, how, join, text)
    right = apart(left, right)
    both = left.scope.beside(right.scope)
    if matching:
        on = build.both_true(matching)
    condition = None if on is None else resolved(on, both, text)
    plan = join_on(left.plan, right.plan, condition, how, join, text)
    return Relation(plan, left.scope if how in _LEFT_ONLY else both)


def is_cross(join: exp.Join) -> bool:
    """Whether a join has no condition of its own: a comma, CROSS JOIN, or JOIN alone."""
    written = Reading(join, "").look()
    return not written.keys() & {"on", "using", "side", "method"} and written.get("kind", "CROSS") == "CROSS"


def join_on(
    left: Operator, right: Operator, on: exp.Expression | None, how: str, place: exp.Expression, text: str
) -> Operator:
    """A join on a condition over the columns of both plans."""
    try:
        if on is None:
            made: Operator = Join(left, right, how, (), (), using=False)
        else:
            build.refuse_aggregate(on, text)
            made = build.joined(left, right, on, how, text)
    except ExpressionError:
        raise
    except PlanError as error:
        raise ExpressionError(str(error), text, span(place)) from None
    if not left.static and not right.static and not _equates(on, left, right):
        raise ExpressionError(_NO_KEYS, text, span(place))
    return made


def _equates(on: exp.Expression | None, left: Operator, right: Operator) -> bool:
    """Whether a condition has an equality between the two sides."""
    sides = [set(s.schema.names) for s in (left, right)]
    for part in [] if on is None else build.conjuncts(on):
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            reads = [{c.parts[0].name for c in side.find_all(exp.Column)} for side in (part.left, part.right)]
            if all(reads) and any(reads[0] <= a and reads[1] <= b for a, b in (sides, sides[::-1])):
                return True
    return False


def apart(left: Relation, right: Relation) -> Relation:
    """The right side, with new names for columns whose names the left side has too."""
    taken = {n.lower() for n in left.plan.schema.names}
    own = {n.lower() for n in right.plan.schema.names}
    moved: dict[str, str] = {}
    for name in right.plan.schema.names:
        if name.lower() in taken:
            moved[name] = free_name(name, taken | own)
    if not moved:
        return right
    fields = right.plan.schema
    plan = Project(right.plan, tuple((moved.get(f.name, f.name), Column(f.type, f.name)) for f in fields))
    return Relation(plan, right.scope.moved(moved))


def joined_using(left: Relation, right: Relation, names: list[str], how: str, join: exp.Join, text: str) -> Relation:
    """`USING (a, b)`: the keys come first and once; `t.a` still names the key of one side."""
    keys = [(n, _key(left, n, join, text), _key(right, n, join, text)) for n in names]
    if _one_column(keys, left, right, how):
        merged = {b: a for _, a, b in keys}
        others = {n.lower() for n in left.plan.schema.names}
        clash = [n for n in right.plan.schema.names if n not in merged and n.lower() in others]
        if not clash or how in _LEFT_ONLY:
            both = tuple(a for _, a, _ in keys), tuple(b for _, _, b in keys)
            plan: Operator = Join(left.plan, right.plan, how, *both, using=True)
            return _keys_first(plan, left.scope, right.scope.moved(merged), {n: a for n, a, _ in keys}, how)
    right = apart(left, right)
    keys = [(n, a, _key(right, n, join, text)) for n, a, _ in keys]
    pairs = [exp.EQ(this=column(a, (), join, n), expression=column(b, (), join, n)) for n, a, b in keys]
    plan = join_on(left.plan, right.plan, build.both_true(pairs), how, join, text)
    shown = {n: b if how == "right_outer" else a for n, a, b in keys}
    if how == "full_outer":
        fields = {f.name: Column(f.type, f.name) for f in plan.schema}
        shown = {n: f"__key_{n}" for n, _, _ in keys}
        merged_keys = [(shown[n], RULES["coalesce"]((fields[a], fields[b]))) for n, a, b in keys]
        plan = Project(plan, (*fields.items(), *merged_keys))
    return _keys_first(plan, left.scope, right.scope, shown, how)


def _keys_first(plan: Operator, left: Scope, right: Scope, shown: dict[str, str], how: str) -> Relation:
    keys = [n.lower() for n in shown]

    def behind(scope: Scope) -> list[Visible]:
        hidden = [replace(c, listed=False) for k in keys for c in scope.columns if c.name.lower() == k]
        return [*hidden, *(c for c in scope.columns if c.name.lower() not in keys)]

    first = [Visible("", n, c) for n, c in shown.items()]
    return Relation(plan, Scope((*first, *behind(left), *([] if how in _LEFT_ONLY else behind(right)))))


def _key(side: Relation, name: str, join: exp.Join, text: str) -> str:
    found, _ = side.scope.find([name])
    if len(found) != 1:
        what = "is ambiguous on" if found else "is not a column of"
        raise ExpressionError(f"USING: `{name}` {what} one side of the join", text, span(join))
    return found[0].column


def _one_column(keys: list[tuple[str, str, str]], left: Relation, right: Relation, how: str) -> bool:
    """Whether one column can stand for both keys: equal values of one type are the same value, zeros of two signs
    aside."""
    if not (how == "inner" or how in _LEFT_ONLY):
        return False
    types = [(left.plan.schema.field(a).type, right.plan.schema.field(b).type) for _, a, b in keys]
    same_names = all(a == b for _, a, b in keys)
    return same_names and all(a == b and not pt.is_floating(a) and not pt.is_nested(a) for a, b in types)
