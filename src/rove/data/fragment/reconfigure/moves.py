"""Moves operators out of a running pipeline and into one, with their state, while rows flow.

Law: an operator ends in the old pipeline and begins in the new one at the same frontier. Until the frontier has
arrived, the new operator holds the batches that reach it. From then on it takes rows, and each window waits for its own
state.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from rove.data.fragment.build import Step, Steps
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.intake import Intake
from rove.data.fragment.reconfigure.migration import (
    ArrivalEvent,
    Arriving,
    Leaving,
    StateFrontier,
    read_piece,
    take_frontier,
)
from rove.data.operators.open_rows import OpenRows
from rove.data.operators.pieces import UNTIL, WHOLE
from rove.model.batch import Batch, Header
from rove.model.errors import RoveError
from rove.model.events import Payload
from rove.model.ids import Origin, Stage
from rove.model.spans import Spans
from rove.model.state import Snapshot

if TYPE_CHECKING:
    from rove.data.fragment.pipeline import Pipeline


Read: TypeAlias = Callable[[Header, Payload | None], Batch]


class Moves:
    """The states that leave one pipeline, and those that come into it. A state that leaves is kept until the
    coordinator says that it has arrived."""

    def __init__(self, pipeline: Pipeline, steps: Steps) -> None:
        self._pipeline, self._steps = pipeline, steps
        self.leaving: dict[Stage, Leaving] = {}

    # Leaving

    def send(self, origins: Mapping[Stage, Origin], leads: Container[Origin] = ()) -> list[tuple[int, Batch]]:
        """Operators end here, and their states leave under these origins. Returns the batches that arrived too early
        for them, each with the side of the operator; the node that goes on takes these. States that have `leads` take
        their early batches along. O(open windows × origins)."""
        early: list[tuple[int, Batch]] = []
        for stage, origin in origins.items():
            known, step = self.leaving.get(stage), self._step(stage)
            if known is not None and known.origin != origin:
                known.again(origin)
            elif known is None and step is not None and step.logic is not None and step.intake is not None:
                taken, came = list(self._pipeline.taken_by([step])), list(step.intake.early())
                along = [(name, self._steps.at_input(stage, name, batch)) for name, batch in came if origin in leads]
                self.leaving[stage] = Leaving(step, step.logic, step.intake, origin, taken, along)
                for open_origin, rows in step.open.rows().items():
                    self._pipeline.count(open_origin).open -= rows
                step.open = OpenRows()
                early += [(_side(name), batch) for name, batch in came if origin not in leads]
        return early

    def forget(self, kept: Container[Stage]) -> None:
        """Only the states of these operators are still to be kept; the others have arrived."""
        self.leaving = {stage: each for stage, each in self.leaving.items() if stage in kept}

    def open(self) -> Iterator[OpenRows]:
        """The open rows of states that leave."""
        return (each.open for each in self.leaving.values())

    def early(self) -> Iterator[Batch]:
        """The batches that arrived too early for operators, and leave with their states."""
        return (batch for each in self.leaving.values() for _, batch in each.early)

    def taken(self) -> Iterator[tuple[str, Origin, Spans]]:
        """The batches that operators had taken whose states leave: the operator and side, the origin, the batches."""
        return (found for each in self.leaving.values() for found in each.taken)

    def took(self, origin: Origin, seq: int) -> bool:
        """Whether a state that leaves holds a batch."""
        return any(each.took(origin, seq) for each in self.leaving.values())

    # Arriving

    def wait(self, stage: Stage, origin: Origin, whole: bool = False, again: bool = False) -> None:
        """Let an operator here wait for the state that arrives under this origin: for its frontier, or for the `whole`
        of it. If the state has arrived, nothing changes. It arrives `again` at a node without a disk: an earlier start
        of the node may have taken batches after the frontier."""
        step = self._step(stage)
        if step is None or step.logic is None or origin in step.arrived or self.awaited(stage) == origin:
            return
        step.arriving = Arriving(origin, step.logic.snapshot().schemas, not whole, again)
        if step.intake is not None:
            step.intake.closed = True
        if step.waits is not None:
            step.waits.expect([origin])

    def awaited(self, stage: Stage) -> Origin | None:
        """The origin of the state that an operator waits for; None if all of it has arrived."""
        step = self._step(stage)
        return None if step is None or step.arriving is None else step.arriving.origin

    def has_come(self, stage: Stage, origin: Origin) -> bool:
        """Whether all of a state has arrived, or it was given up."""
        step = self._step(stage)
        return step is not None and origin in step.arrived

    def takes(self, stage: Stage) -> bool:
        """Whether the operator of a stage runs here."""
        return self._step(stage) is not None

    def take(self, stage: Stage, batch: Batch, read: Read | None = None) -> list[Emitted]:
        """Merge in a piece of state. Windows that waited for it may close. A piece that arrived before, or that no
        operator waits for, changes nothing. `read` decodes the batches in a piece as if they came from a link."""
        emitted: list[Emitted] = []
        step = self._step(stage)
        if step is not None and step.arriving is not None and step.arriving.origin == batch.header.origin:
            for each in step.arriving.in_order(batch):
                self._merge(step, each, emitted, read)
        return emitted

    def give_up(self, stage: Stage, origin: Origin) -> list[Emitted]:
        """Stop waiting for the rest of a state. The operator goes on with what it has. Rows in missing state are
        lost."""
        emitted: list[Emitted] = []
        step = self._step(stage)
        if step is not None and step.arriving is not None and step.arriving.origin == origin:
            self._end(step, step.arriving, emitted, ArrivalEvent.GIVEN_UP)
        return emitted

    def rename(self, stage: Stage, origin: Origin) -> list[Emitted]:
        """An operator goes on under another name, because the node that its state came from has lost some of it.
        Operators here that read its output learn the new name, and take what they held of the old one. O(operators)."""
        emitted: list[Emitted] = []
        step, old = self._step(stage), self._steps.name_of(stage)
        if step is None or step.logic is None or old is None or old == origin:
            return emitted
        before = self._steps.readers_of(step)
        self._steps.rename(stage, origin)
        for reader, name in () if step.deserted else self._steps.readers_of(step):
            if reader.intake is not None:
                reader.intake.expect([name])
            if reader.waits is not None:
                reader.waits.expect([name])
        emitted += self._pipeline.gone({old})
        self._pipeline.pass_on(step, step.logic.rename(origin), emitted)
        for reader, name in before:
            if reader.waits is not None and reader.waits.leave(name):
                self._pipeline.rise(reader, reader.waits.low, emitted)
        return emitted

    def _merge(self, step: Step, batch: Batch, emitted: list[Emitted], read: Read | None) -> None:
        arriving, intake, logic = step.arriving, step.intake, step.logic
        if arriving is None or intake is None or logic is None:
            return
        try:
            body, state = read_piece(batch, arriving.schemas)
            early = None if body.early is None or read is None else read(body.early.header, body.early.rows)
            if state is None:
                if body.early is not None and early is not None and intake.expects(body.early.name):
                    for each in intake.offer_early(body.early.name, early):
                        self._pipeline.compute(step, body.early.name, each, emitted, _side(body.early.name))
            elif body.frontier is not None:
                logic.begin(state)
                arriving.open = body.frontier.open
                self._count_open(take_frontier(step, intake, body.frontier), body.frontier)
                if arriving.again:
                    intake.go_on_anywhere()
            else:
                logic.merge(state)
        except (RoveError, pa.ArrowException, KeyError, ValueError, TypeError) as error:  # bytes of another node
            self._pipeline.fault = self._pipeline.fault or f"its state is lost: {error}"
            self._pipeline.faults += 1
            self._end(step, arriving, emitted, ArrivalEvent.GIVEN_UP)
            return
        arriving.complete_until = batch.header.watermark
        arriving.machine.step(ArrivalEvent.PIECE if body.frontier is None else ArrivalEvent.FRONTIER)
        if arriving.at_once:
            self._open(step, intake, emitted)
            if step.waits is not None and step.waits.heard(arriving.origin, batch.header.watermark):
                self._pipeline.rise(step, step.waits.low, emitted)
        if body.last:
            self._end(step, arriving, emitted, ArrivalEvent.LAST)

    def _count_open(self, rows: Mapping[Origin, int], frontier: StateFrontier) -> None:
        """Count the open rows that have come with a state. Their batches have been seen here, or the books would have
        rows of batches that nobody has made. O(origins)."""
        for origin, number in rows.items():
            self._pipeline.count(origin).open += number
        for each in frontier.taken:
            if each.origin.unsided in rows:
                self._pipeline.count(each.origin.unsided).saw_until(each.next)

    def _end(self, step: Step, arriving: Arriving, emitted: list[Emitted], event: ArrivalEvent) -> None:
        intake, logic = step.intake, step.logic
        if intake is None or logic is None:
            return
        if event is ArrivalEvent.GIVEN_UP and arriving.has_frontier:
            logic.merge(Snapshot(logic.beginning().kind, {UNTIL: WHOLE}))
            for origin, closing in arriving.incomplete():
                count, rows = self._pipeline.count(origin), step.open.drop(origin, closing)
                count.open -= rows
                count.lost += rows
        elif event is ArrivalEvent.GIVEN_UP:
            intake.begin_anywhere()
        arriving.machine.step(event)
        step.arriving = None
        step.arrived[arriving.origin] = None
        self._open(step, intake, emitted)
        if step.waits is not None and step.waits.leave(arriving.origin):
            self._pipeline.rise(step, step.waits.low, emitted)
        self._pipeline.desert(step, emitted)

    def _open(self, step: Step, intake: Intake, emitted: list[Emitted]) -> None:
        """Let the operator take rows, those that were held first."""
        for origin, batch in intake.open() if intake.closed else ():
            self._pipeline.compute(step, origin, batch, emitted, _side(origin))

    def _step(self, stage: Stage) -> Step | None:
        return next((step for step in self._steps.with_memory if step.stage == stage and not step.lifts), None)


def _side(name: Origin) -> int:
    """The side of an operator at which it sees an origin."""
    return name.side[-1] if name.side else 0
