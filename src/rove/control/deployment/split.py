"""Splits a placed plan in two: the lower part for workers, the upper part for Spark.

Law: the lower part is a plan of its own, with its own numbers. Its outputs have the names under which the upper part
receives them: edge0, edge1 … in the order in which the upper part reads them, as in `rove.plan.spark.cuts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from rove.model.ids import Stage
from rove.model.messages import plan_digest
from rove.plan.codec import encode
from rove.plan.operators import Operator, Received
from rove.plan.rules.rewrite import with_inputs
from rove.plan.stages import Stages

OUTPUT = "out"  # the output of a plan that needs no Spark


@dataclass(frozen=True)
class Split:
    """`lower` is for workers, `upper` is for Spark, by output (empty if Spark has nothing to do); and the number that
    each stage of the whole plan has in the lower part."""

    lower: Stages
    upper: Mapping[str, Operator]
    numbers: Mapping[Stage, Stage]

    @cached_property
    def plan(self) -> bytes:
        """The lower part as bytes."""
        return encode(self.lower)

    @cached_property
    def digest(self) -> str:
        """The digest of the plan. Fragments name it, and the plan is sent once."""
        return plan_digest(self.plan)


def split(stages: Stages, spark: Collection[Stage]) -> Split:
    """Cut a plan where Spark begins. O(stages)."""
    names: dict[Stage, str] = {}
    settled: dict[Stage, Operator] = {}

    def settle(stage: Stage) -> Operator:
        op = stages.operators[stage]
        if stage in settled:
            return settled[stage]
        if stage in spark:
            above = with_inputs(op, tuple(settle(i) for i in stages.inputs[stage]))
        else:
            above = Received(names.setdefault(stage, f"edge{len(names)}"), op.schema, op.traits)
        settled[stage] = above
        return above

    if spark:
        upper = {name: settle(stage) for name, stage in stages.outputs}
        plans = {name: stages.operators[stage] for stage, name in names.items()}
    else:
        upper = {}
        alone = len(stages.outputs) == 1
        plans = {OUTPUT if alone else name: stages.operators[stage] for name, stage in stages.outputs}
    lower = Stages.of(plans)
    number = {op: Stage(n) for n, op in enumerate(lower.operators)}
    numbers = {Stage(n): number[op] for n, op in enumerate(stages.operators) if op in number}
    return Split(lower, upper, numbers)
