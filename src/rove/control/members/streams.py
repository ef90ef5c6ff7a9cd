"""The streams by name, with their columns, and the sources that bring them.

Law: a stream has the columns that its first source brought, or that a query reads. They are parsed before they are
accepted. A stream that no source brings with its columns, and that no query reads, is forgotten, or gets the columns of
a source that is left. So nobody names the columns of a stream for longer than it is there itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from rove.model.errors import RoveError, TopologyError
from rove.model.ids import NodeId, Origin
from rove.model.messages import SourceHere
from rove.model.schema import parse_schema

if TYPE_CHECKING:
    from rove.control.members.membership import NodeRecord

COLUMNS_MAX = 20_000  # characters of the columns of one stream
NESTED_MAX = 32  # types with types inside them, in the columns of one stream
CHECKED_MAX = 1_024  # columns that are remembered as readable or not
SHOWN_MAX = 200  # characters of columns in a sentence


@lru_cache(CHECKED_MAX)
def readable(columns: str) -> bool:
    """Whether these are columns of a stream. What was read lately costs a look into a table."""
    if len(columns) > COLUMNS_MAX or columns.count("<") > NESTED_MAX or not columns.isprintable():
        return False
    try:
        parse_schema(columns)
    except (RoveError, ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        return False
    return True


class Streams(Mapping[str, str]):
    """The columns by stream. `index` follows the sources of nodes, and `settle` the columns."""

    def __init__(self) -> None:
        self._columns: dict[str, str] = {}
        self._sources: dict[str, dict[str, dict[Origin, NodeId]]] = {}  # by stream and columns, with their nodes
        self._touched: dict[str, None] = {}

    def __getitem__(self, stream: str) -> str:
        return self._columns[stream]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def restore(self, stream: str, columns: str) -> None:
        self._columns[stream] = columns
        self.touch((stream,))

    def declare(self, stream: str, columns: str) -> None:
        """A query reads a stream that is not known yet."""
        self._columns[stream] = columns

    def touch(self, streams: Iterable[str]) -> None:
        """Sources or queries of these streams have come or gone."""
        self._touched |= dict.fromkeys(streams)

    def index(self, new: NodeRecord | None, old: NodeRecord | None) -> None:
        """Follow the sources of a node. O(its sources)."""
        for source in () if old is None else old.sources:
            of_stream = self._sources.get(source.stream, {})
            found = of_stream.get(source.columns, {})
            found.pop(source.origin, None)
            if not found:
                of_stream.pop(source.columns, None)
            if not of_stream:
                self._sources.pop(source.stream, None)
            self._touched[source.stream] = None
        if new is None or new.revoked:
            return
        for source in new.sources:
            of_stream = self._sources.setdefault(source.stream, {})
            of_stream.setdefault(source.columns, {})[source.origin] = new.node
            self._touched[source.stream] = None

    def of(self, stream: str, columns: str) -> Mapping[Origin, NodeId]:
        """The sources of a stream with these columns, with their nodes."""
        return self._sources.get(stream, {}).get(columns, {})

    def settle(self, read: Callable[[str], bool]) -> dict[str, str | None]:
        """Decide the columns of streams whose sources or queries have changed. `read` says whether a query reads a
        stream. Returns the streams with other columns than before; None for one that is forgotten. O(these)."""
        touched, self._touched = self._touched, {}
        news: dict[str, str | None] = {}
        for stream in touched:
            known, found = self._columns.get(stream), self._sources.get(stream, {})
            if known is not None and (known in found or read(stream)):
                continue
            columns = next(filter(readable, found), None)
            if columns == known:
                continue
            news[stream] = columns
            if columns is None:
                del self._columns[stream]
            else:
                self._columns[stream] = columns
        return news

    def nodes(self, stream: str) -> list[NodeId]:
        """The nodes with sources of a stream, whatever columns they bring. O(these)."""
        return list(dict.fromkeys(node for found in self._sources.get(stream, {}).values() for node in found.values()))

    def misfits(self, sources: Iterable[SourceHere]) -> dict[str, str]:
        """The streams whose columns these sources contradict, with what is wrong. O(sources)."""
        found: dict[str, str] = {}
        for source in sources:
            known = self._columns.get(source.stream)
            if known == source.columns:
                continue
            if known is None:
                found[source.stream] = (
                    f"the columns of `{source.origin}` cannot be read, and its rows are not; write `name type, name "
                    f"type, …` with Spark's types, in {COLUMNS_MAX:,} characters at most"
                )
            else:
                found[source.stream] = (
                    f"stream `{source.stream}` has columns {known}; `{source.origin}` brings {_shown(source.columns)}, "
                    "and its rows are not read. Give the source these columns, or call its stream otherwise"
                )
        return found

    def validate(self, records: Iterable[NodeRecord]) -> None:
        """Raise if the index contradicts the records of nodes. O(sources)."""
        fresh = Streams()
        for record in records:
            fresh.index(record, None)
        if fresh._sources != self._sources:
            raise TopologyError("the index of sources contradicts the reports of nodes")


def _shown(columns: str) -> str:
    cut = columns if len(columns) <= SHOWN_MAX else f"{columns[:SHOWN_MAX]}…"
    return cut if cut.isprintable() else ascii(cut)
