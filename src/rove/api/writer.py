"""`stream.writeStream`: says where a query's rows should end, and starts the query.

Law: nothing is sent until `toTable` or `start`. Methods of PySpark's writer that are missing here are refused by name,
never ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rove.api.arguments import checks_arguments
from rove.api.by_value import pickled
from rove.api.query import Query
from rove.api.session import LOCAL
from rove.control.asks.requests import (
    FOR_EVER_US,
    PATIENCE_US,
    CloudKind,
    CloudSink,
    Submit,
    Submitted,
    Update,
    check_sink,
    check_submit,
)
from rove.control.sink_options import check_kept, check_options
from rove.model.clock import parse_duration
from rove.model.errors import PlanError, nearest
from rove.model.ids import NodeId, checked_name
from rove.model.messages import Sink
from rove.plan.codec import encode
from rove.plan.operators import Aggregate, Source, walk
from rove.plan.optimizer import optimize
from rove.plan.shown import repeated
from rove.plan.spark.streaming import refuse_unstreamable
from rove.plan.stages import Stages

if TYPE_CHECKING:
    from rove.api.session import Session
    from rove.api.stream import Stream

STRATEGY = "bottom_up"
FORMATS = ("parquet", "console", "memory", "postgres", "noop", "files", "log")
STORED = ("table", "postgres")  # sinks in Spark that store rows by the names of their columns
# All other options go to Spark.
OPTIONS = ("strategy", "returnTimeout", "replaceTimeout", "replication", "routes", "degrade", "onFault")
FOLD = "fold"  # a value of `degrade`
NEVER = "never"  # a value of `replaceTimeout`
# Methods and options that are missing, with what to do instead.
NOT_YET = {
    "foreach": "use .foreachBatch(function), which gets many rows at a time",
    "partitionBy": "leave it out: files are not split by key yet",
    "reliability": "leave it out: a node keeps rows until the next node has acknowledged them",
}


def submit(session: Session, asked: Submit) -> Submitted:
    """Submit a query to the session's coordinator. The answer says where each operator runs. What Spark would refuse is
    refused here."""
    session.check(asked)
    return session.ask("submit", asked, Submitted)


def update(session: Session, name: str, stream: Stream) -> Submitted:
    """Give a query that runs the text of another stream. The answer says where each operator runs."""
    plan = encode(Stages.of({"out": optimize(stream.plan)}), pickled)
    return session.ask("update", Update(name=name, plan=plan), Submitted)


_NO_TRIGGER = {  # kinds of triggers that PySpark has, and why they are refused
    "availableNow": "sources here never end; run the query and stop it, or use toArrow() over a local session's data",
    "once": "sources here never end; run the query and stop it, or use toArrow() over a local session's data",
    "continuous": "Spark's continuous mode has no watermarks and no exactly-once sinks; use processingTime='0 seconds'",
    "realTime": "Spark's real-time mode has no sources in Python and no append mode; use processingTime='0 seconds'",
}


@checks_arguments
class StreamWriter:
    """The sink, the name and the options of a query. Every step returns the writer, as in PySpark.

    busy = rove.Session("tcp://127.0.0.1:4700").stream("trains").where("boarding > 30")
    table = busy.writeStream.toTable("busy")                                               # in Spark
    query = busy.writeStream.queryName("alerts").format("files").on("edge-1").start("busy")  # on a node
    query.awaitTermination()
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._name = ""
        self._strategy = STRATEGY
        self._patience_us, self._patience_of = PATIENCE_US, dict[str, int]()
        self._replace_us: int | None = None
        self._replication, self._copies = 1, True
        self._thins, self._folds = 0, False
        self._stops_at_fault = False
        self._format = ""
        self._mode: Literal["append", "update"] = "append"
        self._trigger_ms: int | None = None
        self._options: dict[str, str] = {}
        self._function: Callable[[Any, int], None] | None = None
        self._node: NodeId | None = None

    def queryName(self, queryName: str) -> StreamWriter:
        """The name under which the query is listed and stopped."""
        self._name = checked_name(queryName, "a query")
        return self

    def option(self, key: str, value: Any) -> StreamWriter:
        """`strategy`: how operators are placed: bottom_up, shortest_path, cloud_only or ilp.
        `returnTimeout`: how long event time waits for a device that is away. The default is `5 minutes`.
        `returnTimeout.STREAM` sets it for the devices of one stream.
        `replaceTimeout`: how long an edge may be silent before its operators start on another node, or `never`. What
        they remembered is lost then, and counted. The default is the coordinator's, which waits longer for an edge with
        a disk.
        `replication`: the most routes from each device that share no node. A device with several routes need not wait
        for the coordinator when one breaks. `routes`: after a device was away, it sends what it kept over `all` routes
        at once, or over the `best` one. `degrade`: what a device that is away does when its store is full, before it
        drops whole batches. With a number *n* such as 2 it keeps every n-th row. With `fold` it replaces the oldest
        rows by partial results of the query's windows, which loses nothing. `maxRowsPerTrigger`, `maxBytesPerTrigger`:
        how much Spark reads in one micro-batch. `onDamage`: whether Spark should `stop` at data it cannot read, or
        `skip` it. `onFault`: what to do with rows that cannot be computed on a node, such as a division by zero: set
        them `aside` in the table `<name>_faults`, which is the default, or `stop` the query. Any other option goes to
        the sink in Spark."""
        if key == "strategy":
            self._strategy = str(value)
        elif key == "returnTimeout":
            self._patience_us = parse_duration(str(value), key)
        elif key.startswith("returnTimeout."):
            self._patience_of[key.partition(".")[2]] = parse_duration(str(value), key)
        elif key == "replaceTimeout":
            self._replace_us = FOR_EVER_US if value == NEVER else parse_duration(str(value), key)
        elif key == "replication":
            self._replication = _at_least(1, key, value)
        elif key == "degrade":
            self._folds = value == FOLD
            self._thins = 0 if self._folds else _at_least(2, key, value, f"`{FOLD}` or ")
        elif key == "routes":
            if value not in ("all", "best"):
                raise PlanError(f"option `routes` cannot be `{value}`; {nearest(str(value), ('all', 'best'))}")
            self._copies = value == "all"
        elif key == "onFault":
            if value not in ("aside", "stop"):
                raise PlanError(f"option `onFault` cannot be `{value}`; {nearest(str(value), ('aside', 'stop'))}")
            self._stops_at_fault = value == "stop"
        else:
            check_kept(key)
            self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> StreamWriter:
        for key, value in options.items():
            self.option(key, value)
        return self

    def format(self, source: str) -> StreamWriter:
        """In Spark: `parquet` (a table, the default), `console`, `memory`, `postgres`, `noop`. On a node, without
        Spark: `files`, a folder of Arrow files on a node with a disk, or `log`, the node's log."""
        if source not in FORMATS:
            raise PlanError(f"no format `{source}`; {nearest(source, FORMATS)}")
        self._format = source
        return self

    def on(self, node: str) -> StreamWriter:
        """The node where the rows end. The default is the gateway."""
        self._node = NodeId(checked_name(node, "a node"))
        return self

    def outputMode(self, outputMode: str) -> StreamWriter:
        """`append`: a window's result is emitted once, when no row can change it any more, not even a row of a device
        that is away. `update`: it is emitted early, and again whenever it changes."""
        mode = outputMode.lower()
        if mode not in ("append", "update"):
            raise PlanError(f"no output mode `{outputMode}`; {nearest(mode, ('append', 'update'))}")
        self._mode = "append" if mode == "append" else "update"
        return self

    def trigger(
        self,
        *,
        processingTime: str | None = None,
        availableNow: bool | None = None,
        once: bool | None = None,
        continuous: str | None = None,
        realTime: str | None = None,
    ) -> StreamWriter:
        """The time between Spark's micro-batches, such as `5 seconds`. Without it `rove cloud` writes a table every two
        seconds (`table_ms` in its settings), because each micro-batch makes files; for all other sinks, with `0
        seconds`, and in a local session the next one starts at once. Other kinds of triggers are refused."""
        others = {"availableNow": availableNow, "once": once, "continuous": continuous, "realTime": realTime}
        for name, value in others.items():
            if value is not None:
                raise PlanError(f"trigger({name}=…) cannot be used here: {_NO_TRIGGER[name]}")
        self._trigger_ms = None if processingTime is None else parse_duration(processingTime, "trigger") // 1_000
        return self

    def foreachBatch(self, func: Callable[[Any, int], None]) -> StreamWriter:
        """Call a function with every micro-batch, as a DataFrame, and the batch's number, in Spark. After a crash the
        last batch comes again with the same number. If Spark runs elsewhere, the function is imported there by its
        name, or sent by value if it is in no module and `rove cloud` allows it."""
        self._function = func
        return self

    def toTable(self, tableName: str) -> Query:
        """Send the rows to the cloud, into a table of Parquet files that Spark keeps. Late rows go to the table
        `<name>_late`."""
        if self._format not in ("", "parquet", "log"):
            raise PlanError(f"a table is kept by Spark, not in {self._format}; leave out .format(…), or use .start(…)")
        if self._node is not None or self._format == "log":
            return self._started(self._name or tableName, Sink(kind="log", node=self._node))
        return self._in_spark(self._name or tableName, "table", tableName)

    def start(self, path: str = "") -> Query:
        """Start the query. `path` is a folder on the node given with `.on(node)` for `files`, and a table's name for
        `parquet` and `postgres`."""
        if self._function is not None:
            return self._in_spark(self._name, "foreachBatch", *self._stream.session.for_spark(self._function))
        match self._format:
            case "log":
                return self._started(self._name, Sink(kind="log", node=self._node))
            case "files" if path:
                return self._started(self._name, Sink(kind="file", node=self._node, path=path))
            case "parquet" if path:
                return self._in_spark(self._name or path, "table", path)
            case "postgres" if path:
                return self._in_spark(self._name or path, "postgres", path)
            case "console" | "memory" | "noop" as kind:
                return self._in_spark(self._name or path, kind, path or self._name)
        raise PlanError(
            "start needs a place: .format('files').on(node).start(path), .format('console').start(), or .toTable(name)"
        )

    def spark_sink(self, kind: CloudKind, to: str, function: bytes = b"") -> CloudSink:
        """The sink in Spark, with all its options."""
        if self._node is not None:
            raise PlanError(f"`{kind}` is in Spark, not on node `{self._node}`; leave out .on(…)")
        sink = CloudSink(
            kind=kind,
            name=to,
            mode=self._mode,
            trigger_ms=self._trigger_ms,
            options=self._options,
            function=function,
        )
        check_sink(sink)
        return sink

    def asked(self, name: str, sink: Sink, cloud: CloudSink | None = None, explain: bool = False) -> Submit:
        """The query as the coordinator wants it: optimized, numbered, and encoded."""
        if not name:
            raise PlanError("the query has no name; give it one with .queryName(name)")
        checked_name(name, "a query")
        if cloud is None:
            if self._options:
                key = next(iter(self._options))
                check_options("", "", self._options)  # the name in the error is a name, and no secret
                raise PlanError(f"`{key}` is not an option of a query that ends on a node; {nearest(key, OPTIONS)}")
            if self._mode != "append" or self._trigger_ms is not None:
                raise PlanError(
                    "output modes and triggers are for Spark; a query that ends on a node emits rows as they come"
                )
        if (cloud is None or cloud.kind in STORED) and (twice := repeated(self._stream.columns)) is not None:
            raise PlanError(
                f"column `{twice}` appears twice, and rows that are stored need columns of different names; give them "
                "names with AS in SQL, alias(…) in select, or toDF(…)"
            )
        streams = [op.stream for op in walk(self._stream.plan) if isinstance(op, Source)]
        if unknown := [stream for stream in self._patience_of if stream not in streams]:
            raise PlanError(
                f"returnTimeout.{unknown[0]}: the query reads no such stream; {nearest(unknown[0], streams)}"
            )
        plan = optimize(self._stream.plan)
        if cloud is not None:
            refuse_unstreamable(plan, cloud.mode)
        if self._folds and not any(isinstance(op, Aggregate) and op.mode == "partial" for op in walk(plan)):
            raise PlanError(
                f"degrade `{FOLD}` needs a window that can be computed in part before Spark, and the query has none; "
                "use a number n, such as 2, to keep every n-th row"
            )
        asked = Submit(
            name=name,
            plan=encode(Stages.of({"out": plan}), pickled),
            sink=sink,
            cloud=cloud,
            strategy=self._strategy,
            patience_us=self._patience_us,
            patience_of=self._patience_of,
            replace_us=self._replace_us,
            replication=self._replication,
            copies=self._copies,
            thins=self._thins,
            folds=self._folds,
            stops_at_fault=self._stops_at_fault,
            explain=explain,
        )
        check_submit(asked)
        return asked

    def _in_spark(self, name: str, kind: CloudKind, to: str, function: bytes = b"") -> Query:
        return self._started(name, Sink(kind="log"), self.spark_sink(kind, to, function))

    def _started(self, name: str, sink: Sink, cloud: CloudSink | None = None) -> Query:
        asked, session = self.asked(name, sink, cloud), self._stream.session
        if cloud is not None and session.url == LOCAL:
            session.world.check(optimize(self._stream.plan), cloud.mode)
        session.prepare(self._stream)
        return Query(session, submit(session, asked).query)

    def __getattr__(self, name: str) -> Any:
        if name in NOT_YET:
            raise PlanError(f"writeStream.{name} does not exist yet; {NOT_YET[name]}")
        raise AttributeError(f"writeStream has no `{name}`")


def _at_least(least: int, key: str, value: Any, otherwise: str = "") -> int:
    """An option as a whole number. `otherwise` names the other values it may have, for the error."""
    text = str(value)
    if not text.isdecimal() or int(text) < least:
        raise PlanError(f"option `{key}` must be {otherwise}a whole number of at least {least}, not `{value}`")
    return int(text)
