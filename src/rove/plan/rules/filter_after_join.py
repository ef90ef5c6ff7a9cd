"""Makes the condition of an inner join a filter after it, so that the edge joins on equal columns and no more.

A filter can be moved on, and a pair of rows for which it cannot be computed goes to the fault table alone. Other joins
keep rows that found no match, so their condition stays in them.
"""

from __future__ import annotations

from dataclasses import replace

from rove.plan.operators import Filter, Join, Operator
from rove.plan.rules.rewrite import bottom_up
from rove.plan.sites import site


def filter_after_join(plan: Operator) -> Operator:
    return bottom_up(plan, _split)


def _split(operator: Operator) -> Operator:
    if not isinstance(operator, Join) or operator.condition is None or not site(operator).edge:
        return operator
    return Filter(replace(operator, condition=None), operator.condition)
