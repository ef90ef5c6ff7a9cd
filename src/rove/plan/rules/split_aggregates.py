"""A windowed aggregate in two: partial where the rows are, final where they meet.

The optimizer does not apply it by itself: a cut does, where it falls between the two halves.
"""

from __future__ import annotations

from dataclasses import replace

from rove.model.schema import TIMESTAMP
from rove.plan.expressions.tree import Column
from rove.plan.operators import PANE, Aggregate, Operator
from rove.plan.rules.rewrite import bottom_up


def split_aggregates(plan: Operator) -> Operator:
    """Every aggregate that the edge can begin, as a final over a partial."""
    return bottom_up(plan, _split)


def merge_aggregates(plan: Operator) -> Operator:
    """The inverse: both halves in one place are one aggregate."""
    return bottom_up(plan, _merge)


def _split(operator: Operator) -> Operator:
    if not isinstance(operator, Aggregate) or operator.mode != "whole":
        return operator
    if any(a.partial_refusal for a in operator.aggregates):
        return operator
    return final_over(replace(operator, mode="partial"), operator)


def final_over(partial: Operator, whole: Aggregate) -> Aggregate:
    """The second half of `whole`, reading the first half's rows from `partial`."""
    keys = tuple((name, Column(e.dtype, name)) for name, e in whole.keys)
    return replace(whole, input=partial, time=Column(TIMESTAMP, PANE), keys=keys, mode="final")


def _merge(operator: Operator) -> Operator:
    match operator:
        case Aggregate(mode="final", input=Aggregate(mode="partial") as partial):
            return replace(partial, mode="whole", window_name=operator.window_name)
    return operator
