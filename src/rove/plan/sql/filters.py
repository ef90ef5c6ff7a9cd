"""`agg(x) FILTER (WHERE c)` as an aggregate that the edge knows.

These aggregates skip nulls, so a value that the condition does not let through becomes a null.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from rove.plan.aggregates import RECIPES


def can_skip_nulls(node: exp.Filter) -> bool:
    """Whether the aggregate under a FILTER has one argument whose nulls it skips."""
    call = node.this
    return isinstance(call, exp.Anonymous) and call.name.lower() in RECIPES and len(call.expressions) == 1


def has_distinct(call: exp.Anonymous) -> bool:
    """Whether a call is one such as `sum(DISTINCT x)`."""
    return len(call.expressions) == 1 and isinstance(call.expressions[0], exp.Distinct)


def without_filters(node: exp.Expression) -> exp.Expression:
    """The expression with each FILTER as a CASE inside its aggregate."""
    root = exp.Paren(this=node)
    for found in list(root.find_all(exp.Filter)):
        if can_skip_nulls(found):
            (value,) = found.this.expressions
            distinct = isinstance(value, exp.Distinct)
            inner, *others = value.expressions if distinct else [value]  # one null is enough for DISTINCT of several
            kept = exp.Literal.number(1) if isinstance(inner, exp.Star) else inner
            case: exp.Expression = exp.Case(ifs=[exp.If(this=found.expression.this.copy(), true=kept.copy())])
            case = exp.Distinct(expressions=[case, *(o.copy() for o in others)]) if distinct else case
            call = exp.Anonymous(this=found.this.this, expressions=[case])
            call.meta.update(found.this.meta)
            found.replace(call)
    return cast(exp.Expression, root.this.pop())
