"""A session: where streams are named and queries begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from rove.api.stream import Stream
from rove.model.errors import PlanError, SetupError, nearest
from rove.model.schema import conformed, parse_schema
from rove.plan.operators import Source, walk

if TYPE_CHECKING:
    from rove.api.local import LocalData

Rows: TypeAlias = pa.Table | Iterable[pa.RecordBatch] | Mapping[str, Iterable[pa.RecordBatch]]


class Session:
    """The streams of one application.

    >>> import rove
    >>> s = rove.Session.local()
    >>> trains = s.stream("trains", schema="train string, boarding int")
    >>> trains.where("boarding > 0").columns
    ['train', 'boarding']
    """

    def __init__(self, url: str) -> None:
        if url != "local":
            raise SetupError(f"this version has no coordinator to reach at {url}; use rove.Session.local()")
        self._streams: dict[str, Stream] = {}
        self._data: dict[str, dict[str, list[pa.RecordBatch]]] = {}

    @classmethod
    def local(cls) -> Session:
        """Everything on this machine: operators in this process, Spark (if a query needs it) in local mode."""
        return cls("local")

    def stream(self, name: str, schema: str | pa.Schema | None = None, data: Rows | None = None) -> Stream:
        """A stream by name: with a schema to declare it, without to get it again.

        `data` is what `toArrow` will run over: a table, batches, or batches by origin.
        """
        if schema is None:
            found = next((s for n, s in self._streams.items() if n.lower() == name.lower()), None)
            if found is None:
                raise PlanError(f"no stream `{name}`; {nearest(name, list(self._streams))}")
            return found
        columns = parse_schema(schema) if isinstance(schema, str) else schema
        self._data.pop(name, None)
        if data is not None:
            self._data[name] = _by_origin(name, columns, data)
        self._streams[name] = Stream(self, Source(name, columns))
        return self._streams[name]

    def name(self, name: str, stream: Stream) -> Stream:
        """Give a stream a name that SQL statements can read it by, as a view."""
        self._streams[name] = stream
        return stream

    def sql(self, text: str) -> Stream:
        """A query as a SQL statement over the session's streams."""
        from rove.api.sql import statement

        return statement(self, text)

    def collect(self, stream: Stream) -> pa.Table:
        """All rows of a stream over the data this session was given."""
        from rove.api.local import collect

        return collect(stream.plan, self.data_of(stream))

    def data_of(self, stream: Stream) -> LocalData:
        """The data of the sources a stream reads, by stream and origin."""
        needed = sorted({op.stream for op in walk(stream.plan) if isinstance(op, Source)})
        missing = [n for n in needed if n not in self._data]
        if missing:
            raise PlanError(f"stream `{missing[0]}` has no data in this session; give it with stream(…, data=table)")
        return {n: self._data[n] for n in needed}


def _by_origin(stream: str, schema: pa.Schema, data: Rows) -> dict[str, list[pa.RecordBatch]]:
    given: Mapping[str, Iterable[pa.RecordBatch]]
    if isinstance(data, pa.Table):
        given = {"0": data.to_batches()}
    elif isinstance(data, Mapping):
        given = {origin: part.to_batches() if isinstance(part, pa.Table) else part for origin, part in data.items()}
    else:
        given = {"0": data}
    # One device may feed several streams; an origin is a device's part in one of them.
    return {
        f"{stream}/{origin}": [conformed(batch, schema, f"`{stream}/{origin}`") for batch in batches]
        for origin, batches in given.items()
    }
