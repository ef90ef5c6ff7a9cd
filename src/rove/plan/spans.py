"""How long event time has to go on behind the newest row until everything that the row opened is closed."""

from __future__ import annotations

import re

from rove.model.clock import parse_duration
from rove.model.errors import PlanError
from rove.plan.expressions.tree import sql
from rove.plan.operators import Aggregate, Deduplicate, InSpark, Join, Operator, SparkAggregate, walk

UNKNOWN_US = 3_600_000_000  # what a user's own function over DataFrames, or a join with a condition, is taken to need
_QUOTED = re.compile(r"'([^']*)'")


def keeps_time(plan: Operator) -> bool:
    """Whether a plan, run in Spark, has state that event time closes."""
    return any(isinstance(op, Aggregate | SparkAggregate | Join | Deduplicate | InSpark) for op in walk(plan))


def span_us(plan: Operator) -> int:
    """An upper bound: the windows, gaps and delays of a plan one after the other. O(operators)."""
    return sum(_span(op) for op in walk(plan))


def _span(operator: Operator) -> int:
    match operator:
        case Aggregate(window=window):
            return window.size_us
        case SparkAggregate(groups=groups):
            return sum(_durations(sql(expr)) for _, expr in groups)
        case Join(condition=condition):
            return UNKNOWN_US if condition is not None else 0
        case InSpark():
            return UNKNOWN_US
    return operator.traits.delay_us


def _durations(text: str) -> int:
    """The durations that are written in a SQL text, all together."""
    total = 0
    for found in _QUOTED.findall(text):
        try:
            total += parse_duration(found)
        except PlanError:
            continue  # a text that says something else
    return total
