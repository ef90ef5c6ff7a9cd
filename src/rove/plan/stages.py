"""A query's operators in a row, and what each of them asks of a network.

Law: stage *n* is what comes out of operator *n*. Inputs come before their readers and equal operators are one, so the
numbers are the same wherever the plan is read, and a batch that carries its stage can be finished by anyone.

    0 Source ─► 1 Filter ─► 2 Watermark ─► 3 Aggregate (partial) ─► 4 Aggregate (final)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rove.model.errors import PlanError
from rove.model.ids import Stage
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
from rove.plan.rules.share_beginnings import share_beginnings


@dataclass(frozen=True, slots=True)
class Stages:
    """Numbered operators, and the stages whose rows leave the query, by the name of the output."""

    operators: tuple[Operator, ...]
    outputs: tuple[tuple[str, Stage], ...]
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
                    raise PlanError("stages must stand behind their inputs")
                readers[below].append(Stage(n))
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "readers", tuple(map(tuple, readers)))

    @classmethod
    def of(cls, plans: Mapping[str, Operator]) -> Stages:
        """Number the operators of plans that belong together. O(operators)."""
        shared = share_beginnings(plans)
        found: dict[int, Operator] = {}
        for plan in shared.values():
            for op in _once(plan, found):
                found[id(op)] = op
        numbers = {key: Stage(n) for n, key in enumerate(found)}
        return cls(tuple(found.values()), tuple((name, numbers[id(plan)]) for name, plan in shared.items()))

    def sources(self) -> tuple[Stage, ...]:
        """The stages that devices feed."""
        return tuple(Stage(n) for n, op in enumerate(self.operators) if isinstance(op, Source | Received))


def stateful(operator: Operator) -> bool:
    """Whether it remembers rows: it has one owner in each place, and its output is a new origin's."""
    return isinstance(operator, Aggregate | Join | Scan | CountWindow)


def merges(operator: Operator) -> bool:
    """Whether it needs the rows of all origins in one place. A partial aggregate, per place, does not."""
    return stateful(operator) and not (isinstance(operator, Aggregate) and operator.mode == "partial")


def ordered(operator: Operator) -> bool:
    """Whether it must see each origin's batches in the order of their numbers."""
    return stateful(operator) or isinstance(operator, Watermark)


def stateless(operator: Operator) -> bool:
    """Whether any node may apply it to any batch by itself."""
    return isinstance(operator, Filter | Project | Map | Union)


def _once(plan: Operator, found: Mapping[int, Operator]) -> Iterator[Operator]:
    """Operators not found yet, inputs first, each once."""
    if id(plan) in found:
        return
    for each in plan.inputs:
        for op in _once(each, found):
            if id(op) not in found:
                yield op
    yield plan
