"""One Spark application for many queries: starts and stops them, watches them, and restarts those that fail.

Law: `settle` compares the queries that should run with those that do, and starts and stops the difference. `watch`
reports the progress of each. A query that fails is restarted from its checkpoint after a pause that doubles each time,
so no row is lost or duplicated. A query that Spark's analysis refuses is not tried again by this process.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from rove.cloud.analysis import check_plan, is_final
from rove.cloud.compactor import Compactor
from rove.cloud.compile import compile_plan
from rove.cloud.sinks import writer_of
from rove.cloud.source import register
from rove.cloud.stream import LogAt, streams_of
from rove.cloud.tables import ASIDE, begin_aside, read_table
from rove.control.asks.requests import (
    TABLE_BYTES_MAX,
    CloudQuery,
    CloudSink,
    PlanAsk,
    PlanSaid,
    Progress,
    TableAsk,
    TableRows,
    check_sink,
)
from rove.control.sink_options import SOURCE_OPTIONS
from rove.data.log.segments.disk_work.reader import Reader
from rove.model.errors import RoveError, SetupError
from rove.model.ids import checked_name
from rove.plan.codec import decode
from rove.plan.operators import Received, walk
from rove.plan.user_functions import decode_function, reader
from rove.runtime.disk.disk import LogFolder

log = logging.getLogger(__name__)

RETRY_S_MIN, RETRY_S_MAX = 1.0, 60.0
SLOW_STARTS_MAX = 3  # in a row; after that, a Python process that does not come up is trouble
ASIDE_MS = 2_000  # between two micro-batches of tables of rows set aside
INITIALIZING = "Initializing"  # how Spark's message begins before a query's source is ready
_IDS = re.compile(r" ?\[id = [^\]]*\]")
_LOST = re.compile(
    r"(?s)^Job aborted due to stage failure: .*?: Lost task [^)]*\) \([^)]*\): (.*?)(?:\nDriver stacktrace:.*)?$"
)
_CAUSE = re.compile(r"(?m)^Caused by: (.*)$")
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")


@dataclass(slots=True)
class _Run:
    """A query that should run, and its progress."""

    wanted: CloudQuery
    plan: Any = None  # None until it is decoded
    spark: Any = None  # the StreamingQuery
    begun: float = 0.0
    failures: int = 0  # in a row
    slow_starts: int = 0  # in a row
    restarts: int = 0
    retry_at: float = 0.0
    refused: bool = False  # by Spark's analysis: it is not started again
    trouble: str = ""  # the first line of the last failure, until a micro-batch is done again
    rows: int = 0
    counted: int = -1  # the last batch whose rows are in `rows`
    dropped: int = 0
    watermark: str = ""
    outputs: tuple[str, ...] = ()
    late: dict[str, Any] = field(default_factory=dict)  # the Spark queries that write rows set aside, by folder


@dataclass(slots=True)
class _Unread:
    """What a Spark query has not read of a log. Behind the last entry with rows, entries only promise something; Spark
    begins no micro-batch for a few of those."""

    reader: Reader
    end: int = 0  # of the entries up to the last one with rows

    def lag(self, read: int) -> int:
        for entry in self.reader.rest():
            if entry.length:
                self.end = entry.position + 1
        return max(0, self.end - read)


class CloudRuntime:
    """The queries of one Spark session. `logs` is the gateway's folder, `tables` the folder of tables, `state` the
    folder of checkpoints, each by query name. `trusts` allows users' functions that come by value. Tables are written
    every `table_ms`, or as fast as rows come if it is 0, unless their query says otherwise. Tables with `compact_files`
    small files are compacted while no rows come, unless it is 0."""

    def __init__(
        self,
        spark: Any,
        logs: Path,
        tables: Path,
        state: Path,
        *,
        trusts: bool = False,
        table_ms: int = 0,
        compact_files: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spark, self.logs, self.tables, self.state = spark, logs, tables, state
        self.trusts, self._read, self._clock = trusts, reader(trusts), clock
        self.functions: dict[
            str, Callable[[Any, int], None]
        ] = {}  # users' functions of this process, by the name of the sink
        self._runs: dict[str, _Run] = {}
        self._reports = time.time_ns()  # so that a later process has higher numbers
        self._unread: dict[tuple[str, str], _Unread] = {}  # by query and output
        self._table_ms = table_ms
        self._compactor = Compactor(spark, tables, compact_files, clock)
        register(spark)

    def settle(self, wanted: Iterable[CloudQuery]) -> None:
        """Start queries that should run, one at a time, and stop queries that should not."""
        names = {query.query: query for query in wanted}
        for name in [n for n in self._runs if n not in names]:
            self._stop(self._runs.pop(name))
        for name, query in names.items():
            if name not in self._runs:
                self._begin_aside(query)
            run = self._runs.setdefault(name, _Run(query))
            waits = run.spark is None and not run.refused
            if waits and self._clock() >= run.retry_at and not self._starting():
                self._start(run)

    def watch(self) -> list[Progress]:
        """The progress of all queries. A failed query is noted, and waits for its next start."""
        self._reports += 1
        self._compactor.look({r.wanted.sink.name: r.rows for r in self._runs.values() if r.wanted.sink.kind == "table"})
        return [replace(self._watch(run), number=self._reports) for run in self._runs.values()]

    def query(self, name: str) -> Any:
        """Spark's own handle of a running query; None if it does not run."""
        run = self._runs.get(name)
        return None if run is None else run.spark

    def table(self, name: str, limit: int | None = None) -> Any:
        """The rows of a table that queries write, as a DataFrame: the first `limit`, or all."""
        folder = self.tables / checked_name(name, "a table")
        if folder.is_dir():
            frame = read_table(self.spark, folder)
        elif self.spark.catalog.tableExists(name):  # of a sink in memory
            frame = self.spark.table(name)
        else:
            raise SetupError(f"there is no table `{name}` yet; begin one with .writeStream.toTable('{name}')")
        return frame if limit is None else frame.limit(limit)

    def answer(self, asked: TableAsk) -> TableRows:
        """The rows that a user has asked for, or why there are none."""
        try:
            table = self.table(asked.table, asked.limit + 1).toArrow()
            buffer = pa.BufferOutputStream()
            with pa.ipc.new_stream(buffer, table.schema) as stream:
                stream.write_table(table.slice(0, asked.limit))
            rows = buffer.getvalue().to_pybytes()
        except Exception as error:  # whatever Spark raises, its queries go on
            return TableRows(id=asked.id, ready=True, trouble=first_line(error))
        if len(rows) > TABLE_BYTES_MAX:
            why = f"these rows take {len(rows):,} bytes, and an answer has room for {TABLE_BYTES_MAX:,}; ask for fewer"
            return TableRows(id=asked.id, ready=True, trouble=why)
        return TableRows(id=asked.id, ready=True, rows=rows, more=table.num_rows > asked.limit)

    def check(self, asked: PlanAsk) -> PlanSaid:
        """Whether Spark would run a plan. What this process cannot find out is not known."""
        try:
            stages = decode(asked.plan, self._read)
            check_plan(self.spark, stages.operators[stages.outputs[0][1]], asked.mode)
        except RoveError as error:
            known = is_final(error)
            return PlanSaid(id=asked.id, ready=True, known=known, refused=str(error) if known else "")
        except Exception as error:  # whatever Spark or a user's function raises, its queries go on
            log.warning("a plan could not be checked: %s", first_line(error))
            return PlanSaid(id=asked.id, ready=True, known=False)
        return PlanSaid(id=asked.id, ready=True)

    def stop(self) -> None:
        """Stop all queries. Checkpoints stay, so the next start continues from them."""
        for run in self._runs.values():
            self._stop(run)
        self._runs.clear()
        self._compactor.close()

    def _start(self, run: _Run) -> None:
        query = run.wanted
        try:
            checked_name(query.query, "a query")  # it names folders here, and the coordinator may be of another mind
            check_sink(query.sink)
            if run.plan is None:
                stages = decode(query.plan, self._read)
                run.plan = stages.operators[stages.outputs[0][1]]
            if not self._has_log(run):
                return
            log.info("query %s starts in Spark", query.query)
            at = LogAt(
                path=str(self.logs),
                query=query.query,
                patience_us=query.patience_us,
                options={"consumer": "spark", **_source_options(query.sink)},
            )
            frames = streams_of(self.spark, run.plan, at)
            run.outputs = tuple(frames)
            writer = writer_of(compile_plan(run.plan, frames), query.sink, self.tables, self._function, self._table_ms)
            run.spark = writer.option("checkpointLocation", str(self.state / query.query)).start()
            run.begun, run.counted = self._clock(), -1
        except Exception as error:  # whatever Spark raises, the other queries go on
            self._failed(run, error)

    def _begin_aside(self, query: CloudQuery) -> None:
        try:
            check_sink(query.sink)
            begin_aside(self.tables, query)
        except (OSError, RoveError) as error:
            log.warning(
                "the tables of rows set aside of %s have no columns until there are rows: %s", query.query, error
            )

    def _function(self, sink: CloudSink) -> Callable[[Any, int], None]:
        """The user's function of a sink: one of this process, or one that came with the query."""
        return self.functions.get(sink.name) or decode_function(sink.function, self._read)

    def _starting(self) -> bool:
        """Whether a query is starting. Spark waits ten seconds for the Python process that plans a query, then fails
        the query. Many queries that start at once on few cores would all take longer."""
        runs = (run.spark for run in self._runs.values() if run.spark is not None)
        return any(spark.isActive and spark.status["message"].startswith(INITIALIZING) for spark in runs)

    def _has_log(self, run: _Run) -> bool:
        """Whether the gateway has begun to write the log that the query reads."""
        names = (op.stream for op in walk(run.plan) if isinstance(op, Received))
        return all((self.logs / "log" / run.wanted.query / name).is_dir() for name in names)

    def _lacks_log(self, run: _Run) -> str:
        """Why a query that was not started has to wait; empty if its log is there."""
        if run.plan is None or self._has_log(run):
            return ""
        place = self.logs / "log" / run.wanted.query
        return f"its log {place} is not there; give `rove cloud` the folder of the gateway: --logs DIR"

    def _failed(self, run: _Run, error: BaseException | str) -> None:
        if run.spark is not None and self._clock() - run.begun > 2 * RETRY_S_MAX:
            run.failures = 0
        before, name = run.trouble, run.wanted.query
        run.spark = None
        if started_too_slowly(error) and run.slow_starts < SLOW_STARTS_MAX:
            run.slow_starts, run.restarts = run.slow_starts + 1, run.restarts + 1
            log.warning("query %s: its Python process was not up within Spark's ten seconds; it starts again", name)
            return
        run.trouble = first_line(error)
        if isinstance(error, BaseException) and is_final(error):
            run.refused = True
            log.error(
                "Spark refuses query %s: %s. It is not tried again. Stop it: rove stop %s", name, run.trouble, name
            )
            return
        wait = min(RETRY_S_MAX, RETRY_S_MIN * 2**run.failures)
        run.failures, run.restarts = run.failures + 1, run.restarts + 1
        run.retry_at = self._clock() + wait
        if run.trouble != before:
            log.error(
                "query %s failed in Spark: %s. It is started again from its checkpoint, after pauses of up to %.0f s. "
                "Mend the cause, or stop the query: rove stop %s",
                *(name, run.trouble, RETRY_S_MAX, name),
            )

    def _works(self, run: _Run) -> None:
        """A micro-batch is done. The trouble before it is over."""
        run.slow_starts = 0
        if run.trouble:
            log.info("query %s works again in Spark", run.wanted.query)
            run.trouble = ""

    def _watch(self, run: _Run) -> Progress:
        query = run.wanted.query
        if run.spark is not None and not run.spark.isActive:
            self._failed(run, run.spark.exception() or "it ended by itself")
        if run.spark is None:
            state, trouble = ("failed", run.trouble) if run.trouble else ("starting", self._lacks_log(run))
            return Progress(
                query=query,
                state=state,
                rows=run.rows,
                restarts=run.restarts,
                failures=run.failures if run.trouble else 0,
                trouble=trouble,
                final=run.refused,
            )
        self._keep_late(run)
        for each in run.spark.recentProgress:
            if each["batchId"] > run.counted:
                run.counted, run.rows = each["batchId"], run.rows + int(each["numInputRows"])
                run.dropped += sum(int(op["numRowsDroppedByWatermark"]) for op in each["stateOperators"])
                run.watermark = str(each["eventTime"].get("watermark", run.watermark))  # an idle query reports none
        last = run.spark.lastProgress
        if not last:
            failures = run.failures if run.trouble else 0
            return Progress(
                query=query,
                state="starting",
                rows=run.rows,
                restarts=run.restarts,
                failures=failures,
                trouble=run.trouble,
            )
        self._works(run)
        return Progress(
            query=query,
            state="running",
            batch=int(last["batchId"]),
            rows=run.rows,
            rows_per_s=float(last["processedRowsPerSecond"] or 0.0),
            batch_ms=int(last["durationMs"].get("triggerExecution", 0)),
            state_rows=sum(int(op["numRowsTotal"]) for op in last["stateOperators"]),
            dropped_rows=run.dropped,
            restarts=run.restarts,
            lag_entries=self._lag(query, run.outputs, last) + self._lag_aside(run),
            watermark=run.watermark,
        )

    def _lag(self, query: str, outputs: Iterable[str], last: Any) -> int:
        """The number of log entries of some outputs that a Spark query has not read yet. O(outputs + new entries)."""
        sources = last["sources"] if last else ()
        lag = 0
        for n, name in enumerate(outputs):
            key, read = (query, name), positions_read(sources[n]["endOffset"]) if n < len(sources) else 0
            if key not in self._unread:
                self._unread[key] = _Unread(Reader(LogFolder(self.logs / "log" / query / name), read))
            lag += self._unread[key].lag(read)
        return lag

    def _lag_aside(self, run: _Run) -> int:
        """The number of log entries with rows set aside that are not in their tables yet."""
        return sum(self._lag(run.wanted.query, [part], each.lastProgress) for part, each in run.late.items())

    def _keep_late(self, run: _Run) -> None:
        """Start writing the tables of late rows and of rows at fault, once there are any."""
        folder = self.logs / "log" / run.wanted.query
        if run.wanted.sink.kind != "table" or not folder.is_dir():
            return
        for part, table in sorted((part, table) for name, table in ASIDE.items() for part in folder.glob(f"{name}*")):
            known = run.late.get(part.name)
            if (known is not None and known.isActive) or not Reader(LogFolder(part)).committed():
                continue
            frame = (
                self.spark.readStream.format("rove")
                .options(path=str(self.logs), query=run.wanted.query, output=part.name, metadata="true")
                .load()
            )
            place = self.tables / f"{run.wanted.sink.name}{table}" / part.name
            run.late[part.name] = (
                frame.writeStream.format("parquet")
                .option("path", str(place))
                .option("checkpointLocation", str(self.state / run.wanted.query / part.name))
                .trigger(processingTime=f"{self._table_ms or ASIDE_MS} milliseconds")
                .start()
            )

    def _stop(self, run: _Run) -> None:
        for each in (run.spark, *run.late.values()):
            if each is not None:
                each.stop()


