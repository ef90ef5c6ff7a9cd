"""Where Spark puts a query's rows.

Law: every result is there once, whatever dies. Files by Spark's own log of what belongs to the table; whatever is
written batch by batch, by the number of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from rove.control.requests import CloudSink
from rove.model.errors import PlanError

Functions: TypeAlias = Mapping[str, Callable[[Any, int], None]]
Starter: TypeAlias = Callable[[Any, CloudSink, Path], Any]


def writer_of(frame: Any, sink: CloudSink, tables: Path, functions: Functions) -> Any:
    """A `DataStreamWriter` for a frame, short of its checkpoint and its start. `functions` are those of users in this
    process; others are imported by their names."""
    if sink.kind == "foreachBatch":
        writer = frame.writeStream.foreachBatch(functions.get(sink.name) or _imported(sink.name))
    else:
        writer = _KINDS[sink.kind](frame, sink, tables)
    if sink.trigger_ms:
        writer = writer.trigger(processingTime=f"{sink.trigger_ms} milliseconds")
    return writer.outputMode(sink.mode)


def _imported(name: str) -> Callable[[Any, int], None]:
    """A user's function by the name of its module and its own."""
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise PlanError(f"`{name}` cannot be imported where Spark runs: {error}; install its module there") from error
    return found  # type: ignore[no-any-return]


def _table(frame: Any, sink: CloudSink, tables: Path) -> Any:
    if sink.mode == "update":
        raise PlanError(
            "a table of files cannot take back what is in it; for update mode choose postgres, console or memory"
        )
    return frame.writeStream.format("parquet").option("path", str(tables / sink.name)).options(**sink.options)


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
