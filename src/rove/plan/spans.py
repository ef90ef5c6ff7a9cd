"""How far event time must advance past the newest row until every window that the row opened is closed."""

from __future__ import annotations

import re

from rove.model.clock import parse_duration
from rove.model.errors import PlanError
from rove.plan.expressions.tree import sql
from rove.plan.operators import Aggregate, Deduplicate, InSpark, Join, Operator, SparkAggregate, SparkSelect, walk
from rove.plan.windows import Window

UNKNOWN_US = 3_600_000_000  # assumed for a user's function over DataFrames and for a join with a condition
KEEPS_TIME = (Aggregate, SparkAggregate, SparkSelect, Deduplicate, InSpark)  # steps that may hold state in Spark
_QUOTED = re.compile(r"'([^']*)'")


def keeps_time(plan: Operator) -> bool:
    """Whether a plan, run in Spark, has state that event time closes."""
    return any(
        op.keeps_rows if isinstance(op, Join) else isinstance(op, KEEPS_TIME) for op in walk(plan) if not op.static
    )


def span_us(plan: Operator) -> int:
    """An upper bound: the sum of all windows and gaps of a plan. O(operators)."""
    windows: set[Window] = set()
    total = 0
    for op in walk(plan):
        if op.static:
            continue
        windows.update(window for _, window in op.traits.windows if window is not None)
        match op:
            case Aggregate(window=window):
                windows.add(window)
            case SparkAggregate(groups=groups):
                total += sum(_durations(sql(expr)) for _, expr in groups)
            case Deduplicate(within_watermark=True):
                total += op.traits.delay_us
            case InSpark() | SparkSelect():
                total += UNKNOWN_US
            case Join(condition=condition) if condition is not None and op.keeps_rows:
                total += UNKNOWN_US
    return total + sum(window.size_us for window in windows)


def _durations(text: str) -> int:
    """The sum of the durations written in a SQL text."""
    total = 0
    for found in _QUOTED.findall(text):
        try:
            total += parse_duration(found)
        except PlanError:
            continue  # a string that is not a duration
    return total