def positions_read(offset: Any) -> int:
    """How many log entries are before an offset of the source."""
    found = json.loads(offset) if isinstance(offset, str) else offset
    return sum(int(part["to"]) for part in found["at"].values()) if found else 0


def _source_options(sink: CloudSink) -> dict[str, str]:
    """The options of a sink that belong to the source: the size of a micro-batch, and what to do about damage."""
    return {name: sink.options[name] for name in SOURCE_OPTIONS if name in sink.options}


def started_too_slowly(error: BaseException | str) -> bool:
    """Whether Spark gave up on a Python process that was still starting. Spark waits ten seconds, which no setting
    changes, and a busy machine may need longer. The query has read nothing then, and can start again at once."""
    return "Python worker failed to connect back" in str(error)


def first_line(error: BaseException | str) -> str:
    """The error in one line. Spark puts a traceback above an error of ours, and above that of a user's function, and
    stacks above the cause of a task's failure. The ids of Spark's queries and tasks are left out: they differ each time
    a query is started."""
    text = _IDS.sub("", str(error)).strip()
    ours = re.findall(r"(?m)^rove\.\S+: (.*)$", text)
    if ours:
        return str(ours[-1])
    if raised := _RAISED.findall(text):
        return str(raised[-1])
    if lost := _LOST.search(text):
        causes = _CAUSE.findall(lost[1])
        return str(causes[-1]) if causes else lost[1].splitlines()[0]
    kind = "" if isinstance(error, RoveError | str) else f"{type(error).__name__}: "
    return kind + (text.splitlines()[0] if text else "without a message")
