"""Splits a windowed aggregate in two: partial near the rows, final where all rows meet.

A node that gets both halves merges them again (`merge_aggregates`), so a plan that is not cut between them costs
nothing extra.
"""

from __future__ import annotations

from dataclasses import replace

from rove.model.schema import TIMESTAMP
from rove.plan.expressions.tree import Column
from rove.plan.operators import PANE, Aggregate, Operator
from rove.plan.rules.rewrite import bottom_up


def split_aggregates(plan: Operator) -> Operator:
    """Split every aggregate that the edge can begin into a final aggregate over a partial one."""
    return bottom_up(plan, _split)


def merge_aggregates(plan: Operator) -> Operator:
    """The inverse of `split_aggregates`: both halves in one place become one aggregate."""
    return bottom_up(plan, _merge)


def _split(operator: Operator) -> Operator:
    if not isinstance(operator, Aggregate) or operator.mode != "whole":
        return operator
    if any(a.partial_refusal for a in operator.aggregates):
        return operator
    keys = tuple((name, Column(e.dtype, name)) for name, e in operator.keys)
    partial = replace(operator, mode="partial")
    return replace(operator, input=partial, time=Column(TIMESTAMP, PANE), keys=keys, mode="final")


def _merge(operator: Operator) -> Operator:
    match operator:
        case Aggregate(mode="final", input=Aggregate(mode="partial") as partial):
            return replace(partial, mode="whole", window_name=operator.window_name)
    return operator
