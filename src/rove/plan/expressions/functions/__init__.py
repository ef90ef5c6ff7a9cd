"""The functions the edge computes, a family a file. Importing this package fills the registry."""

from rove.plan.expressions.functions import (
    arithmetic,
    casts,
    comparison,
    conditional,
    logic,
    maths,
    nested,
    rounding,
    strings,
    times,
)
from rove.plan.expressions.functions.registry import RULES

FAMILIES = (logic, comparison, arithmetic, casts, conditional, maths, rounding, strings, times, nested)

__all__ = ["FAMILIES", "RULES"]
