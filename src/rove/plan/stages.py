"""A query's operators, numbered, and what each operator needs from the network.

Law: stage *n* is the output of operator *n*. Inputs come before their readers and equal operators share one number, so
the numbers are the same wherever the plan is read, and any node can finish a batch that carries its stage.

    0 Source ─► 1 Filter ─► 2 Watermark ─► 3 Aggregate (partial) ─► 4 Aggregate (final)

`At` is not a stage. It is a hint where the stages below it run. Sources have no hint: they run on their devices. For a
windowed aggregate, `device` and `edge` are hints for its partial half. The final half, and filters and columns behind
it, have none: all rows meet there, and devices may use several edges. The name of a node, and `cloud`, are for both
halves. If such a hint stands above the groupBy and another `At` right below it, the partial half may run anywhere from
there upwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rove.model.errors import PlanError
from rove.model.ids import Stage
from rove.plan.explain import describe
from rove.plan.operators import (
    Aggregate,
    At,
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
from rove.plan.rules.rewrite import with_inputs
from rove.plan.sites import refuse_tables_alone

PARTIAL_TIERS = ("device", "edge")  # hints that are for the partial half of an aggregate


@dataclass(frozen=True, slots=True)
class Stages:
    """Numbered operators, the stage of each output by the output's name, and the hints where users want stages to
    run."""

    operators: tuple[Operator, ...]
    outputs: tuple[tuple[str, Stage], ...]
    hints: tuple[tuple[Stage, str], ...] = ()
    inputs: tuple[tuple[Stage, ...], ...] = field(init=False)
    readers: tuple[tuple[Stage, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        number = {id(op): Stage(n) for n, op in enumerate(self.operators)}
        try:
            inputs = tuple(tuple(number[id(i)] for i in op.inputs) for op in self.operators)
        except KeyError as error:
            raise PlanError("an operator reads from one that is not among the stages") from error
        readers: list[list[Stage]] = [[] for _ in self.operators]
        for n, each in enumerate(inputs):
            for below in dict.fromkeys(each):
                if below >= n:
                    raise PlanError("an operator must come after its inputs")
                readers[below].append(Stage(n))
        self._check_numbers()
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "readers", tuple(map(tuple, readers)))

    def _check_numbers(self) -> None:
        if any(isinstance(op, At) for op in self.operators):
            raise PlanError("at(…) is a hint on stages, not a stage: number a plan with Stages.of")
        if any(not 0 <= n < len(self.operators) for n in (*dict(self.outputs).values(), *dict(self.hints))):
            raise PlanError(f"an output or a hint names a stage that is not among the {len(self.operators)} there are")
        if len(dict(self.outputs)) < len(self.outputs) or len(dict(self.hints)) < len(self.hints):
            raise PlanError("two outputs of one name, or two hints on one stage")
        for _, output in self.outputs:
            refuse_tables_alone(self.operators[output])

    @classmethod
    def of(cls, plans: Mapping[str, Operator]) -> Stages:
        """Number the operators of plans that belong together. O(operators)."""
        known: dict[Operator, Operator] = {}
        said: dict[int, str] = {}
        shared = {name: _settled(plan, None, known, said) for name, plan in plans.items()}
        found: dict[int, Operator] = {}
        for plan in shared.values():
            for op in _once(plan, found):
                found[id(op)] = op
        numbers = {key: Stage(n) for n, key in enumerate(found)}
        outputs = tuple((name, numbers[id(plan)]) for name, plan in shared.items())
        return cls(tuple(found.values()), outputs, tuple((n, said[key]) for key, n in numbers.items() if key in said))

    def sources(self) -> tuple[Stage, ...]:
        """The stages that devices feed."""
        return tuple(Stage(n) for n, op in enumerate(self.operators) if isinstance(op, Source | Received))


def stateful(operator: Operator) -> bool:
    """Whether the operator keeps rows. It has one owner in each place, and its output has an origin of its own."""
    return isinstance(operator, Aggregate | Join | Scan | CountWindow)


def merges(operator: Operator) -> bool:
    """Whether the operator needs the rows of all origins in one place. A partial aggregate does not."""
    return stateful(operator) and not (isinstance(operator, Aggregate) and operator.mode == "partial")


def ordered(operator: Operator) -> bool:
    """Whether the operator must see each origin's batches in the order of their numbers."""
    return stateful(operator) or isinstance(operator, Watermark)


def stateless(operator: Operator) -> bool:
    """Whether any node may apply the operator to any single batch."""
    return isinstance(operator, Filter | Project | Map | Union)


def _settled(plan: Operator, where: str | None, known: dict[Operator, Operator], said: dict[int, str]) -> Operator:
    """The plan without its hints, with equal parts shared. `said` collects the hints by the identity of the
    operator."""
    if isinstance(plan, At):
        return _settled(plan.input, plan.where, known, said)
    rebuilt = with_inputs(plan, tuple(_settled(i, where, known, said) for i in plan.inputs))
    operator = known.setdefault(rebuilt, rebuilt)
    free = isinstance(plan, Aggregate) and plan.mode == "partial" and isinstance(plan.input, At)
    free = _after_all_meet(plan) if where in PARTIAL_TIERS else free
    if where is None or free or isinstance(plan, Source | Received):
        return operator
    if (other := said.setdefault(id(operator), where)) != where:
        raise PlanError(
            f"`{describe(operator)}` is shared by two branches, one at `{other}`, one at `{where}`; "
            "call at(…) on the shared step, before the branches"
        )
    return operator


def _after_all_meet(plan: Operator) -> bool:
    """Whether a step is the final half of an aggregate, or a filter or columns right after it."""
    if isinstance(plan, Filter | Project):
        return _after_all_meet(plan.input)
    return isinstance(plan, Aggregate) and plan.mode == "final"


def _once(plan: Operator, found: Mapping[int, Operator]) -> Iterator[Operator]:
    """The operators that are not in `found` yet, inputs first, each once."""
    if id(plan) in found:
        return
    for each in plan.inputs:
        for op in _once(each, found):
            if id(op) not in found:
                yield op
    yield plan
