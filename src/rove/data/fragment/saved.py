"""Saves the operators of a pipeline with everything that they know, and restores them in another pipeline.

Law: a pipeline that was restored goes on as if it were the one that was saved: it gives the same batches under the same
names. A state is restored into the operator that it is from, or not at all. Operators whose state is on its way from
another node, or to one, cannot be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from rove.data.counts import Count
from rove.data.fragment.build import Step, Steps
from rove.data.fragment.reconfigure.migration import EarlyBatch, StateFrontier, frontier_of, take_frontier
from rove.data.fragment.reconfigure.shares import SavedShares
from rove.data.rows import encode_rows
from rove.model.batch import Batch, Header
from rove.model.errors import StateError
from rove.model.events import Payload
from rove.model.ids import Origin, Stage
from rove.model.state import decode, encode

if TYPE_CHECKING:
    from rove.data.fragment.pipeline import Pipeline

Read: TypeAlias = Callable[[Header, Payload | None], Batch]


class SavedStep(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One operator with memory. Its origins are `waited` for or not; batches of some are `held`, because earlier ones
    are missing. What is `shut` out waits until it is known where it begins, and what goes `onward` may skip numbers."""

    stage: Stage
    lifts: bool
    of: str
    state: bytes
    frontier: StateFrontier | None
    waited: tuple[Origin, ...]
    held: tuple[EarlyBatch, ...]
    shut: tuple[Origin, ...]
    onward: tuple[Origin, ...]
    arrived: tuple[Origin, ...]  # the states that have arrived
    deserted: bool


class SavedPipeline(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """All operators of a pipeline, the origins that it waits for, the names of its operators, and its counts."""

    steps: tuple[SavedStep, ...]
    waits: dict[Stage, tuple[Origin, ...]]
    names: dict[Stage, Origin]
    shares: SavedShares
    counts: dict[Origin, Count]
    faults: int
    fault: str


class Saving:
    """Saves and restores one pipeline."""

    def __init__(self, pipeline: Pipeline, steps: Steps) -> None:
        self._pipeline, self._steps = pipeline, steps

    @property
    def is_settled(self) -> bool:
        """Whether no state of an operator is on its way, so that the pipeline can be saved."""
        here = self._steps.with_memory
        comes = any(step.arriving is not None or (step.intake is not None and step.intake.closed) for step in here)
        return not comes and not self._pipeline.moves.leaving

    def save(self) -> SavedPipeline:
        """Everything that the operators know. O(state)."""
        pipeline = self._pipeline
        return SavedPipeline(
            steps=tuple(self._saved(step) for step in self._steps.with_memory),
            waits=pipeline.waited(),
            names=pipeline.names(),
            shares=pipeline.shares.saved(),
            counts={origin: replace(count) for origin, count in pipeline.counts.items()},
            faults=pipeline.faults,
            fault=pipeline.fault,
        )

    def _saved(self, step: Step) -> SavedStep:
        intake = step.intake
        held = () if intake is None else intake.early()
        return SavedStep(
            stage=step.stage,
            lifts=step.lifts,
            of=step.identity,
            state=b"" if step.logic is None else encode(step.logic.snapshot()),
            frontier=None if intake is None else frontier_of(step, intake),
            waited=() if step.waits is None else tuple(step.waits.waited()),
            held=tuple(_early(name, self._steps.at_input(step.stage, name, batch)) for name, batch in held),
            shut=() if intake is None else tuple(sorted(intake.shut)),
            onward=() if intake is None else tuple(sorted(intake.onward)),
            arrived=tuple(step.arrived),
            deserted=step.deserted,
        )

    def restore(self, found: SavedPipeline, read: Read) -> None:
        """Go on as the pipeline that was saved. This one is new, and its operators have the names that they had there.
        `read` decodes the batches that they held."""
        pipeline = self._pipeline
        pipeline.shares.restore(found.shares)
        pipeline.expect(found.waits)
        _restore(self._steps.with_memory, found.steps, read)
        pipeline.counts, pipeline.faults, pipeline.fault = found.counts, found.faults, found.fault


def _early(name: Origin, batch: Batch) -> EarlyBatch:
    rows = encode_rows(batch.data)
    return EarlyBatch(name, batch.header, None if rows is None else bytes(rows))


def _restore(steps: Sequence[Step], found: Sequence[SavedStep], read: Read) -> None:
    """Restore operators in a new pipeline. It may have fewer of them, or more. Nothing is restored unless everything
    fits."""
    saved_as = {(each.stage, each.lifts): each for each in found}
    known = [(step, saved_as[step.stage, step.lifts]) for step in steps if (step.stage, step.lifts) in saved_as]
    if any(each.of != step.identity for step, each in known):
        raise StateError("this snapshot is of other queries; restore it into a pipeline of the same plans")
    states = [None if step.logic is None else decode(each.state, step.logic.snapshot().schemas) for step, each in known]
    held = [[(early.name, read(early.header, early.rows)) for early in each.held] for _, each in known]
    for (step, each), state, batches in zip(known, states, held, strict=True):
        if step.logic is not None and state is not None:
            step.logic.restore(state)
        _restore_intake(step, each, batches)
        step.arrived, step.deserted = dict.fromkeys(each.arrived), each.deserted


def _restore_intake(step: Step, each: SavedStep, batches: Sequence[tuple[Origin, Batch]]) -> None:
    intake, waits = step.intake, step.waits
    if intake is None or each.frontier is None:
        return
    if waits is not None:
        waits.expect(each.waited)
        known = {taken.origin for taken in each.frontier.taken}
        for origin in [origin for origin in waits.waited() if origin in known and origin not in each.waited]:
            waits.leave(origin)
    take_frontier(step, intake, each.frontier)
    intake.shut |= set(each.shut)
    intake.onward |= set(each.onward)
    for origin, batch in batches:
        intake.hold(origin, batch)
