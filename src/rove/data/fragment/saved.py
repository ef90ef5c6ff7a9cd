"""Saves the states of the operators of a pipeline, and restores them in another one.

Law: a state is restored into the operator that it is from, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from rove.data.fragment.build import Step
from rove.model.errors import StateError
from rove.model.state import Saved


def snapshot(steps: Sequence[Step]) -> list[Saved]:
    """The states of all operators with memory."""
    return [
        Saved(
            of=step.identity,
            state=step.logic.snapshot(),
            taken=step.intake.table() if step.intake else {},
            marks=step.waits.table() if step.waits else {},
            low=step.waits.low if step.waits else 0,
        )
        for step in steps
        if step.logic is not None
    ]


def restore(steps: Sequence[Step], saved: Sequence[Saved]) -> None:
    """Restore the states of another pipeline of the same stages. Nothing is restored unless everything fits."""
    if [s.of for s in saved] != [step.identity for step in steps]:
        raise StateError("this snapshot is of other queries; restore it into a pipeline of the same plans")
    for step, each in zip(steps, saved, strict=True):
        if step.logic is not None:
            step.logic.restore(each.state)
        if step.intake is not None:
            step.intake.load(each.taken)
        if step.waits is not None:
            step.waits.load(each.marks, each.low)
