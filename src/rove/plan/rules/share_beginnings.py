"""Queries that begin alike share their beginning: equal parts of several plans become one and the same object.

A pipeline builds one operator for one object, so what is shared runs once, whoever reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rove.plan.operators import Operator
from rove.plan.rules.rewrite import bottom_up


def share_beginnings(plans: Mapping[str, Operator]) -> dict[str, Operator]:
    """The same plans with equal parts made identical. O(total operators)."""
    known: dict[Operator, Operator] = {}
    return {name: bottom_up(plan, lambda op: known.setdefault(op, op)) for name, plan in plans.items()}
