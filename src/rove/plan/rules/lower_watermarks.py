"""Moves watermarks below steps that only Spark can run, so that workers decide lateness by each origin's own clock.

A watermark stops at a step that the edge can run, and at a step that computes its column or keeps rows.
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
    lowered = _below(operator.input, operator.column, operator.delay_us)
    return lowered if lowered.traits.event_time == operator.column else operator


def _below(step: Operator, column: str, delay_us: int) -> Operator:
    """The step with a watermark below it, or the step unchanged if its input has no such column."""
    match step:
        case Filter(input=below):
            return with_inputs(step, (_lower(Watermark(below, column, delay_us)),))
        case Project(input=below, columns=columns):
            read = dict(columns)[column]
            if isinstance(read, Column):
                return with_inputs(step, (_lower(Watermark(below, read.name, delay_us)),))
        case Join(left=left, right=right) if not step.keeps_rows:
            stream = right if left.static else left
            if column in stream.schema.names:
                lowered = _lower(Watermark(stream, column, delay_us))
                return with_inputs(step, (left, lowered) if left.static else (lowered, right))
    return step
