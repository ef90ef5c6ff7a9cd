"""`stream.writeStream`: say where a query's rows should end, and have it run.

Law: nothing is sent until `toTable` or `start`. What a PySpark writer has and this one has not yet is refused by name,
never passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rove.api.query import Query
from rove.control.requests import Submit, Submitted
from rove.model.errors import PlanError, nearest
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.plan.codec import encode
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

if TYPE_CHECKING:
    from rove.api.session import Session
    from rove.api.stream import Stream

STRATEGY = "bottom_up"
OPTIONS = ("strategy",)
FORMATS = ("files", "log")
# What PySpark's writer has, or ours will have, with what to do until it is here.
NOT_YET = {
    "foreach": "read the files that .format('files').start(path) writes",
    "foreachBatch": "read the files that .format('files').start(path) writes",
    "partitionBy": "leave it out: files are not split by key yet",
    "reliability": "leave it out: rows wait on the node below until the one above has them",
    "trigger": "leave it out: rows go on as they come",
}


def submission(plan: Operator, *, name: str, sink: Sink, strategy: str = STRATEGY, explain: bool = False) -> Submit:
    """A plan as the coordinator takes it: optimized, numbered, as bytes."""
    stages = Stages.of({"out": optimize(plan)})
    return Submit(name=name, plan=encode(stages), sink=sink, strategy=strategy, explain=explain)


def submit(session: Session, asked: Submit) -> Submitted:
    """Hand a query to the session's coordinator; where everything runs."""
    return session.ask("submit", asked, Submitted)


class StreamWriter:
    """Where to, under which name, and who decides the places. Every step returns the writer, as PySpark's does.

    busy = rove.Session("tcp://127.0.0.1:4700").stream("trains").where("boarding > 30")
    query = busy.writeStream.queryName("busy").format("files").on("edge-1").start("busy")
    query.awaitTermination()
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._name = ""
        self._strategy = STRATEGY
        self._format = ""
        self._node: NodeId | None = None

    def queryName(self, queryName: str) -> StreamWriter:
        """The name that the query is listed and stopped by."""
        self._name = queryName
        return self

    def option(self, key: str, value: Any) -> StreamWriter:
        """`strategy`: who decides where operators run: bottom_up, shortest_path, cloud_only or ilp."""
        if key != "strategy":
            raise PlanError(f"no option `{key}`; {nearest(key, OPTIONS)}")
        self._strategy = str(value)
        return self

    def options(self, **options: Any) -> StreamWriter:
        for key, value in options.items():
            self.option(key, value)
        return self

    def format(self, source: str) -> StreamWriter:
        """`files`: a folder of Arrow files on a node with a disk. `log`: the log of such a node."""
        if source not in FORMATS:
            raise PlanError(f"no format `{source}`; {nearest(source, FORMATS)}")
        self._format = source
        return self

    def on(self, node: str) -> StreamWriter:
        """The node where the rows are wanted; the gateway if nobody says."""
        self._node = NodeId(node)
        return self

    def outputMode(self, outputMode: str) -> StreamWriter:
        """Only `append`: a window's result leaves once, when its watermark has passed."""
        if outputMode.lower() != "append":
            raise PlanError(f"output mode `{outputMode}` is not there yet; a result leaves once, as in `append`")
        return self

    def toTable(self, tableName: str) -> Query:
        """Send the rows to the cloud. They are kept in the gateway's log, under the query's name; a step that
        `explain()` shows in Spark is not done before Spark reads them from there."""
        if self._format not in ("", "log"):
            raise PlanError(
                f"a table is kept in the log, not in {self._format}; leave out .format(…), or use .start(path)"
            )
        return self._started(self._name or tableName, Sink(kind="log", node=self._node))

    def start(self, path: str = "") -> Query:
        """Send the rows to a folder of files on the node given with `.on(node)`."""
        if self._format == "log":
            return self._started(self._name, Sink(kind="log", node=self._node))
        if self._format != "files" or not path:
            raise PlanError(
                "start needs a place: .format('files').on(node).start(path), or .toTable(name) for the cloud"
            )
        return self._started(self._name, Sink(kind="file", node=self._node, path=path))

    def _started(self, name: str, sink: Sink) -> Query:
        if not name:
            raise PlanError("the query has no name to find it by; give it one with .queryName(name)")
        asked = submission(self._stream.plan, name=name, sink=sink, strategy=self._strategy)
        return Query(self._stream.session, submit(self._stream.session, asked).query)

    def __getattr__(self, name: str) -> Any:
        if name in NOT_YET:
            raise PlanError(f"writeStream.{name} is not there yet; {NOT_YET[name]}")
        raise AttributeError(f"writeStream has no `{name}`")
