"""The log of a lower part of a plan, as a streaming DataFrame.

Law: Spark's watermark follows ours and never passes it. The source admits rows up to the low watermark plus the delay.
A heartbeat row advances event time while no rows flow, and is filtered out right after the watermark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rove.model.clock import duration_text
from rove.model.names import quoted
from rove.model.schema import schema_text
from rove.plan.operators import Operator, Received, walk
from rove.plan.spans import keeps_time

HEARTBEAT = "_heartbeat"
BEHIND_US = 1_000  # Spark drops a row that equals its watermark, while we promise only that no row is older
MOMENT = "__time"  # the event time of rows that have only a window


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAt:
    """The place of a query's log. `patience_us` is how long Spark keeps a window open after its end, for results that
    may still change. `options` go to the source unchanged."""

    path: str
    query: str
    patience_us: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


def streams_of(spark: Any, plan: Operator, log: LogAt) -> dict[str, Any]:
    """A streaming DataFrame for each stream that a plan receives, with all columns that any part of the plan reads."""
    timed = keeps_time(plan)
    received = [op for op in walk(plan) if isinstance(op, Received)]
    return {
        name: _stream(spark, [op for op in received if op.stream == name], log, timed)
        for name in dict.fromkeys(op.stream for op in received)
    }


def _stream(spark: Any, received: Sequence[Received], log: LogAt, timed: bool) -> Any:
    from pyspark.sql import functions as F

    traits = received[0].traits  # all are of one output, so they have the same event time
    window = next((name for name, _ in traits.windows), None)
    time = (traits.event_time or window) if timed else None
    reader = spark.readStream.format("rove").schema(_columns(received, time is not None))
    options = {"path": log.path, "query": log.query, "output": received[0].stream, **log.options}
    if time is None:
        return reader.options(**options).load()
    delay_us = traits.delay_us + log.patience_us
    delay = duration_text(delay_us) if delay_us else "0 seconds"
    frame = reader.options(**options, time=time, delay=delay, heartbeat="true").load()
    column = time
    if traits.event_time is None:
        column, frame = MOMENT, frame.withColumn(MOMENT, F.col(f"{quoted(time)}.start"))
    # Spark pushes conditions below the watermark. A user's condition would then drop heartbeats, and event time would
    # stand still. A condition that is not deterministic is not pushed, and neither are the conditions above it.
    frame = frame.withWatermark(column, duration_text(delay_us + BEHIND_US)).where(f"NOT {HEARTBEAT} OR uuid() = ''")
    return frame.drop(HEARTBEAT, MOMENT)


def _columns(received: Sequence[Received], heartbeat: bool) -> str:
    columns = schema_text(pa.schema({field.name: field for op in received for field in op.columns}.values()))
    return f"{columns}, {HEARTBEAT} boolean" if heartbeat else columns
