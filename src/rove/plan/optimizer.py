"""The optimizer: a tuple of rules, each in the file of its name, applied in order until nothing changes.

Law: a rule takes a plan and returns a plan that gives the same rows. Rules do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable

from rove.model.errors import PlanError
from rove.plan.operators import Operator
from rove.plan.rules.filter_after_join import filter_after_join
from rove.plan.rules.fold_constants import fold_constants
from rove.plan.rules.fuse_neighbours import fuse_neighbours
from rove.plan.rules.lower_watermarks import lower_watermarks
from rove.plan.rules.narrow_structs import narrow_structs
from rove.plan.rules.prune_columns import prune_columns
from rove.plan.rules.push_filters import push_filters
from rove.plan.rules.split_aggregates import split_aggregates

Rule = Callable[[Operator], Operator]

RULES: tuple[Rule, ...] = (
    fold_constants,
    filter_after_join,
    push_filters,
    lower_watermarks,
    fuse_neighbours,
    prune_columns,
    narrow_structs,
    split_aggregates,
)
ROUNDS_MAX = 50


def optimize(plan: Operator) -> Operator:
    """Apply all rules until none changes the plan. O(rounds × rules × plan)."""
    for _ in range(ROUNDS_MAX):
        before = plan
        for rule in RULES:
            plan = rule(plan)
        if plan == before:
            return plan
    raise PlanError(f"the optimizer did not settle in {ROUNDS_MAX} rounds; its rules undo each other")
