"""What a lower part of a plan left in the log, as a streaming DataFrame.

Law: Spark's watermark follows ours and never overtakes it. The source admits rows up to the low watermark and the
delay; a heartbeat row carries event time on where no rows flow, and is gone again right behind the watermark.
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
BEHIND_US = 1_000  # Spark drops a row that is as old as its watermark, and we promise only that none is older
MOMENT = "__time"  # the event time of rows that have none but their window


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAt:
    """Where the log of a query is. `patience_us` is how long Spark keeps a window open behind its end for results that
    may still change; `options` go to the source as they are."""

    path: str
    query: str
    patience_us: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


def streams_of(spark: Any, plan: Operator, log: LogAt) -> dict[str, Any]:
    """A streaming DataFrame for everything that a plan receives, with the columns that any part of it receives."""
    timed = keeps_time(plan)
    received = [op for op in walk(plan) if isinstance(op, Received)]
    return {
        name: _stream(spark, [op for op in received if op.stream == name], log, timed)
        for name in dict.fromkeys(op.stream for op in received)
    }


def _stream(spark: Any, received: Sequence[Received], log: LogAt, timed: bool) -> Any:
    from pyspark.sql import functions as F

    traits = received[0].traits  # of one output, so all say the same of its event time
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
    # Spark pushes conditions below the watermark, ours and the user's, and no heartbeat would pass the user's: event
    # time would stand still. A condition that is not deterministic stays where it is, and what is above stays above.
    frame = frame.withWatermark(column, duration_text(delay_us + BEHIND_US)).where(f"NOT {HEARTBEAT} OR uuid() = ''")
    return frame.drop(HEARTBEAT, MOMENT)


def _columns(received: Sequence[Received], heartbeat: bool) -> str:
    columns = schema_text(pa.schema({field.name: field for op in received for field in op.columns}.values()))
    return f"{columns}, {HEARTBEAT} boolean" if heartbeat else columns
