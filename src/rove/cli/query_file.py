"""Reads queries from files: Python that assigns a stream to a variable, or one SQL statement.

Law: a file without a query is refused with one line that says what is missing. An error inside the file keeps its own
text.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from rove.model.errors import PlanError, RoveError, nearest
from rove.model.messages import Sink
from rove.plan.user_functions import encode_name

if TYPE_CHECKING:
    from rove.api.session import Session
    from rove.api.stream import Stream
    from rove.api.writer import StreamWriter
    from rove.control.asks.requests import CloudSink

FUNCTION = re.compile(r"[\w.]+:[\w.]+")  # MODULE:FUNCTION


def stream_in(file: Path, variable: str, session: Session) -> Stream:
    """The stream of a query file. A SQL statement reads the streams of the session."""
    if file.suffix == ".py":
        return _in_python(file, variable)
    if file.suffix != ".sql":
        raise PlanError(f"{file} is neither Python (.py) nor a SQL statement (.sql)")
    return session.sql(_text(file).strip().removesuffix(";"))


def _in_python(file: Path, variable: str) -> Stream:
    from rove.api.stream import Stream

    _text(file)
    try:
        left = runpy.run_path(str(file))
    except RoveError:
        raise
    except (Exception, SystemExit) as error:
        raise PlanError(f"{file}{_line(file, error)} raised {type(error).__name__}: {error}") from error
    found = {k: v for k, v in left.items() if isinstance(v, Stream)}
    if not found:
        raise PlanError(f"{file} assigns no stream to a variable; assign the query's last step to one")
    if variable and variable not in found:
        raise PlanError(f"{file} has no stream `{variable}`; {nearest(variable, list(found))}")
    return found[variable] if variable else list(found.values())[-1]


def _line(file: Path, error: BaseException) -> str:
    """The line of the file where the error came from."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f", line {lines[-1]}," if lines else ""


def sink_of(text: str, node: str, query: str, writer: StreamWriter) -> tuple[Sink, CloudSink | None]:
    """The sink of a text: `log` or `file:PATH` on a node (by default the gateway); all others in Spark."""
    from rove.control.asks.requests import NOT_A_PLACE
    from rove.model.ids import NodeId, checked_name

    if "://" in text:
        raise PlanError(NOT_A_PLACE)  # it is not shown: it may hold a password
    kind, _, path = text.partition(":")
    where = NodeId(checked_name(node, "a node")) if node else None
    match kind:
        case "log" if not path:
            return Sink(kind="log", node=where), None
        case "file" if path:
            return Sink(kind="file", node=where, path=path), None
        case "table" | "console" | "postgres" | "foreachBatch" if node:
            raise PlanError(f"`{kind}` is in Spark, not on node `{node}`; leave out --on")
        case "table" | "postgres":
            return Sink(kind="log"), writer.spark_sink(kind, path or query)
        case "console" if not path:
            return Sink(kind="log"), writer.spark_sink(kind, query)
        case "foreachBatch" if FUNCTION.fullmatch(path):
            return Sink(kind="log"), writer.spark_sink(kind, path, encode_name(*path.split(":")))
    raise PlanError(
        f"`{text}` is not a sink; write `table`, `table:NAME`, `postgres:TABLE`, `console` or "
        "`foreachBatch:MODULE:FUNCTION` for Spark, `log` for the gateway, `file:PATH` for a folder of files on a node"
    )


def options_in(given: Sequence[str]) -> dict[str, str]:
    """The options of repeated `KEY=VALUE` flags."""
    pairs = [text.partition("=") for text in given]
    for key, equals, _ in pairs:
        if not key or not equals:
            # The text is not shown: it may be a url with a password whose `url=` was forgotten.
            raise PlanError("--option needs a name and a value; write KEY=VALUE, such as keys=window,train")
    return {key: value for key, _, value in pairs}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{file} cannot be read: {error}") from error
