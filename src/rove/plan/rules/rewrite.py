"""Rebuilds a plan from the bottom up. Every rule uses it."""

from __future__ import annotations

from collections.abc import Callable

from rove.plan.operators import Operator


def with_inputs(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
    """The step over these inputs, or the same object if it has them already."""
    if all(new is old for new, old in zip(inputs, operator.inputs, strict=True)):
        return operator
    return operator.over(inputs)


def bottom_up(plan: Operator, rule: Callable[[Operator], Operator]) -> Operator:
    """Apply a rule to every operator, inputs first."""
    return rule(with_inputs(plan, tuple(bottom_up(i, rule) for i in plan.inputs)))
