"""The stream that owns a column: `trains.id` stays a column of `trains` in what verbs make of `trains`.

Law: as in Spark, a column that a step passes on under its name is still the same column, and one that a step computes
is a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rove.plan.expressions.tree import Column
from rove.plan.operators import At, Deduplicate, Filter, Join, Operator, Project, Watermark

Owners = Mapping[int, frozenset[str]]  # numbers of streams, and the columns that are still theirs
NOBODY: Owners = MappingProxyType({})


def passed(owners: Owners, below: Operator, plan: Operator) -> Owners:
    """The owners of the columns of a plan that stands on `below`, whose columns these owners have."""
    kept = _kept(below, plan)
    return {owner: names & kept for owner, names in owners.items() if names & kept}


def together(left: Owners, right: Owners) -> Owners:
    """The owners of the columns of both sides of a join."""
    return {o: left.get(o, frozenset()) | right.get(o, frozenset()) for o in (*left, *right)}


def _kept(below: Operator, plan: Operator) -> frozenset[str]:
    """The columns of `below` that a plan passes on."""
    names = frozenset(below.schema.names)
    match plan:
        case _ if plan is below:
            return names
        case Filter(input=read) | Watermark(input=read) | Deduplicate(input=read) | At(input=read) if read is below:
            return names
        case Project(input=read, columns=columns) if read is below:
            return frozenset(n for n, e in columns if isinstance(e, Column) and e.name == n)
        case Join(left=left, right=right) if below in (left, right):
            merged = plan.right_keys if plan.using and left is not below else ()
            if plan.using and plan.how in ("right_outer", "full_outer"):
                merged = plan.left_keys
            return (names & frozenset(plan.schema.names)) - frozenset(merged)
    return frozenset()
