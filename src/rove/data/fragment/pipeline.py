"""The running operators of a fragment: batches enter at any stage, and leave where the next operator is elsewhere.

Law: a batch is pushed through one step after the other and is held only in an operator's state. It enters at the stage
it has reached, and only the missing operators are applied. Runs of stateless steps touch the rows only; a new header is
made once, after the last of them. If a plan forks and one branch goes on elsewhere, the batch leaves as it is, and the
node above takes all branches. Here it only goes into branches that end with an operator which takes it in order here.

A stateful operator takes each batch of an origin once and in order (`intake`), and not before its sender has confirmed
the ack, if that is needed. It waits for the origins it was told of and no others, and gets the lowest of their
watermarks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

import pyarrow as pa
from msgspec.structs import replace

from rove.data.counts import Count
from rove.data.fragment.build import Door, Step, Steps, ends
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.reconfigure.moves import Moves
from rove.data.fragment.reconfigure.shares import Shares
from rove.data.fragment.saved import Saving
from rove.data.link.unheard import Confirmation
from rove.data.operators.faulted import TEXT_MAX, Fault, rows_outside, set_aside, try_parts
from rove.data.operators.join import JoinLogic
from rove.data.operators.lifting import LiftLogic
from rove.data.operators.logic import NOTHING, Logic, Output, stepped
from rove.data.operators.ordered import OrderedLogic
from rove.data.operators.shared_results import SharedResults
from rove.data.operators.stateless_run import rows_through
from rove.data.operators.window import WindowLogic
from rove.model.batch import Batch, Header
from rove.model.clock import END
from rove.model.errors import DataError, must
from rove.model.ids import Origin, Stage, Taker, read_taker
from rove.model.spans import Coverage, Spans, minus
from rove.plan.stages import Stages, stateful


class Pipeline:
    """The operators `runs` of a plan (all of them if it is not given).

    `waits` are the origins that come in, by the stage of the source or stateful operator that makes them; `makes` the
    origins of the stateful operators here. With `forgets` an origin may begin in the middle of its numbers, after a
    restart. With `goes_on`, output goes to another node, which applies what is missing; without, it has reached its
    end. Pipelines on one node have results in common (`shared`). Operators take the origins in `lifts` batch by batch.
    """

    def __init__(
        self,
        stages: Stages,
        waits: Mapping[Stage, Iterable[Origin]],
        makes: Mapping[Stage, Origin],
        runs: Collection[Stage] | None = None,
        forgets: bool = False,
        goes_on: bool = False,
        shared: SharedResults | None = None,
        lifts: Mapping[Stage, Iterable[Origin]] = MappingProxyType({}),
    ) -> None:
        self._stages, self._goes_on, self._shared = stages, goes_on, shared
        self._waits: dict[Stage, dict[Origin, None]] = {s: dict.fromkeys(origins) for s, origins in waits.items()}
        here = {Stage(n) for n in range(len(stages.operators))} if runs is None else set(runs)
        self._steps = Steps(stages, self.waited(), makes, here, forgets, lifts)
        self._with_memory = self._steps.with_memory
        self.faults = 0  # batches with rows that could not be computed
        self.fault = ""  # the reason of the first one
        self.recounts = 0  # how often something was counted in another way after it had left
        self.counts: dict[Origin, Count] = {}  # by origin
        self._ends = ends(stages)
        self.moves, self.shares = Moves(self, self._steps), Shares(self, self._steps)
        self.saving = Saving(self, self._steps)
        self._coming: tuple[Header, Confirmation] | None = None  # the batch that is processed, if it needs one

    def process(self, stage: Stage, batch: Batch, confirmation: Confirmation | None = None) -> list[Emitted]:
        """Process a batch that has reached `stage`. O(rows × operators missing here)."""
        emitted: list[Emitted] = []
        self.shares.meet(batch.header.origin)
        self._coming = None if confirmation is None else (batch.header, confirmation)
        self._send(self._steps.doors[stage], batch, emitted)
        self._coming = None
        return emitted

    def confirmed(self, confirmation: Confirmation) -> list[Emitted]:
        """The senders of a batch have confirmed its ack, or kept the batch. Operators that waited for that go on."""
        emitted: list[Emitted] = []
        for step in self._with_memory:
            for name in [name for identity, name in confirmation.places if identity == step.identity]:
                self.let_in(step, name, emitted)
        return emitted

    def skip(self, counted: Iterable[tuple[str, Origin, Spans]]) -> None:
        """An earlier start of this node has computed these batches to the end: operator and side, origin, batches."""
        for taker, origin, spans in counted:
            found = read_taker(taker)
            for step in self._with_memory:
                if step.waits is not None and step.intake is not None and str(step.stage) == found.of:
                    step.intake.counted[origin, found.side] = spans

    def skip_as(self, other: Pipeline) -> None:
        """Skip what another pipeline of the same operators was told to `skip`."""
        told = {step.identity: step.intake.counted for step in other._with_memory if step.intake is not None}
        for step in self._with_memory:
            if step.intake is not None:
                step.intake.counted = told.get(step.identity, {})

    def let_in(self, step: Step, name: Origin, emitted: list[Emitted], anyway: bool = False) -> None:
        for each in () if step.intake is None else step.intake.go_on(name, anyway):
            self.compute(step, name, each, emitted, name.side[-1] if name.side else 0)

    def expect(self, waits: Mapping[Stage, Iterable[Origin]]) -> list[Emitted]:
        """Wait for more origins. The watermarks of origins that returned may close windows. O(new origins × steps)."""
        emitted: list[Emitted] = []
        new: dict[Stage, tuple[Origin, ...]] = {}
        for stage, origins in waits.items():
            known = self._waits.setdefault(stage, {})
            new[stage] = tuple(origin for origin in origins if origin not in known)
            known |= dict.fromkeys(new[stage])
        for step in self._with_memory:
            into = self._steps.into(step, new)
            step.deserted &= not into
            if step.intake is not None:
                step.intake.expect(into)
            if step.waits is not None and not step.lifts and step.waits.expect(into):
                self.rise(step, step.waits.low, emitted)
        return emitted

    def know(self, origins: Mapping[Stage, Iterable[Origin]], forgotten: Collection[Origin] | None = None) -> None:
        """Accept batches of these origins too, without waiting for them. Earlier batches of `forgotten` makers are with
        a node that has died."""
        for step in self._with_memory:
            if step.intake is not None:
                step.intake.expect(self._steps.into(step, origins))
                step.intake.forgotten = step.intake.forgotten if forgotten is None else forgotten

    def origins_at(self, stage: Stage, waits: Mapping[Stage, Iterable[Origin]]) -> list[Origin]:
        """The origins of batches that reach a stage, if these origins come in."""
        return self._steps.origins_of(self._stages.operators[stage], waits)

    def names(self) -> dict[Stage, Origin]:
        """The names that stateful operators here have now."""
        names = ((step.stage, self._steps.name_of(step.stage)) for step in self._with_memory if not step.lifts)
        return {stage: name for stage, name in names if name is not None}

    def waited(self) -> dict[Stage, tuple[Origin, ...]]:
        """The origins that come in from elsewhere, by stage."""
        return {stage: tuple(origins) for stage, origins in self._waits.items()}

    def leave(self, stage: Stage, origins: Collection[Origin]) -> list[Emitted]:
        """Stop waiting for these origins. Windows that waited for them may close. Their batches are still accepted, and
        their late rows are late. O(these origins × steps)."""
        here = self._waits.get(stage, {})
        for origin in origins:
            here.pop(origin, None)
        # The same origin may still come in at another stage.
        left = {s: tuple(o for o in origins if o in known) for s, known in self._waits.items()}
        emitted: list[Emitted] = []
        for step in self._with_memory if origins else ():
            wanted = set(self._steps.into(step, left))
            for name in self._steps.into(step, {stage: tuple(origins)}):
                if name not in wanted:
                    self.let_in(step, name, emitted, anyway=True)
                    if step.waits is not None and step.waits.leave(name):
                        self.rise(step, step.waits.low, emitted)
        return emitted

    def gone(self, origins: Collection[Origin]) -> list[Emitted]:
        """These origins are gone for good, and their missing batches will not come. Batches that waited for them go
        on."""
        emitted: list[Emitted] = []
        steps = [step for step in self._with_memory if step.intake is not None]
        held = [
            (step, step.intake, name, batch)
            for step in steps
            if step.intake is not None
            for name in list(step.intake.table())
            if name.unsided in origins
            for batch in step.intake.leave(name)
        ]
        for step, intake, name, batch in held:
            side = name.side[-1] if name.side else 0
            for each in intake.offer(name, batch):
                self.compute(step, name, each, emitted, side)
        for step in steps:
            self.desert(step, emitted)
        return emitted

    def desert(self, step: Step, emitted: list[Emitted]) -> None:
        """If no origin is left to wait for, close the open windows, and no more: an origin that joins later with newer
        rows is in time. Operators here no longer wait for the output, and may have no other origin to wait for."""
        waits, intake = step.waits, step.intake
        if waits is None or intake is None or step.deserted or waits.waited() or not intake.deserted or step.lifts:
            return
        if (until := step.open.last()) is not None:
            self.rise(step, until, emitted)
        readers = self._steps.readers_of(step)
        step.deserted = True
        for reader, name in readers:
            if reader.waits is not None and reader.intake is not None:
                reader.intake.leave(name)
                if reader.waits.leave(name):
                    self.rise(reader, reader.waits.low, emitted)
                self.desert(reader, emitted)

    def origins(self) -> set[Origin]:
        """The origins that operators here take in order, or have taken."""
        return {name for step in self._with_memory if step.intake is not None for name in step.intake.known()}

    def end(self, runs: Collection[Stage]) -> list[Emitted]:
        """Keep only the operators `runs` here. The others emit all that they hold, because no other node has it."""
        emitted: list[Emitted] = []
        for step in (step for step in self._with_memory if step.stage not in runs and not step.lifts):
            for name in () if step.intake is None else step.intake.table():
                self.let_in(step, name, emitted, anyway=True)
            if (until := step.open.last()) is not None:
                self.rise(step, until, emitted)
        return emitted

    def finish(self) -> list[Emitted]:
        """No more rows follow, so close every window."""
        emitted: list[Emitted] = []
        for step in self._with_memory:
            if step.waits is not None:
                self.rise(step, END, emitted)
        return emitted

    @property
    def duplicates(self) -> int:
        return sum(s.intake.duplicates for s in self._with_memory if s.intake is not None)

    def held(self) -> Iterable[Batch]:
        """The batches that came too early for an operator and wait for earlier ones, or for its state."""
        yield from self.moves.early()
        for step in self._with_memory:
            if step.intake is not None:
                yield from step.intake.held()

    def open_batches(self) -> Iterable[tuple[Origin, Coverage]]:
        """The batches with rows in open windows, by origin, also in states that are leaving. O(origins ×
        operators)."""
        opened = (*(step.open for step in self._with_memory), *self.moves.open())
        return (found for each in opened for found in each.batches())

    def taken(self) -> Iterable[tuple[str, Origin, Spans]]:
        """The batches that each stateful operator has taken, without those in open windows: the operator and side, the
        origin, the batches. O(origins × operators)."""
        yield from self.moves.taken()
        yield from self.taken_by(self._with_memory)

    def taken_by(self, steps: Iterable[Step]) -> Iterator[tuple[str, Origin, Spans]]:
        for step in steps:
            if step.waits is None or step.intake is None:
                continue
            open_ = {origin: batches.spans() for origin, batches in step.open.batches()}
            for name, spans in step.intake.spans():
                done = minus(spans, open_[name.unsided]) if name.unsided in open_ else spans
                yield str(Taker(str(step.door.stage), name.side)), name.unsided, done

    def took(self, origin: Origin, seq: int) -> bool:
        """Whether a stateful operator has taken a batch."""
        return self.moves.took(origin, seq) or any(True for _ in self._takers(origin, seq))

    def _takers(self, origin: Origin, seq: int) -> Iterator[Step]:
        """The stateful operators that have taken a batch, once for each of their sides."""
        for step in self._with_memory:
            for name in () if step.waits is None or step.intake is None else step.intake.known():
                if name.unsided == origin and step.intake is not None and step.intake.took(name, seq):
                    yield step

    def gaps(self, origin: Origin, upto: int) -> list[tuple[int, int]]:
        """The batches of an origin below `upto` that an operator here still waits for, as first and last numbers."""
        steps = self.shares.first(origin) or self._with_memory  # others get what the first has taken
        intakes = [step.intake for step in steps if step.intake is not None]
        names = [(intake, name) for intake in intakes for name in intake.known() if name.unsided == origin]
        return sorted({gap for intake, name in names for gap in intake.gaps(name, upto)})

    def low(self) -> int | None:
        """The lowest watermark of the operators here; None if no operator waits for origins."""
        return min(self.lows().values(), default=None)

    def lows(self) -> dict[Stage, int]:
        """The watermark of each operator here, without those whose state has not begun to come."""
        steps = (s for s in self._with_memory if s.arriving is None or s.arriving.has_frontier)
        return {step.stage: step.waits.low for step in steps if step.waits is not None and not step.lifts}

    def adopt(self, other: Pipeline, alike: bool = True) -> None:
        """Take over the operators of another pipeline with their state. The plans are `alike` (plan/rules/amend), or
        only operators that are the same in both go on."""
        self._steps.lift(other._steps.lifted)
        running = {step.identity: step for step in other._with_memory}
        for step in self._with_memory:
            if (old := running.get(step.identity)) is not None:
                step.logic, step.intake, step.waits, step.open = old.logic, old.intake, old.waits, old.open
                step.deserted, step.arriving, step.arrived = old.deserted, old.arriving, old.arrived
        self.counts, self.faults, self.recounts = other.counts, other.faults, other.recounts
        self.moves.leaving = other.moves.leaving
        self.shares.adopt(other.shares)
        mine, theirs = self._stages.operators, other._stages.operators
        waited = other.waited().items()
        self.expect({n: found for n, found in waited if alike or (n < len(mine) and mine[n] == theirs[n])})

    def count(self, origin: Origin) -> Count:
        """The counts of an origin, by its name at the source."""
        return self.counts.setdefault(origin.unsided, Count())

    def late_went(self, header: Header) -> None:
        """Late rows of this node were evicted. They count as evicted and no longer as late, as far as operators here
        have counted them. Rows at fault count as faulted, whether they are kept or not."""
        if header.at_fault:
            return
        times, count = 1, self.count(header.origin)
        if not stateful(self._stages.operators[header.stage]):  # operators that took the rest of the batch count them
            times = sum(True for _ in self._takers(header.origin.unsided, header.seq))
        rows = min(count.late, header.born * times)
        self.recounts += 1
        count.late -= rows
        count.evicted += rows

    def validate(self) -> None:
        """Operators with memory take in order what they wait for. O(origins, and batches held)."""
        for step in self._with_memory:
            if step.intake is not None:
                step.intake.validate()
            if step.waits is not None:
                step.waits.validate()
                strange = step.waits.waited() - (() if step.intake is None else step.intake.known())
                strange -= set() if step.arriving is None else {step.arriving.origin}
                must(not strange, "an operator lets in whom it waits for", step.door.stage, sorted(strange))
        within: dict[Origin, int] = {}
        for step in self._with_memory:
            step.open.validate()
            for origin, rows in step.open.rows().items():
                within[origin] = within.get(origin, 0) + rows
        for origin, c in self.counts.items():
            counted = min(c.produced, c.late, c.evicted, c.lost, c.open, c.faulted) >= 0
            must(counted, "rows are counted", origin, c)
            must(c.open == within.get(origin, 0), "rows of open windows are counted", origin, c, within)

    # Running

    def _send(self, door: Door, batch: Batch, emitted: list[Emitted], left: bool = False) -> None:
        """Send a batch through a door. A batch that has `left` goes on above, and does not leave a second time."""
        if door.leaves and not left:
            emitted.append(Emitted(door.stage, batch))
            left = self._goes_on
        for step, side in door.readers:
            if step.intake is None:
                if not left or step.feeds_memory:
                    self._deliver(step, batch, emitted, side, left)
            elif self._hears(step, batch.header.origin, side):
                self._deliver(step, batch, emitted, side)
            elif not (door.forks or left or self._heard_beside(step, batch.header.origin)):
                # This reader takes the batch on another node, or has taken it; unless another reader sends it there,
                # the batch passes by.
                emitted.append(Emitted(door.stage, batch, passes=True))

    def _hears(self, step: Step, origin: Origin, side: int) -> bool:
        """Whether an ordered operator takes an origin's batches here."""
        name = origin.on_side(side) if isinstance(step.logic, JoinLogic) else origin
        if step.lifts != self._steps.takes(step.stage, name):
            return False
        return step.intake is not None and step.intake.expects(name)

    def _heard_beside(self, step: Step, origin: Origin) -> bool:
        """Whether it is the other step of its stage here that takes an origin's batches, or sends them on."""
        return self._steps.has(step.stage) if step.lifts else self._steps.takes(step.stage, origin)

    def _deliver(self, step: Step, batch: Batch, emitted: list[Emitted], side: int, left: bool = False) -> None:
        if step.intake is not None:
            origin = batch.header.origin.on_side(side) if isinstance(step.logic, JoinLogic) else batch.header.origin
            for each in step.intake.offer(origin, batch, self._confirmation(step, origin, batch.header)):
                self.compute(step, origin, each, emitted, side)
            return
        if step.sides_alike:
            batch = Batch(replace(batch.header, origin=batch.header.origin.on_side(side)), batch.data)
        elif step.run and batch.data is not None:
            try:
                batch = stepped(batch.header, step.rows(batch.data, self._shared))
            except DataError as fault:
                batch = self._without_faults(step, batch, fault, emitted)
        self._send(step.door, batch, emitted, left)

    def _confirmation(self, step: Step, name: Origin, header: Header) -> Confirmation | None:
        """The confirmation that a stateful operator waits for before it computes a batch. If steps before it take the
        batch in order, the first of them waits. Output of operators here needs none: its input was confirmed."""
        if self._coming is None or not (step.waits is not None or step.feeds_memory):
            return None
        came, confirmation = self._coming
        if (came.origin.unsided, came.seq) != (header.origin.unsided, header.seq):
            return None
        confirmation.places.append((step.identity, name))
        return confirmation

    def compute(self, step: Step, origin: Origin, batch: Batch, emitted: list[Emitted], side: int) -> None:
        batch = batch if step.intake is None else step.intake.once(origin, batch)
        logic, header = step.logic, batch.header
        if logic is None:
            return
        if step.waits is not None:
            self.count(header.origin).take(header)
        try:
            output = _process(logic, batch, side)
        except DataError as fault:
            output, batch = self._process_rest(step, logic, batch, side, fault, emitted)
            header = batch.header
        if output is not NOTHING:
            self.pass_on(step, output, emitted)
            if output.open_until is not None:
                rows = header.born - sum(late.header.born for late in output.late)
                step.open.take(header, rows, output.open_until)
                count = self.count(header.origin)
                count.delivered -= rows
                count.open += rows
        waits = step.waits
        if waits is not None and waits.heard(origin, header.watermark):
            self.rise(step, waits.low, emitted)

    def rise(self, step: Step, low: int, emitted: list[Emitted]) -> None:
        """The low watermark of an operator has risen. Windows may close, and then their rows are delivered."""
        if step.logic is None:
            return
        self.pass_on(step, step.logic.watermark(low), emitted)
        for origin, rows in step.open.close(low):
            count = self.count(origin)
            count.open -= rows
            count.delivered += rows

    def pass_on(self, step: Step, output: Output, emitted: list[Emitted]) -> None:
        for batch in output.batches:
            if step.waits is not None and batch.rows and not step.lifts:
                self.count(batch.header.origin).make(batch.header, batch.rows * self._ends[step.door.stage])
            self._send(step.door, batch, emitted)
        for batch in output.late:
            if step.waits is not None:
                count, rows = self.count(batch.header.origin), batch.header.born
                count.saw(batch.header)
                count.delivered -= rows
                count.late += rows
            emitted.append(Emitted(step.door.stage, batch, late=True))
        for batch, fault in output.faults:
            self.faults += 1
            emitted.append(Emitted(step.door.stage, batch, fault=fault))
            self._send(step.door, batch, emitted)

    # Faults

    def _without_faults(self, step: Step, batch: Batch, fault: DataError, emitted: list[Emitted]) -> Batch:
        """The results of the rows that can be computed by a stateless step. The others are set aside."""
        tried = try_parts(lambda data: rows_through(step.compiled, data), batch.data, fault)
        header = self._set_aside(step, batch, tried.faults, emitted)
        computed = [part for part in tried.results if part.num_rows]
        data = pa.concat_batches(computed) if computed else None
        return stepped(header, data)

    def _process_rest(
        self, step: Step, logic: Logic, batch: Batch, side: int, fault: DataError, emitted: list[Emitted]
    ) -> tuple[Output, Batch]:
        """Process the rows of a batch that an operator with memory can compute. The others are set aside. Returns the
        output, and the batch without them."""
        data, whole = batch.data, [Fault(0, batch.rows, fault)]
        faults, output, rest = whole, NOTHING, None
        if isinstance(logic, WindowLogic | OrderedLogic | LiftLogic) and not batch.header.folded:
            faults = try_parts(logic.probe, data, fault).faults
            rest = rows_outside(data, faults)
        if rest is not None:
            try:
                output = _process(logic, stepped(batch.header, rest), side)
            except DataError as again:  # not of single rows
                faults, rest = [Fault(0, batch.rows, again)], None
        header = self._set_aside(step, batch, faults, emitted)
        if step.waits is not None:
            count, rows = self.count(header.origin), header.faulted - batch.header.faulted
            count.delivered -= batch.header.born - header.born
            count.faulted += rows
            count.lost += header.lost - batch.header.lost
        elif rest is None:
            self._send(step.door, stepped(header, None), emitted)
        return output, stepped(header, rest)

    def _set_aside(self, step: Step, batch: Batch, faults: list[Fault], emitted: list[Emitted]) -> Header:
        """Send rows at fault to the fault table. Returns the header of the batch without them. Folded rows are states
        that no table can hold; they are lost."""
        header = batch.header
        self.faults += 1
        self.fault = self.fault or f"batch {header.seq} of `{header.origin}`: {str(faults[0].error)[:TEXT_MAX]}"
        if header.folded:
            emitted.append(Emitted(step.stage, stepped(header, None), fault=faults[0].error))
            return replace(header, born=0, lost=header.lost + header.born)
        aside = set_aside(header, batch.data, faults, step.text)
        emitted.append(Emitted(step.stage, aside, late=True, fault=faults[0].error))
        return replace(header, born=header.born - aside.rows, faulted=header.faulted + aside.rows)


def _process(logic: Logic, batch: Batch, side: int) -> Output:
    return logic.process(batch, side) if isinstance(logic, JoinLogic) else logic.process(batch)
