"""Merges stateless neighbours: two filters into one condition, two projections into one, so a batch is walked once."""

from __future__ import annotations

from rove.plan.expressions.functions import RULES
from rove.plan.expressions.tree import (
    Call,
    Column,
    Expr,
    Foreign,
    Literal,
    columns_of,
    fallible,
    refusal_of,
    substitute,
    walk,
)
from rove.plan.operators import Filter, Operator, Project
from rove.plan.rules.rewrite import bottom_up


def fuse_neighbours(plan: Operator) -> Operator:
    return bottom_up(plan, _fuse)


def _fuse(operator: Operator) -> Operator:
    match operator:
        case Filter(input=Filter(input=below, condition=first), condition=second):
            # A condition that only Spark can evaluate must not pull the other into Spark. And where the first condition
            # is null the row is dropped, but AND would still evaluate the second, which might raise.
            if not refusal_of(first) and not refusal_of(second) and not fallible(second):
                return Filter(below, RULES["and"]((first, second)))
        case Project(input=Project(input=below, columns=inner), columns=outer):
            if _can_inline(dict(inner), outer):
                return Project(below, tuple((name, substitute(e, dict(inner))) for name, e in outer))
        case Project(input=below, columns=columns) if _is_identity(below, columns):
            return below
    return operator


def _is_identity(below: Operator, columns: tuple[tuple[str, Expr], ...]) -> bool:
    names = [name for name, e in columns if isinstance(e, Column) and e.name == name]
    return len(names) == len(columns) and names == below.schema.names


def _can_inline(inner: dict[str, Expr], outer: tuple[tuple[str, Expr], ...]) -> bool:
    """Inlining must not compute a value twice, lose an error, or move text that only Spark can read."""
    uses: dict[str, int] = {}
    for _, expr in outer:
        if any(isinstance(n, Foreign) for n in walk(expr)) or refusal_of(expr):
            return False
        for node in walk(expr):
            if isinstance(node, Column):
                uses[node.name] = uses.get(node.name, 0) + 1
    for name, expr in inner.items():
        if isinstance(expr, Column | Literal):
            continue
        count = uses.get(name, 0)
        if count > 1 or refusal_of(expr):
            return False
        if fallible(expr) and (count == 0 or not _always_computed(name, outer)):
            return False
    return True


def _always_computed(name: str, outer: tuple[tuple[str, Expr], ...]) -> bool:
    """Whether a column is always evaluated: not only inside a branch that may not be taken."""
    for _, expr in outer:
        if name in columns_of(expr):
            return not any(
                isinstance(n, Call) and (n.lazy or n.name in ("case", "coalesce", "and", "or")) for n in walk(expr)
            )
    return False
