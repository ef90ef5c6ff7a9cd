"""Asks Spark whether a plan can run as a stream, before anything runs.

Law: nothing is started. The plan is compiled over empty streams with the same columns and watermarks, and Spark's own
checks for streams look at the result. What Spark refuses is a `PlanError` in Spark's words. A refusal for something
that is not there, such as a table, may end by itself; every other one is final.
"""

from __future__ import annotations

from typing import Any

from rove.cloud.compile import compile_plan, refusal
from rove.model.clock import duration_text
from rove.model.errors import PlanError
from rove.model.names import quoted
from rove.model.schema import type_name
from rove.plan.operators import Operator, Received, walk
from rove.plan.spark.cuts import highest_cut

CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"


_MISSING = "_NOT_FOUND"  # how the names of Spark's errors end if something is not there yet


def is_final(error: BaseException | None) -> bool:
    """Whether Spark's analysis has refused a query for what the query is, so that it is of no use to try again."""
    from pyspark.errors import AnalysisException

    while error is not None:
        if isinstance(error, AnalysisException):
            return not (error.getCondition() or "").split(".")[0].endswith(_MISSING)
        error = error.__cause__
    return False


def check_plan(spark: Any, plan: Operator, mode: str) -> None:
    """Refuse an optimized plan whose upper part streaming Spark cannot run in an output mode."""
    cut = highest_cut(plan)
    if not cut.needs_spark:
        return
    received = {op.stream: op for op in walk(cut.upper) if isinstance(op, Received)}
    frames = {name: empty_stream(spark, op) for name, op in received.items()}
    check_stream(compile_plan(cut.upper, frames), mode)


def check_stream(frame: Any, mode: str) -> None:
    """Refuse a DataFrame that cannot be a streaming query in an output mode."""
    from pyspark.errors import AnalysisException

    jvm = frame.sparkSession._jvm
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    checker = getattr(jvm, CHECKER.split(".")[0])
    for name in CHECKER.split(".")[1:]:
        checker = getattr(checker, name)
    chosen = modes.Update() if mode == "update" else modes.Append()
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), chosen)
    except AnalysisException as error:
        raise PlanError(f"streaming Spark refuses this query: {refusal(error)}") from error


def empty_stream(spark: Any, received: Received) -> Any:
    """A stream without rows that has the columns and the event time of a part of the plan."""
    from pyspark.sql import functions as F

    frame = spark.readStream.format("rate").load()
    columns = (F.lit(None).cast(type_name(f.type)).alias(f.name) for f in received.columns)
    frame = frame.select(*columns)
    traits = received.traits
    if traits.event_time is not None:
        delay = duration_text(traits.delay_us) if traits.delay_us else "0 seconds"
        return frame.withWatermark(quoted(traits.event_time), delay)
    return frame
