"""The share of one device: operators on its old edge let its origins go, and others take them batch by batch.

Law: an operator that lets an origin go has taken the batches below one number, and no others; they stay in its windows.
Later batches pass it by. Where all routes end, the same operator takes them, in order, from that number on. It keeps no
window of them (`data/operators/lifting`), so they have no state that could be in the way of the next move. Until the
number is known, the batches are held, so every batch is in one result, whichever way it comes and however often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from rove.data.fragment.build import Step, Steps
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.intake import Intake
from rove.data.operators.lifting import LiftLogic
from rove.data.operators.watermark import WatermarkLogic
from rove.model.batch import empty
from rove.model.clock import MICROS_MIN
from rove.model.ids import SOURCE, Origin, Stage, read_taker
from rove.model.messages import ANYWHERE, Begin, Counted

if TYPE_CHECKING:
    from rove.data.fragment.pipeline import Pipeline


class SavedShares(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The origins that operators have let go, and those that are taken batch by batch."""

    released: dict[Origin, Begin]
    lifts: dict[Stage, tuple[Origin, ...]]
    lifted: tuple[tuple[Stage, Origin], ...]
    begun: tuple[Origin, ...]


class Shares:
    """The origins that operators of one pipeline let go, and those that are lifted in it."""

    def __init__(self, pipeline: Pipeline, steps: Steps) -> None:
        self._pipeline, self._steps = pipeline, steps
        self.released: dict[Origin, Begin] = {}  # where each goes on elsewhere
        self.lifted: dict[tuple[Stage, Origin], None] = {}  # by the operators that lift them
        self.begun: dict[Origin, None] = {}  # of these, origins that have begun

    def adopt(self, other: Shares) -> None:
        """Take over what another pipeline has let go and lifted."""
        self.released, self.lifted, self.begun = other.released, other.lifted, other.begun

    def saved(self) -> SavedShares:
        """What was let go and lifted, to be restored in another pipeline."""
        return SavedShares(
            released=self.released,
            lifts={stage: tuple(origins) for stage, origins in self._steps.lifted.items()},
            lifted=tuple(self.lifted),
            begun=tuple(self.begun),
        )

    def restore(self, found: SavedShares) -> None:
        """Go on with what another pipeline has let go and lifted."""
        self.know(found.lifts)
        self.released, self.lifted = found.released, dict.fromkeys(found.lifted)
        self.begun = dict.fromkeys(found.begun)

    # Where the device was

    def release(self, stage: Stage, origin: Origin) -> list[Emitted]:
        """An operator takes no more batches of an origin. Those that wait here pass by, and windows that waited for it
        may close. The lowest operator of the origin says where it goes on: it is released first. Earlier origins of the
        same device go too: a device with a disk that starts again sends batches of them again."""
        emitted: list[Emitted] = []
        step = next((s for s in self._steps.with_memory if s.stage == stage and not s.lifts), None)
        if step is None or step.intake is None or origin in step.intake.released:
            return emitted
        for earlier in sorted(step.intake.known()):
            if (earlier.node, earlier.name) == (origin.node, origin.name) and earlier != origin:
                self._let_go(step, step.intake, earlier, emitted)
        self._let_go(step, step.intake, origin, emitted)
        self._pipeline.desert(step, emitted)
        return emitted

    def _let_go(self, step: Step, intake: Intake, origin: Origin, emitted: list[Emitted]) -> None:
        if origin in intake.released:
            return
        following, held = intake.release(origin)
        self.released.setdefault(origin, Begin(ANYWHERE if following is None else following, _mark(step, origin)))
        emitted += [Emitted(self._steps.inputs_of(step.stage)[0], batch, passes=True) for batch in held]
        if step.waits is not None and step.waits.leave(origin):
            self._pipeline.rise(step, step.waits.low, emitted)

    def deserted(self) -> bool:
        """Whether an operator here has given all that it had, because nobody is left to send to it."""
        return any(step.deserted for step in self._steps.with_memory)

    def set_elsewhere(self, taken: Counted) -> None:
        """Operators on other nodes have counted these batches, or take them: operator and side, origin, batches."""
        found = [(read_taker(taker), origin, spans) for taker, origin, spans in taken]
        for step in self._steps.with_memory:
            if step.waits is not None and step.intake is not None:
                of = str(step.stage)
                step.intake.elsewhere = {(origin, by.side): spans for by, origin, spans in found if by.of == of}

    # Where its rows are lifted

    def lift(self, stage: Stage, origin: Origin) -> None:
        """An operator takes an origin batch by batch. The lowest operator holds its batches until it begins."""
        self.know({stage: (origin,)})
        if (stage, origin) not in self.lifted:
            self.lifted[stage, origin] = None
            lowest = next(self._lifting(origin), None)
            if lowest is not None and lowest.stage == stage and lowest.intake is not None and origin not in self.begun:
                lowest.intake.shut_out(origin)

    def meet(self, origin: Origin) -> None:
        """A batch of an origin comes. If it is an earlier origin of a device whose rows are lifted here, it is held
        until the old edge has said how far it came with it."""
        if origin.stage != SOURCE or any(origin in known for known in self._steps.lifted.values()):
            return
        device = (origin.node, origin.name)
        for stage, known in sorted(self._steps.lifted.items()):
            if any((each.node, each.name) == device for each in known):
                self.lift(stage, origin)

    def know(self, lifts: Mapping[Stage, Iterable[Origin]]) -> None:
        """These origins are lifted here from now on, or as soon as the input log says so."""
        self._steps.lift(lifts)

    def begin(self, origin: Origin, begin: Begin) -> list[Emitted]:
        """An origin begins. Batches below its number are in results of others, so they go on as a header."""
        emitted: list[Emitted] = []
        if origin in self.begun:
            return emitted
        self.begun[origin] = None
        ready: list[tuple[Step, Emitted]] = []
        number = None if begin.next == ANYWHERE else begin.next
        for n, step in enumerate(self._lifting(origin)):
            if step.intake is None:
                continue
            batches = step.intake.begin(origin, number)
            if isinstance(step.logic, WatermarkLogic):
                step.logic.begin_at(origin, begin.mark)
            elif number and isinstance(step.logic, LiftLogic):
                output = step.logic.process(empty(origin, 0, number - 1, begin.mark))
                self._pipeline.pass_on(step, output, emitted)
            ready += [(step, Emitted(step.stage, batch)) for batch in batches if n == 0]
        for step, each in ready:
            self._pipeline.compute(step, origin, each.batch, emitted, 0)
        return emitted

    def first(self, origin: Origin) -> list[Step]:
        """The operator that takes the batches of a lifted origin first; nobody if it is not lifted here."""
        return list(self._lifting(origin))[:1]

    def _lifting(self, origin: Origin) -> Iterator[Step]:
        """The operators that lift an origin, the lowest first."""
        steps = (step for step in self._steps.with_memory if step.lifts)
        return (s for s in sorted(steps, key=lambda s: s.stage) if origin in self._steps.lifted.get(s.stage, ()))


def _mark(step: Step, origin: Origin) -> int:
    """The watermark of an origin, as an operator knows it."""
    if isinstance(step.logic, WatermarkLogic):
        return step.logic.mark(origin)
    return MICROS_MIN if step.waits is None else step.waits.everything().get(origin, MICROS_MIN)
