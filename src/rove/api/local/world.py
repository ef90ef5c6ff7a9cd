"""The world of a local session: a coordinator, a gateway, edges and devices in one thread, and Spark in this process.

Law: nothing here is a substitute. The machines, the disks and Spark are the real ones; only the connections are queues
in memory. A device of the session's data has a source for each of its streams, and sends their rows once, after `play`.
When no query runs, a new query gets them from the start. Users' functions are taken by value, because the user who
wrote them also runs them.
"""

from __future__ import annotations

import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import rmtree
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from rove.api.troubles import DEPLOYED, PATIENCE_MS, hopeless, sentence, stuck
from rove.cloud.analysis import check_plan
from rove.cloud.process import follow
from rove.cloud.runtime import CloudRuntime, first_line
from rove.cloud.start.session import spark_session, streaming_settings
from rove.control.asks.requests import AccountLine, Named, NodeLine, QueryLine, Submit
from rove.data.settings import WorkerSettings
from rove.model.errors import PlanError, RoveError, SetupError
from rove.model.ids import NodeId, Origin, QueryId, checked_name
from rove.model.schema import schema_text
from rove.plan.operators import Operator
from rove.plan.spark.cuts import highest_cut
from rove.runtime.adapters.sources import SourceSpec
from rove.runtime.broken import Broken
from rove.runtime.local import LocalNet

T = TypeVar("T")

GATEWAY = NodeId("gateway")
EDGES = {"edge-1": GATEWAY, "edge-2": GATEWAY}
SPARK_POLL_S = 0.2
STEP_S = 0.5  # how long the net runs before it looks for requests of other threads
GATE = "begin"  # data flows once this file exists, with the number of the round
OWN_FOLDERS = (GATE, "cloud", "coordinator", "data", "tables")  # beside those of nodes, so no node has such a name


