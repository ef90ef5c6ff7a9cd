"""Watermarks move below steps that only Spark can run, so that workers decide who is late, by each origin's own clock.

It stops at what the edge can run as well, and at a step that computes its column or keeps rows of its own.
"""

from __future__ import annotations

from rove.plan.expressions.tree import Column
from rove.plan.operators import Filter, Join, Operator, Project, Watermark
from rove.plan.rules.rewrite import bottom_up, with_inputs
from rove.plan.sites import site


def lower_watermarks(plan: Operator) -> Operator:
    return bottom_up(plan, _lower)


def _lower(operator: Operator) -> Operator:
    if not isinstance(operator, Watermark) or operator.input.static or site(operator.input).edge:
        return operator
    column, delay = operator.column, operator.delay_us
    match operator.input:
        case Filter(input=below) as step:
            return with_inputs(step, (_lower(Watermark(below, column, delay)),))
        case Project(input=below, columns=columns) as step:
            read = dict(columns)[column]
            if isinstance(read, Column):
                return with_inputs(step, (_lower(Watermark(below, read.name, delay)),))
        case Join(left=left, right=right) as step if not step.keeps_rows:
            sides = (right, left) if left.static else (left, right)
            if column in sides[0].schema.names:
                lowered = _lower(Watermark(sides[0], column, delay))
                return with_inputs(step, (left, lowered) if left.static else (lowered, right))
    return operator
