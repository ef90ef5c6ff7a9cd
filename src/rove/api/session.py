"""A session: where streams are named and queries begin.

Law: a session connects to its coordinator only when it needs an answer. Planning a query works without one.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from rove.api.arguments import checks_arguments
from rove.api.by_value import pickled
from rove.api.local.data import Given, LocalData, by_origin, collect
from rove.api.stream import Stream
from rove.control.asks.requests import PlanAsk, PlanSaid, Submit, TableAsk, TableRows
from rove.model.errors import PlanError, SetupError, nearest
from rove.model.ids import Origin, checked_name
from rove.model.schema import parse_schema
from rove.plan.codec import decode
from rove.plan.operators import Source, walk
from rove.plan.spark.cuts import highest_cut
from rove.plan.user_functions import encode_function, unread

if TYPE_CHECKING:
    import msgspec

    from rove.api.local.world import LocalWorld
    from rove.api.query import Queries, Query
    from rove.api.reader import TableReader
    from rove.runtime.network.client import Client

log = logging.getLogger(__name__)

T = TypeVar("T")
LOCAL = "local"
ROWS_MAX = 10_000  # of a table, through the coordinator, if no number is given
TABLE_S, POLL_S = 60, 0.2  # how long Spark may take to read a table, and how often to ask
CHECK_S = 30  # how long Spark may take to read a plan; it answers late while it starts other queries
OPERATOR_FILE = "operator.keys"  # the file in a folder of keys that holds the key for giving commands


@checks_arguments
class Session:
    """The streams of one application, and the coordinator that runs its queries.

    `rove.Session("tcp://127.0.0.1:4700")` talks to a coordinator. `keys` is the folder (or file) of the key that lets
    you give it commands. `rove.Session.local()` needs no coordinator.

    >>> import rove
    >>> s = rove.Session.local()
    >>> trains = s.stream("trains", schema="train string, boarding int")
    >>> trains.where("boarding > 0").columns
    ['train', 'boarding']
    """

    def __init__(self, url: str, keys: str | Path | None = None) -> None:
        if url != LOCAL and not url.startswith("tcp://"):
            raise SetupError(f"`{url}` is not an address of a coordinator; write it like tcp://127.0.0.1:4700")
        self._url, self._keys = url, None if keys is None else Path(keys)
        self._client: Client | None = None
        self._world: LocalWorld | None = None
        self._folder: Path | None = None
        self._edges: Mapping[str, str] | None = None
        self._streams: dict[str, Stream] = {}
        self._data: dict[str, dict[Origin, list[pa.RecordBatch]]] = {}

    @classmethod
    def local(cls, folder: str | Path | None = None, edges: Mapping[str, str] | None = None) -> Session:
        """A session on this machine: nodes in this process, and Spark in local mode if a query needs it. `folder` holds
        their data; without a folder the data is deleted when the session is closed. `edges` maps each edge node to the
        node it sends rows to, which is another edge node or `gateway`."""
        for node in (node for pair in (edges or {}).items() for node in pair):
            checked_name(node, "a node")
        session = cls(LOCAL)
        session._folder, session._edges = None if folder is None else Path(folder), edges
        return session

    @property
    def url(self) -> str:
        """The coordinator's address, or `local`."""
        return self._url

    @property
    def is_local(self) -> bool:
        """Whether the nodes are in this process."""
        return self._url == LOCAL

    def stream(self, name: str, schema: str | pa.Schema | None = None, data: Given = None) -> Stream:
        """A stream by name. With a schema it is declared; without, it is one declared before or known to the
        coordinator.

        `data` is the data of a local session: a pyarrow table or batches, a pandas or Polars frame, a list of dicts or
        tuples, or a dict of columns; or a dict that has such data for each device.
        """
        if schema is None:
            if data is not None:
                raise PlanError(f'data of `{name}` needs a schema: stream("{name}", schema="…", data=…)')
            return self._known(name)
        checked_name(name, "a stream")
        columns = parse_schema(schema) if isinstance(schema, str) else schema
        self._data.pop(name, None)
        if data is not None:
            self._data[name] = by_origin(name, columns, data)
        self._streams[name] = Stream(self, Source(name, columns))
        return self._streams[name]

    def _known(self, name: str) -> Stream:
        found = next((s for n, s in self._streams.items() if n.lower() == name.lower()), None)
        if found is not None:
            return found
        told = {} if self._url == LOCAL else self.ask("streams", None, dict[str, str])
        for known, columns in told.items():
            if known.lower() == name.lower():
                self._streams[known] = Stream(self, Source(known, parse_schema(columns)))
                return self._streams[known]
        raise PlanError(f"no stream `{name}`; {nearest(name, list({**self._streams, **told}))}")

    @property
    def read(self) -> TableReader:
        """A table that Spark reads, to join streams with: `session.read.parquet("stops.parquet")`."""
        from rove.api.reader import TableReader

        return TableReader(self)

    def query(self, name: str) -> Query:
        """A query that runs already, by its name."""
        from rove.api.query import Query

        found = Query(self, name)
        found.listed()  # an unknown name is refused here, not later
        return found

    @property
    def streams(self) -> Queries:
        """The queries that run: `.active`, and `.get(name)`."""
        from rove.api.query import Queries

        return Queries(self)

    def ask(self, verb: str, body: msgspec.Struct | None, kind: type[T]) -> T:
        """Ask the coordinator. Verbs and bodies are defined in `rove.control.asks.requests`."""
        if self._url == LOCAL:
            return self.world.ask(verb, body, kind)
        if self._client is None:
            self._client = _dialled(self._url, self._keys)
        return self._client.ask(verb, body, kind)

    @property
    def world(self) -> LocalWorld:
        """The nodes and Spark of a local session, started when first needed."""
        if self._url != LOCAL:
            raise SetupError("the nodes of this session are elsewhere; rove.Session.local() has its own")
        if self._world is None:
            from rove.api.local.world import LocalWorld

            self._world = LocalWorld(self._folder, self._edges)
        return self._world

    def prepare(self, stream: Stream) -> None:
        """Called before a query is submitted: a local session adds devices for the data it was given."""
        if self._url == LOCAL:
            for name in {op.stream for op in walk(stream.plan) if isinstance(op, Source)}:
                if name in self._data:
                    self.world.feed(name, self._streams[name].plan.schema, self._data[name])

    def for_spark(self, function: Callable[[Any, int], None]) -> tuple[str, bytes]:
        """A function's name, and the bytes by which Spark finds it. A local session keeps the function; others send
        it."""
        if self._url == LOCAL:
            return self.world.keep_function(function), b""
        return getattr(function, "__qualname__", repr(function)), encode_function(function, pickled)

    def table(self, name: str, limit: int | None = None) -> pa.Table:
        """The present content of a table that a query writes with `toTable`: the first `limit` rows. Without a limit
        it is all rows in a local session. Elsewhere rows come through the coordinator: it is the first 10,000, with a
        warning if there are more. Let Spark read the files of large tables."""
        checked_name(name, "a table")
        if limit is not None and limit < 0:
            raise PlanError(f"a table has no first {limit} rows; limit must be 0 or more")
        if self._url == LOCAL:
            return self.world.table(name, limit)
        asked = TableAsk(id=uuid4().hex, table=name, limit=ROWS_MAX if limit is None else limit)
        end = time.monotonic() + TABLE_S
        while not (found := self.ask("read", asked, TableRows)).ready:
            if time.monotonic() > end:
                raise SetupError(f"Spark has not read table `{name}` in {TABLE_S} s; look at the log of `rove cloud`")
            time.sleep(POLL_S)
        if found.trouble:
            raise PlanError(f"table `{name}` cannot be read: {found.trouble}")
        if found.more and limit is None:
            warnings.warn(f"these are the first {ROWS_MAX:,} rows of `{name}`; it has more", stacklevel=2)
        try:
            return pa.ipc.open_stream(found.rows).read_all()
        except Exception as error:  # Arrow and Python each have their own errors for bad bytes
            raise PlanError(f"what the coordinator sent for table `{name}` is no table: {error}; ask again") from error

    def check(self, asked: Submit) -> None:
        """Refuse a query that Spark would refuse. The network's own Spark is asked, or else that of this computer, if
        there is one. Only a part of a query that no node could run needs this."""
        if asked.cloud is None or asked.explain or self._url == LOCAL:
            return
        stages = decode(asked.plan, unread)
        if not highest_cut(stages.operators[stages.outputs[0][1]]).needs_spark:
            return
        question = PlanAsk(id=uuid4().hex, plan=asked.plan, mode=asked.cloud.mode)
        end = time.monotonic() + CHECK_S
        while not (said := self.ask("check", question, PlanSaid)).ready:
            if time.monotonic() > end:
                log.warning("Spark has not read the query in %d s; it may still refuse it when it starts", CHECK_S)
                return
            time.sleep(POLL_S)
        why = said.refused if said.known else self._refused_here(asked.plan, asked.cloud.mode)
        if why:
            raise PlanError(why)

    def _refused_here(self, plan: bytes, mode: str) -> str:
        from rove.cloud.own import refused_here

        return refused_here(plan, mode)

    def close(self) -> None:
        """Disconnect. Queries go on, except those of a local session. A later question connects again."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._world is not None:
            self._world.close()
            self._world = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def name(self, name: str, stream: Stream) -> Stream:
        """Give a stream a name for SQL statements, like a view."""
        self._streams[checked_name(name, "a stream")] = stream
        return stream

    def sql(self, text: str) -> Stream:
        """A query as a SQL statement over the session's streams. It means the same as in Spark, or it is refused by
        name."""
        from rove.api.verbs.joined import stream_of
        from rove.plan.sql.query import translate

        return stream_of(self, translate(text, lambda name: self.stream(name).plan))

    def collect(self, stream: Stream) -> pa.Table:
        """All rows of a stream over the data this session was given."""
        return collect(stream.plan, self.data_of(stream))

    def data_of(self, stream: Stream) -> LocalData:
        """The data of the sources a stream reads, by stream and origin."""
        needed = sorted({op.stream for op in walk(stream.plan) if isinstance(op, Source)})
        missing = [n for n in needed if n not in self._data]
        if missing:
            raise PlanError(f"stream `{missing[0]}` has no data in this session; give it with stream(…, data=table)")
        return {n: self._data[n] for n in needed}


def _dialled(url: str, keys: Path | None) -> Client:
    from rove.runtime.network.client import Client
    from rove.runtime.network.keys import load_keys

    if keys is not None and keys.is_dir():
        keys = keys / OPERATOR_FILE
    return Client(url, None if keys is None else load_keys(keys))