class LocalWorld:
    """A network in a thread. Every call that touches it runs in that thread, one after the other.

    `edges` maps each edge node to the node it sends rows to. An edge node with other edge nodes below it has a disk.
    """

    def __init__(self, folder: Path | None = None, edges: Mapping[str, str] | None = None) -> None:
        if taken := [edge for edge in edges or {} if edge in OWN_FOLDERS or edge.startswith(f"{GATE}-")]:
            raise SetupError(f"`{taken[0]}` is a folder of the session itself; choose another name for the edge")
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="rove-")) if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._above = {NodeId(e): NodeId(above) for e, above in (edges or EDGES).items()}
        self.edges = [e for e in self._above if e not in self._above.values()]  # the edge nodes that devices connect to
        self._fed: dict[str, object] = {}  # by stream the data that its devices have
        self._sources: dict[str, dict[str, SourceSpec]] = {}  # by device and stream
        self._round = 0
        self._behind: set[str] = set()  # queries that came when all data had flowed
        self._in_spark: set[str] = set()  # queries that end in Spark
        self._devices = 0
        self._calls: SimpleQueue[tuple[Callable[[LocalNet], Any], SimpleQueue[Any]]] = SimpleQueue()
        self._last_word = ""  # of a node that broke and could not be started again: nothing runs any more
        self._ended, self._spark_ended = threading.Event(), threading.Event()
        self._cloud: threading.Thread | None = None
        self.runtime: CloudRuntime | None = None
        self._spark: Any = None
        self._spark_said = ""  # why a query failed in Spark the last time
        started: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(started,), name="rove net", daemon=True)
        self._thread.start()
        _result(started)

    def ask(self, verb: str, body: msgspec.Struct | None, kind: type[T]) -> T:
        """Ask the coordinator. Submitting a query that ends in Spark starts Spark."""
        answer = self.do(lambda net: net.ask(verb, body, kind))
        if isinstance(body, Submit) and not body.explain:
            (self._behind.add if self._has_flowed() else self._behind.discard)(body.name)
            if body.cloud is not None:
                self._in_spark.add(body.name)
                self.start_spark()
        return answer

    def do(self, what: Callable[[LocalNet], T]) -> T:
        """Run a function in the net's own thread and return its result."""
        if self._ended.is_set():
            raise SetupError("this session was closed; make another")
        answer: SimpleQueue[Any] = SimpleQueue()
        self._calls.put((what, answer))
        while True:
            try:
                result: T = _result(answer, STEP_S)
                return result
            except Empty:
                if not self._thread.is_alive():
                    raise RoveError(self._last_word or "the network of this session has ended; make another") from None

    def add_device(self, name: str, sources: tuple[SourceSpec, ...], parents: tuple[NodeId, ...] = ()) -> None:
        """Add a device with its sources. Without `parents`, devices are spread over the edges in turn."""
        parents = parents or (self.edges[self._devices % len(self.edges)],)
        self._devices += 1
        settings = WorkerSettings(
            node=NodeId(checked_name(name, "a node")), kind="device", parents=parents, trusts=True
        )
        self.do(lambda net: net.add_node(settings, sources))

    def feed(
        self,
        stream: str,
        schema: pa.Schema,
        data: Mapping[Origin, list[pa.RecordBatch]],
        rate: float = 0.0,
        parents: Iterable[str] = (),
    ) -> None:
        """Give the rows of a stream to devices, one for each origin. After `play` a device sends the batches as they
        were given, at `rate` batches a second or as fast as they are taken. It may connect to any of the `parents`;
        without parents, to one edge. If no query runs, all devices send their rows again after the next `play`."""
        runs = any(line.state != "stopped" for line in self.ask("queries", Named(), list[QueryLine]))
        if stream in self._fed and runs:
            if self._fed[stream] is not data:
                raise PlanError(f"queries run over the data that `{stream}` had before; stop them first")
            return
        taken = sorted({origin.node for origin in data} & set(self._sources)) if runs and self.gate.exists() else []
        if taken:
            raise PlanError(
                f"device `{taken[0]}` has sent its rows already, and queries run; stop them, or start all queries "
                "before processAllAvailable()"
            )
        while self.gate.exists():
            self._round += 1
        specs = {origin.node: self._spec(stream, schema, origin, data[origin], rate) for origin in sorted(data)}
        self._fed[stream] = data
        for device in list(self._sources) if not runs else []:
            own = self._sources[device].items()
            kept = {name: msgspec.structs.replace(spec, when=str(self.gate)) for name, spec in own if name != stream}
            self._equip(device, kept | ({stream: specs.pop(device)} if device in specs else {}))
        for device, spec in specs.items():
            self._equip(device, self._sources.get(device, {}) | {stream: spec}, tuple(map(NodeId, parents)))

    @property
    def gate(self) -> Path:
        """The file that lets the data of this round flow."""
        return self.folder / (f"{GATE}-{self._round}" if self._round else GATE)

    def _spec(
        self, stream: str, schema: pa.Schema, origin: Origin, batches: list[pa.RecordBatch], rate: float
    ) -> SourceSpec:
        folder = self.folder / "data" / stream
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{len(list(folder.iterdir()))}.arrow"  # a new one: the device may still read the old one
        with pa.ipc.new_file(str(file), schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return SourceSpec(
            stream=stream,
            columns=schema_text(schema),
            node=origin.node,
            file=str(file),
            rows=max((b.num_rows for b in batches), default=1) or 1,
            rate=rate,
            when=str(self.gate),
        )

    def _equip(self, device: str, sources: dict[str, SourceSpec], parents: tuple[NodeId, ...] = ()) -> None:
        """Add a device with these sources, or start it again with them."""
        if device in self._sources:
            self.do(lambda net: net.equip(NodeId(device), tuple(sources.values())))
        else:
            self.add_device(device, tuple(sources.values()), parents)
        self._sources[device] = sources

    def nodes(self) -> list[NodeLine]:
        """The nodes of this world."""
        return self.ask("topology", None, list[NodeLine])

    def cut(self, a: str, b: str) -> None:
        """Cut the connection between two nodes."""
        self.do(lambda net: net.cut(a, b))

    def mend(self, a: str, b: str) -> None:
        """Restore the connection between two nodes."""
        self.do(lambda net: net.mend(a, b))

    def play(self) -> None:
        """Let data flow from now on."""
        self.gate.touch()

    def finish(self, query: str, timeout_s: float) -> None:
        """Let all data flow and wait until every row of a query has arrived at its sink, Spark included. It raises if
        that cannot be: the query was stopped, it cannot go on, or rows were lost."""
        deadline = time.monotonic() + timeout_s
        self._await(query, lambda: self._line(query).state in DEPLOYED, deadline, "to run everywhere")
        self._await(query, self._all_begun, deadline, "to begin together with the queries beside it")
        self.play()
        if query in self._behind:
            raise RoveError(
                f"all rows of this session had flowed when query `{query}` came, because another query runs; stop that "
                "one first, or start both before processAllAvailable()"
            )
        self._await(query, lambda: self._delivered(query), deadline, "to get all its rows")
        if query in self._in_spark:
            self._await(query, lambda: self._caught_up(query), deadline, "to be finished in Spark")
        lines = self.ask("status", Named(name=query), list[AccountLine])
        if query in self._in_spark and any(line.late or line.faulted for line in lines):
            number = spark.number if (spark := self._line(query).spark) is not None else 0
            # The next report may have been made before the rows were set aside; the one after it was not.
            self._await(query, lambda: self._read_all(query, number + 2), deadline, "to set rows aside in Spark")
        if faulted := sum(line.faulted for line in lines):
            self._await(query, lambda: bool(self._line(query).troubles), deadline, "to say why rows cannot be computed")
            if why := hopeless(self._line(query)):
                raise RoveError(why)
        why = sentence(self._line(query).troubles) or "look at query.accounts"
        if faulted:
            warnings.warn(f"{faulted:,} rows of query `{query}` could not be computed: {why}", stacklevel=4)
        if lost := sum(line.lost for line in lines):
            raise RoveError(f"{lost:,} rows of query `{query}` were lost, and all others have arrived: {why}")

    def keep_function(self, function: Callable[[Any, int], None]) -> str:
        """Keep a user's function and return the name under which Spark in this process finds it."""
        self.start_spark()
        if self.runtime is None:
            raise SetupError("Spark has not started")
        name = f"here:{len(self.runtime.functions)}"
        self.runtime.functions[name] = function
        return name

    def start_spark(self) -> None:
        """Start Spark if it does not run yet."""
        if self._cloud is not None:
            return
        self._spark = spark_session(settings=streaming_settings(), name="rove local", record=True)
        places = (self.folder / GATEWAY, self.folder / "tables", self.folder / "cloud")
        self.runtime = CloudRuntime(self._spark, *places, trusts=True)
        self._cloud = threading.Thread(
            target=follow,
            args=(self.runtime, self.ask, SPARK_POLL_S, self._spark_ended),
            name="rove cloud",
            daemon=True,
        )
        self._cloud.start()

    def check(self, plan: Operator, mode: str) -> None:
        """Ask Spark whether it can run an optimized plan as a stream. It raises if Spark cannot."""
        if highest_cut(plan).needs_spark:
            self.start_spark()
            check_plan(self._spark, plan, mode)

    def table(self, name: str, limit: int | None) -> pa.Table:
        """The present content of a table that Spark keeps: the first `limit` rows, or all."""
        self.start_spark()
        if self.runtime is None:
            raise SetupError("Spark has not started")
        try:
            table: pa.Table = self.runtime.table(name, limit).toArrow()
        except RoveError:
            raise
        except Exception as error:  # whatever Spark raises
            raise RoveError(f"table `{name}` cannot be read: {first_line(error)}") from error
        return table

    def close(self) -> None:
        """Stop everything. A temporary folder is deleted."""
        if self._ended.is_set():
            return
        self._spark_ended.set()
        if self._cloud is not None:
            self._cloud.join()
        if self.runtime is not None:
            self.runtime.stop()
        self._ended.set()
        self._thread.join()
        if self._temporary:
            rmtree(self.folder, ignore_errors=True)

    def _run(self, started: SimpleQueue[Any]) -> None:
        try:
            net = LocalNet(self.folder)
            net.add_node(WorkerSettings(node=GATEWAY, kind="gateway", trusts=True), durable=True)
            for edge, above in self._above.items():
                settings = WorkerSettings(node=edge, kind="edge", parents=(above,), trusts=True)
                net.add_node(settings, durable=edge not in self.edges)
            net.run_for(0.1)
        except BaseException as error:
            started.put(error)
            return
        started.put(None)
        try:
            while not self._ended.is_set():
                net.run_until(lambda: not self._calls.empty() or self._ended.is_set(), STEP_S)
                while not self._calls.empty():
                    what, answer = self._calls.get()
                    try:
                        answer.put(what(net))
                    except Broken:
                        raise
                    except BaseException as error:
                        answer.put(error)
        except Broken as broken:
            self._last_word = str(broken)
        finally:
            net.close()

    def _line(self, query: str) -> QueryLine:
        (found,) = self.ask("queries", Named(name=query), list[QueryLine])
        return found

    def _all_begun(self) -> bool:
        """Whether all queries run that can: data flows once, and a query that comes later gets none of it."""
        if self.gate.exists():
            return True
        return all(line.state in DEPLOYED or stuck(line) for line in self.ask("queries", Named(), list[QueryLine]))

    def _has_flowed(self) -> bool:
        return self.gate.exists() and bool(self._sources) and self.do(_all_ended)

    def _delivered(self, query: str) -> bool:
        lines = self.ask("status", Named(name=query), list[AccountLine])
        on_the_way = any(line.in_flight > line.open or line.buffered for line in lines)
        expected = any(line.produced for line in lines) or self.do(_nothing_made)
        return expected and not on_the_way and self.do(lambda net: _all_handed_on(net, QueryId(query)))

    def _caught_up(self, query: str) -> bool:
        """Whether Spark has read all of the log and has no more results to emit."""
        running = self.runtime.query(query) if self.runtime is not None else None
        if running is None:
            return False
        try:
            running.processAllAvailable()
        except Exception as error:  # the query has failed; the runtime notes it, and tries again
            self._spark_said = first_line(error)
            return False
        return self._read_all(query, 0)

    def _read_all(self, query: str, number: int) -> bool:
        """Whether Spark says in its report of this number, or a later one, that it has read all of the log."""
        spark = self._line(query).spark
        return spark is not None and spark.number >= number and spark.state == "running" and not spark.lag_entries

    def _await(self, query: str, condition: Callable[[], bool], deadline: float, what: str) -> None:
        """Wait for a condition. It raises as soon as waiting is of no use."""
        while not condition():
            line = self._line(query)
            if why := hopeless(line) or _sourceless(line):
                raise RoveError(why)
            if time.monotonic() > deadline:
                held = sentence(line.troubles) or self._spark_said or "look at query.status and query.accounts"
                raise RoveError(f"gave up waiting for query `{query}` {what}: {held}")
            time.sleep(0.1)


def _sourceless(line: QueryLine) -> str:
    """Why a query that waits for sources gets none: this session has only the sources that it was given."""
    waits = [t for t in line.troubles if line.state == "waiting" and t.for_ms > PATIENCE_MS]
    return f"query `{line.query}` {sentence(waits)}; give the stream its data: stream(…, data=table)" if waits else ""


def _all_ended(net: LocalNet) -> bool:
    """Whether all sources have ended, and rows were made."""
    return all(p.ended for p in net.producers()) and not _nothing_made(net)


def _nothing_made(net: LocalNet) -> bool:
    """Whether all sources have ended and none has made a row."""
    return all(p.ended and not p.made for p in net.producers())


def _all_handed_on(net: LocalNet, query: QueryId) -> bool:
    """Whether all sources have ended and no node holds batches of a query, the last watermarks included."""
    return all(p.ended for p in net.producers()) and not any(w.store.bytes_of(query) for w in net.workers())


def _result(answer: SimpleQueue[Any], timeout_s: float | None = None) -> Any:
    found = answer.get(timeout=timeout_s)
    if isinstance(found, BaseException):
        raise found
    return found
