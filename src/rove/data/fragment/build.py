"""Builds the steps of a pipeline, the doors between them, and the origins that each step reads.

Law: steps are built once, from a plan and the stages that run here. A run of stateless operators becomes one step. An
operator that the edge cannot compute is refused here, before a batch comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from rove.data.fragment.intake import Intake
from rove.data.fragment.watermarks import Watermarks
from rove.data.operators.count_window import CountWindowConfig
from rove.data.operators.join import JoinConfig
from rove.data.operators.lifting import LiftLogic
from rove.data.operators.logic import Logic, Stateless
from rove.data.operators.open_rows import OpenRows
from rove.data.operators.scan import ScanConfig
from rove.data.operators.shared_results import SharedResults, key_of
from rove.data.operators.stateless_run import compiled, rows_through
from rove.data.operators.watermark import WatermarkConfig
from rove.data.operators.window import WindowConfig
from rove.model.batch import Batch
from rove.model.errors import EdgeRefusal, PlanError
from rove.model.ids import Origin, Stage
from rove.plan.explain import describe
from rove.plan.operators import (
    Aggregate,
    CountWindow,
    Filter,
    Join,
    Map,
    Operator,
    Project,
    Received,
    Scan,
    Source,
    Union,
    Watermark,
)
from rove.plan.sites import site
from rove.plan.stages import Stages, ordered, stateful

if TYPE_CHECKING:
    from rove.data.fragment.reconfigure.migration import Arriving

Config: TypeAlias = WindowConfig | JoinConfig | ScanConfig | CountWindowConfig
Waits: TypeAlias = Mapping[Stage, Iterable[Origin]]  # by the stage of the source or stateful operator they are


@dataclass(slots=True, eq=False)
class Door:
    """The output of one operator: whether it leaves the node here, and which steps read it, on which side."""

    stage: Stage
    leaves: bool
    forks: bool  # whether several operators read this output
    readers: list[tuple[Step, int]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Step:
    """One operator, or a run of stateless ones, and the door after it."""

    operator: Operator
    door: Door
    stage: Stage  # of the operator, the first one of a run
    run: list[Operator] = field(default_factory=list)
    logic: Logic | None = None
    intake: Intake | None = None
    waits: Watermarks | None = None
    open: OpenRows = field(default_factory=OpenRows)
    deserted: bool = False  # whether all its origins are gone for good
    arriving: Arriving | None = None  # its state, while it comes from another node
    arrived: dict[Origin, None] = field(default_factory=dict)  # the origins of states that have arrived
    feeds_memory: bool = False  # whether a stateful operator here takes the output in order
    lifts: bool = False  # whether it takes its origins batch by batch, beside the operator itself
    sides_alike: bool = False  # a union whose inputs read one source, so the same batch comes in on several sides
    _compiled: list[Stateless] | None = None
    _key: bytes | None = None

    @property
    def compiled(self) -> list[Stateless]:
        """The run of stateless operators, compiled when it is first needed, because batches seldom enter in the
        middle."""
        if self._compiled is None:
            self._compiled = compiled(self.run)
        return self._compiled

    def rows(self, data: pa.RecordBatch, shared: SharedResults | None) -> pa.RecordBatch:
        """Rows after the run of stateless operators. Another query may have computed them."""
        if shared is None:
            return rows_through(self.compiled, data)
        if self._key is None:
            self._key = key_of(self.run)
        return shared.through(self._key, self.compiled, data)

    @property
    def text(self) -> str:
        """What it computes."""
        return "; ".join(map(describe, self.run or [self.operator]))

    @property
    def identity(self) -> str:
        """The identity of a step within its plan. It is the same in other versions of the fragment."""
        return f"{self.door.stage} {describe(self.operator)}" + (" of shares" if self.lifts else "")


class Steps:
    """The steps of the operators `runs` of a plan, and a door for each of its stages.

    `makes` are the origins of the stateful operators here; `waits` the origins that come in. With `forgets`, intakes
    may begin in the middle of an origin's numbers. Operators take the origins in `lifts` batch by batch.
    """

    def __init__(
        self,
        stages: Stages,
        waits: Waits,
        makes: Mapping[Stage, Origin],
        runs: Collection[Stage],
        forgets: bool,
        lifts: Waits = MappingProxyType({}),
    ) -> None:
        self._stages, self._makes = stages, dict(makes)
        self.lifted: dict[Stage, dict[Origin, None]] = {}
        self.lift(lifts)
        outputs = {stage for _, stage in stages.outputs}
        self.doors = [
            Door(
                Stage(n),
                leaves=n in outputs or any(r not in runs and r not in lifts for r in stages.readers[n]),
                forks=len(stages.readers[n]) + (n in outputs) > 1,
            )
            for n in range(len(stages.operators))
        ]
        self._steps: dict[Stage, Step] = {}
        for stage in sorted(runs):
            self._build(stage, waits, forgets)
        lifting = [self._lifting(stage, forgets) for stage in sorted(lifts)]
        for step in sorted((*self._steps.values(), *lifting), key=lambda step: step.stage, reverse=True):
            readers = [reader for reader, _ in step.door.readers]
            step.feeds_memory = any(r.intake is not None or r.feeds_memory for r in readers)
            _fuse(step)
        self.with_memory = [step for step in (*self._steps.values(), *lifting) if step.logic is not None]

    def origins_into(self, operator: Operator, waits: Waits) -> list[Origin]:
        """The origins that an operator reads, by the names it sees, if `waits` come in."""
        apart = isinstance(operator, Join) or (isinstance(operator, Union) and _alike(operator))
        found: list[Origin] = []
        for side, below in enumerate(operator.inputs):
            origins = self.origins_of(below, waits)
            found += [o.on_side(side) for o in origins] if apart else origins
        return list(dict.fromkeys(found))

    def origins_of(self, operator: Operator, waits: Waits) -> list[Origin]:
        """The origins of an operator's output, if `waits` come in."""
        if not (isinstance(operator, Source | Received) or stateful(operator)):
            return self.origins_into(operator, waits)
        stage = next(Stage(n) for n, op in enumerate(self._stages.operators) if op is operator)
        own = [self._makes[stage]] if stage in self._steps and not self._steps[stage].deserted else []
        known = self.lifted.get(stage, {})
        lifted = [origin for origin in self.origins_into(operator, waits) if origin in known] if known else []
        return list(dict.fromkeys([*own, *waits.get(stage, ()), *lifted]))

    def into(self, step: Step, waits: Waits) -> list[Origin]:
        """The origins that a step takes, if `waits` come in: those that are lifted, or all others."""
        lifted = self.lifted.get(step.stage, {})
        return [o for o in self.origins_into(step.operator, waits) if (o in lifted) == step.lifts]

    def lift(self, origins: Waits) -> None:
        """Take origins batch by batch, by operator."""
        for stage, each in origins.items():
            self.lifted[stage] = {**self.lifted.get(stage, {}), **dict.fromkeys(each)}

    def takes(self, stage: Stage, origin: Origin) -> bool:
        """Whether a step of that stage here lifts an origin."""
        return origin in self.lifted.get(stage, ())

    def has(self, stage: Stage) -> bool:
        """Whether the operator of a stage runs here."""
        return stage in self._steps

    def readers_of(self, step: Step) -> list[tuple[Step, Origin]]:
        """The operators here that take a step's output in order, and the name by which each sees it."""
        own = self._makes[step.stage]
        return [
            (reader, name)
            for reader in self.with_memory
            for name in self.origins_into(reader.operator, {step.stage: (own,)})
            if name.unsided == own
        ]

    def inputs_of(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages of the batches that an operator takes, by its sides."""
        return tuple(self._stages.inputs[stage])

    def at_input(self, stage: Stage, name: Origin, batch: Batch) -> Batch:
        """A batch as the operator of a stage receives it: its stage is that of the operator's input."""
        inputs = self.inputs_of(stage)
        side = name.side[-1] if name.side and len(inputs) > 1 else 0
        return Batch(replace(batch.header, stage=inputs[side]), batch.data)

    def name_of(self, stage: Stage) -> Origin | None:
        """The name of a stateful operator here; None if there is none."""
        return self._makes.get(stage) if stage in self._steps else None

    def rename(self, stage: Stage, origin: Origin) -> None:
        """Give a stateful operator here another name."""
        self._makes[stage] = origin

    def _lifting(self, stage: Stage, forgets: bool) -> Step:
        """The step that takes origins batch by batch, beside the operator of a stage, or without it."""
        operator = self._stages.operators[stage]
        step = Step(operator, self.doors[stage], stage, intake=Intake((), forgets), lifts=True)
        match operator:
            case Watermark(column=column, delay_us=delay):
                step.logic = WatermarkConfig(column, delay, operator.schema, operator.replaces).build()
            case Aggregate():
                step.logic, step.waits = LiftLogic(operator), Watermarks(())
            case _:
                raise PlanError(f"`{describe(operator)}` cannot take its rows batch by batch")
        for side, below in enumerate(self._stages.inputs[stage]):
            self.doors[below].readers.append((step, side))
        return step

    def _build(self, stage: Stage, waits: Waits, forgets: bool) -> None:
        operator = self._stages.operators[stage]
        if isinstance(operator, Source | Received):
            return
        if not site(operator).edge:
            raise EdgeRefusal(f"`{describe(operator)}` cannot run at the edge: {site(operator).why}")
        step = self._steps[stage] = Step(operator, self.doors[stage], stage)
        match operator:
            case Filter() | Project() | Map():
                step.run.append(operator)
            case Union():
                step.sides_alike = _alike(operator)
            case Watermark(column=column, delay_us=delay):
                step.logic = WatermarkConfig(column, delay, operator.schema, operator.replaces).build()
            case _:
                step.logic = _config(operator).build(self._makes[stage])
        for side, below in enumerate(self._stages.inputs[stage]):
            self.doors[below].readers.append((step, side))
        if ordered(operator):
            origins = self.origins_into(operator, waits)
            step.intake = Intake(origins, forgets)
            step.waits = Watermarks(origins) if stateful(operator) else None


def ends(stages: Stages) -> list[int]:
    """For each stage, how many stateful operators and outputs a row of that stage goes to."""
    found = [0] * len(stages.operators)
    outputs = [stage for _, stage in stages.outputs]
    for n in reversed(range(len(found))):
        found[n] = outputs.count(Stage(n)) and 1
        for reader in stages.readers[n]:
            sides = stages.inputs[reader].count(Stage(n))
            found[n] += sides * (1 if stateful(stages.operators[reader]) else found[reader])
    return found


def _alike(union: Union) -> bool:
    """Whether two sides of a union read one origin."""
    heard = [maker for side in union.inputs for maker in dict.fromkeys(_makers_below(side))]
    return len(set(heard)) < len(heard)


def _makers_below(operator: Operator) -> list[int]:
    """The sources and stateful operators right below, as the ids of their objects."""
    if isinstance(operator, Source | Received) or stateful(operator):
        return [id(operator)]
    return [m for i in operator.inputs for m in _makers_below(i)]


def _config(operator: Operator) -> Config:
    match operator:
        case Aggregate():
            return WindowConfig(operator)
        case Join():
            return JoinConfig(operator)
        case Scan():
            return ScanConfig(operator)
        case CountWindow():
            return CountWindowConfig(operator)
    raise PlanError(f"`{describe(operator)}` has no form at the edge")


def _fuse(step: Step) -> None:
    """Merge the run of a stateless single reader into this step, so that a run is one hop. Called for later steps
    first."""
    if not step.run or step.door.leaves or len(step.door.readers) != 1:
        return
    reader, _ = step.door.readers[0]
    if reader.run:
        step.run, step.door = step.run + reader.run, reader.door
