"""Which changes of its plan a running query can take without losing state.

Law: conditions and computed columns may change; everything else stays as it is. So a batch has reached the same stage
in both plans, has the same columns there, and any node may finish it with either plan. A node with a disk computes
again after a crash what its operators had taken, perhaps with the newer plan. Only windows of event time number their
output by their time, whatever their rows are, so no other operator with state may be above a change.
"""

from __future__ import annotations

from rove.model.ids import Stage
from rove.plan.explain import describe
from rove.plan.operators import Aggregate, Filter, Map, Operator, Project
from rove.plan.rules.rewrite import with_inputs
from rove.plan.stages import Stages, stateful
from rove.plan.user_functions import Unread


def changed(old: Stages, new: Stages) -> list[Stage]:
    """The stages in which two plans of one shape differ. O(operators × depth)."""
    pairs = enumerate(zip(old.operators, new.operators, strict=True))
    return [Stage(n) for n, (before, after) in pairs if not _same(before, with_inputs(after, before.inputs))]


def misfit(old: Stages, new: Stages) -> str:
    """Why a query that runs one plan cannot go on with another; empty if it can. O(operators²)."""
    if (old.inputs, old.outputs, old.hints) != (new.inputs, new.outputs, new.hints):
        return "the new text has other operators, or connects them otherwise"
    for before, after in zip(old.operators, new.operators, strict=True):
        if type(before) is not type(after) or (before.schema, before.traits) != (after.schema, after.traits):
            return f"`{describe(before)}` would become `{describe(after)}`"
    for stage in changed(old, new):
        before, after = old.operators[stage], new.operators[stage]
        if not isinstance(before, Filter | Project):
            return f"`{describe(before)}` would become `{describe(after)}`"
        for above in _above(old, stage):
            operator = old.operators[above]
            if stateful(operator) and not isinstance(operator, Aggregate):
                return f"`{describe(operator)}` counts the rows of `{describe(before)}`, which would change"
    return ""


def _same(one: Operator, other: Operator) -> bool:
    """Whether two operators over the same inputs compute the same. Users' functions that were not read are compared by
    their names, or by their bytes."""
    if isinstance(one, Map) and isinstance(other, Map):
        return one.columns == other.columns and _word(one.function) == _word(other.function)
    return one == other


def _word(function: object) -> object:
    return function.word if isinstance(function, Unread) else function


def _above(stages: Stages, stage: Stage) -> set[Stage]:
    """The stages that read a stage, and those that read them."""
    found: set[Stage] = set()
    for reader in stages.readers[stage]:
        found |= {reader} | _above(stages, reader)
    return found
