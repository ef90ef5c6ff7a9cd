"""Removes constant conditions: `where true` is dropped, `true AND x` becomes `x`.

The binder already folds calls on literals. This rule folds what earlier rules have made constant.
"""

from __future__ import annotations

from dataclasses import replace

from rove.plan.expressions.bind import fold
from rove.plan.expressions.tree import Call, Expr, Literal
from rove.plan.operators import Aggregate, Filter, Operator, Project
from rove.plan.rules.rewrite import bottom_up


def fold_constants(plan: Operator) -> Operator:
    return bottom_up(plan, _fold_operator)


def _fold_operator(operator: Operator) -> Operator:
    match operator:
        case Filter(input=below, condition=condition):
            folded = folded_expression(condition)
            if _is(folded, True):
                return below
            return operator if folded == condition else Filter(below, folded)
        case Project(input=below, columns=columns):
            new = tuple((name, folded_expression(e)) for name, e in columns)
            return operator if new == columns else Project(below, new)
        case Aggregate(keys=keys):
            new = tuple((name, folded_expression(e)) for name, e in keys)
            return operator if new == keys else replace(operator, keys=new)
    return operator


def folded_expression(expr: Expr) -> Expr:
    """The expression with constant parts computed and neutral operands of AND and OR removed."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(folded_expression(a) for a in expr.args)
    if expr.name in ("and", "or"):
        neutral = expr.name == "and"
        left, right = args
        if _is(left, neutral):
            return right
        if _is(right, neutral):
            return left
        if _is(left, not neutral):
            return left
    return fold(expr if args == expr.args else replace(expr, args=args))


def _is(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Literal) and expr.value.is_valid and expr.value.as_py() is value
