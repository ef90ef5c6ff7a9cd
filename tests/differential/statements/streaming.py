"""What streaming Spark says of a statement over streams of the same columns, and what comes of Rove's plan for it.

Law: nothing runs. Spark's own checks for streams look at what it has analyzed, in both output modes that Rove has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rove.cloud.analysis import check_stream, empty_stream
from rove.cloud.compile import compile_plan, refusal
from rove.cloud.start.session import frame_of
from rove.model.errors import PlanError
from rove.model.schema import type_name
from rove.plan.operators import Operator, Received, walk
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import highest_cut
from rove.plan.spark.streaming import refuse_unstreamable
from tests.differential.statements.verdicts import STATIC, tables

MODES = ("append", "update")
Reasons = dict[str, str]  # why a statement cannot run, by output mode; no entry if it can


@dataclass(frozen=True, slots=True)
class Streamed:
    """What streaming Spark says of a statement as it is written (`theirs`), what it says of its part of Rove's plan
    (`ours`), and what is said of that plan where no Spark is at hand (`listed`)."""

    theirs: Reasons
    ours: Reasons = field(default_factory=dict)
    listed: Reasons = field(default_factory=dict)


class StreamingSpark:
    """A Spark of its own in which the names of the corpus are streams without rows."""

    def __init__(self, spark: Any) -> None:
        from pyspark.sql import functions as F

        self.spark, self.own = spark, spark.newSession()
        self._empty: dict[Received, Any] = {}
        for name, table in tables().items():
            if name == STATIC:
                frame_of(self.own, table).createOrReplaceTempView(name)
                continue
            rate = self.own.readStream.format("rate").load()
            columns = (F.lit(None).cast(type_name(f.type)).alias(f.name) for f in table.schema)
            rate.select(*columns).withWatermark("ts", "1 minute").createOrReplaceTempView(name)

    def streamed(self, text: str, plan: Operator | None) -> Streamed:
        """All that is said of a statement and its plan. There is no plan of a statement that Rove refuses."""
        theirs = self.refusals(text)
        return (
            Streamed(theirs) if plan is None else Streamed(theirs, self.refusals_of_plan(plan), refusals_of_list(plan))
        )

    def refusals(self, text: str) -> Reasons:
        """Why streaming Spark cannot run a statement as it is written."""
        try:
            frame = self.own.sql(text)
        except Exception as error:
            return dict.fromkeys(MODES, refusal(str(error)))
        return _refused_by(lambda mode: check_stream(frame, mode))

    def refusals_of_plan(self, plan: Operator) -> Reasons:
        """Why streaming Spark cannot run its part of a plan."""
        cut = highest_cut(optimize(plan))
        if not cut.needs_spark:
            return {}
        for op in walk(cut.upper):
            if isinstance(op, Received) and op not in self._empty:
                self._empty[op] = empty_stream(self.spark, op)
        frames = {op.stream: self._empty[op] for op in walk(cut.upper) if isinstance(op, Received)}
        try:
            frame = compile_plan(cut.upper, frames)
        except PlanError as error:
            return dict.fromkeys(MODES, str(error).splitlines()[0])
        return _refused_by(lambda mode: check_stream(frame, mode))


def refusals_of_list(plan: Operator) -> Reasons:
    """Why a plan is refused where no Spark is at hand."""
    best = optimize(plan)
    return _refused_by(lambda mode: refuse_unstreamable(best, mode))


def _refused_by(check: Callable[[str], None]) -> Reasons:
    found: Reasons = {}
    for mode in MODES:
        try:
            check(mode)
        except PlanError as error:
            found[mode] = str(error).splitlines()[0]
    return found
