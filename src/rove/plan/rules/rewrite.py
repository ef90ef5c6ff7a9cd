"""Rebuilding a plan from the bottom up: what every rule is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rove.plan.operators import (
    Aggregate,
    CountWindow,
    Deduplicate,
    Filter,
    InSpark,
    Join,
    Map,
    Operator,
    Project,
    Scan,
    SparkAggregate,
    Union,
    Watermark,
)

_Unary = (Filter, Project, Watermark, Map, Aggregate, SparkAggregate, Deduplicate, CountWindow, Scan, InSpark)


def with_inputs(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
    """The same step over other inputs; its constructor checks that it still makes sense."""
    if all(new is old for new, old in zip(inputs, operator.inputs, strict=True)):
        return operator
    match operator:
        case Union():
            return Union(inputs)
        case Join():
            return replace(operator, left=inputs[0], right=inputs[1])
    return replace(operator, input=inputs[0]) if isinstance(operator, _Unary) else operator


def bottom_up(plan: Operator, rule: Callable[[Operator], Operator]) -> Operator:
    """Apply a rule to every operator, inputs first."""
    return rule(with_inputs(plan, tuple(bottom_up(i, rule) for i in plan.inputs)))
