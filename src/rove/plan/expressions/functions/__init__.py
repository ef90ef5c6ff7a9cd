"""The functions that the edge computes, one family in each file. Importing this package fills the registry."""

from rove.plan.expressions.functions import (
    arithmetic,
    casts,
    comparison,
    conditional,
    formats,
    intervals,
    logic,
    maths,
    nested,
    regex,
    rounding,
    search,
    strings,
    times,
    windows,
)
from rove.plan.expressions.functions.registry import RULES

FAMILIES = (
    logic,
    comparison,
    arithmetic,
    casts,
    conditional,
    maths,
    rounding,
    strings,
    search,
    regex,
    times,
    intervals,
    formats,
    nested,
    windows,
)

__all__ = ["FAMILIES", "RULES"]
