"""`unpivot`: a row for each of some columns, with the column's name and its value. It is a union, so it runs at the
edge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from rove.model.errors import PlanError
from rove.model.names import quoted
from rove.model.schema import STRING
from rove.plan import build
from rove.plan.expressions.tree import Column, literal
from rove.plan.operators import Operator, Project, column_of


def unpivoted(plan: Operator, ids: Sequence[str], values: Sequence[str] | None, name: str, value: str) -> Operator:
    """The rows with the columns `ids`, and the columns `name` and `value`. Without `values` all others are taken."""
    kept = [column_of(plan.schema, each) for each in ids]
    taken = {each.name for each in kept}
    asked = [n for n in plan.schema.names if n not in taken] if values is None else values
    if not asked:
        raise PlanError(f"unpivot needs at least one value column beside {', '.join(map(quoted, ids))}")
    parts: list[Operator] = []
    for each in asked:
        cell: Column = column_of(plan.schema, each)
        columns = [(k.name, k) for k in kept]
        parts.append(Project(plan, (*columns, (name, literal(cell.name, STRING)), (value, cell))))
    return reduce(build.united, parts)
