"""The sinks of a query in Spark.

Law: every result is stored once, whatever crashes. For files Spark's own metadata log ensures it; for sinks that are
written batch by batch, the number of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from rove.control.asks.requests import CloudSink

FunctionOf: TypeAlias = Callable[[CloudSink], Callable[[Any, int], None]]
Starter: TypeAlias = Callable[[Any, CloudSink, Path], Any]


def writer_of(frame: Any, sink: CloudSink, tables: Path, function_of: FunctionOf, table_ms: int = 0) -> Any:
    """A `DataStreamWriter` for a frame, without its checkpoint and not started. `function_of` finds a user's function.
    `table_ms` is the time between two micro-batches of a table, unless its query says another."""
    if sink.kind == "foreachBatch":
        writer = frame.writeStream.foreachBatch(function_of(sink))
    else:
        writer = _KINDS[sink.kind](frame, sink, tables)
    if every_ms := trigger_ms(sink, table_ms):
        writer = writer.trigger(processingTime=f"{every_ms} milliseconds")
    return writer.outputMode(sink.mode)


def trigger_ms(sink: CloudSink, table_ms: int) -> int:
    """The time between two micro-batches; 0 if the next one starts at once. Each micro-batch of a table makes files, so
    a table has an interval unless the user gives one."""
    if sink.trigger_ms is not None:
        return sink.trigger_ms
    return table_ms if sink.kind == "table" else 0


def _table(frame: Any, sink: CloudSink, tables: Path) -> Any:
    return frame.writeStream.format("parquet").options(**sink.options).option("path", str(tables / sink.name))


def _console(frame: Any, sink: CloudSink, tables: Path) -> Any:
    return frame.writeStream.format("console").options(**{"truncate": "false", **sink.options})


def _memory(frame: Any, sink: CloudSink, tables: Path) -> Any:
    return frame.writeStream.format("memory").queryName(sink.name).options(**sink.options)


def _noop(frame: Any, sink: CloudSink, tables: Path) -> Any:
    return frame.writeStream.format("noop").options(**sink.options)


def _postgres(frame: Any, sink: CloudSink, tables: Path) -> Any:
    from rove.cloud.postgres import upsert

    return frame.writeStream.foreachBatch(upsert(sink))


_KINDS: dict[str, Starter] = {
    "table": _table,
    "console": _console,
    "memory": _memory,
    "noop": _noop,
    "postgres": _postgres,
}
