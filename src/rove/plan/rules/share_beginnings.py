"""Shares the equal beginnings of several plans: equal operators become one object.

A pipeline builds one running operator for each object, so a shared operator runs once for all its readers.
"""

from __future__ import annotations

from collections.abc import Mapping

from rove.plan.operators import Operator
from rove.plan.rules.rewrite import bottom_up


def share_beginnings(plans: Mapping[str, Operator]) -> dict[str, Operator]:
    """The same plans with equal parts made identical. O(total operators)."""
    known: dict[Operator, Operator] = {}
    return {name: bottom_up(plan, lambda op: known.setdefault(op, op)) for name, plan in plans.items()}
