"""The sources of one node: they number their batches, and are told to wait before the room is used up.

Law: an origin numbers its batches 0, 1, 2 … without gaps, for all queries alike. A batch that does not fit its stream
gets no number. A source whose batches can be made again keeps its name and its numbers through a restart (`positions`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from msgspec.structs import replace

from rove.data.events import Command, Go, KeepPositions, Produced, Wait
from rove.data.sources.positions import Replayed, SourceAt
from rove.model.batch import Batch, Header, empty
from rove.model.clock import END, MICROS_MIN
from rove.model.errors import UnknownOrigin
from rove.model.events import Send
from rove.model.ids import SOURCE, Origin, QueryId
from rove.model.messages import Data, Fragment, SourceHere
from rove.model.schema import conformed, parse_schema
from rove.model.spans import Coverage

PATIENCE_US = 30_000_000  # how long it may take until a query is deployed again on a node that has forgotten it


@dataclass(slots=True)
class _Source:
    """A source: its next number, and whether it was told to wait."""

    stream: str
    schema: pa.Schema
    columns: str
    next: int = 0
    watermark: int = MICROS_MIN
    waits: bool = False
    ended: bool = False
    replayed: Replayed | None = None  # if its batches can be made again


class Sources:
    """Sources by origin."""

    def __init__(self) -> None:
        self._all: dict[Origin, _Source] = {}
        self._columns: dict[str, str] = {}  # the columns of streams, by name
        self._kept: KeepPositions | None = None  # the last positions that the disk was asked to keep

    def add(self, stream: str, origin: Origin, columns: str, replays: bool = False, at: SourceAt | None = None) -> None:
        """Declare a source of a stream. If it `replays`, its batches can be made again, and it goes on `at` a position
        of an earlier start. Then it waits until the batches that are on the disk are known."""
        source = self._all[origin] = _Source(stream, parse_schema(columns), columns)
        self._columns[stream] = columns
        if replays:
            source.replayed = Replayed(origin, at)
        if at is not None:
            source.next, source.waits = at.next, True

    def named(self, event: Produced) -> tuple[str, Batch]:
        """The produced rows as a named batch, and their stream."""
        source = self._all.get(event.origin)
        if source is None or source.ended:
            raise UnknownOrigin(f"`{event.origin}` is not a source of this node, or has ended; declare it first")
        data = event.data
        if data is not None:
            data = conformed(data, source.schema, f"stream `{source.stream}`")
        source.ended = event.ended
        source.watermark = END if event.ended else max(source.watermark, event.promise)
        rows = 0 if data is None else data.num_rows
        header = Header(
            origin=event.origin,
            seq=source.next,
            through=source.next,
            watermark=source.watermark,
            rows=rows,
            born=rows,
            produced_at=event.wall,
        )
        source.next += 1
        return source.stream, Batch(header, data if rows else None)

    def renamed(self, fragment: Fragment) -> Fragment:
        """A fragment of the last start, with the present origins of its sources."""
        now = {origin.any_start: origin for origin in self._all}
        today = {origin: now.get(origin.any_start, origin) for origin in fragment.feeds}
        waits = {stage: tuple(today.get(o, o) for o in origins) for stage, origins in fragment.waits.items()}
        return replace(fragment, feeds=tuple(today.values()), waits=waits)

    def missed(self, query: QueryId, origins: Collection[Origin]) -> Iterator[tuple[str, Batch]]:
        """Headers for the batches that these sources made before the query. A query that is deployed later begins with
        them."""
        for origin, source in self._all.items():
            if origin in origins:
                first = source.next if source.replayed is None else source.replayed.begins(query, source.next)
                if first:
                    yield source.stream, empty(origin, 0, first - 1, source.watermark)

    def first(self, query: QueryId, origin: Origin) -> int:
        """The first batch that a query gets of a source that is read again."""
        source = self._all.get(origin)
        return 0 if source is None or source.replayed is None else source.replayed.first(query)

    def first_unsafe(self, query: QueryId, origin: Origin) -> int:
        """The first batch that a query may get again of a source that is read again."""
        source = self._all.get(origin)
        return 0 if source is None or source.replayed is None else source.replayed.first_unsafe(query)

    def ended(self, origins: Collection[Origin]) -> Iterator[tuple[str, Batch]]:
        """For those of these sources that have ended, a header that says so, under the number of their last batch. A
        node that has taken that batch drops the header."""
        for origin, source in self._all.items():
            if origin in origins and source.ended and source.next:
                yield source.stream, empty(origin, source.next - 1, source.next - 1, END)

    def gives(self, query: QueryId, header: Header, rows: int, forks: bool) -> tuple[bool, bool]:
        """Whether a batch counts as produced for a query, and whether the query gets it (`positions`). It `forks` if it
        leaves this node more than once. O(1), or O(ranges that an earlier start left)."""
        source = self._all.get(header.origin)
        if source is None or source.replayed is None:
            return True, True
        return source.replayed.gives(query, header, rows, forks)

    def left(self, query: QueryId) -> None:
        """Forget a query that has left this node."""
        for source in self._replayed():
            source.ends(query)

    def left_behind(self, headers: Iterable[Header]) -> None:
        """Take the batches that earlier starts left on the disk. O(batches)."""
        found: dict[Origin, dict[str, Coverage]] = {}
        for header in headers:
            names = found.setdefault(header.origin.unsided, {}).setdefault(header.query, Coverage())
            names.add(header.seq, header.through)
        for source in self._replayed():
            source.left_behind(found.get(source.origin, {}))

    def safe(self, unsafe: Mapping[tuple[str, Origin], int]) -> list[KeepPositions]:
        """Batches from these numbers on may not be safe, by query and origin; all others are. Returns the positions to
        keep, if they have changed. O(queries × sources, and batches that have become safe)."""
        for origin, source in self._all.items():
            if source.replayed is not None:
                low = {query: number for (query, of), number in unsafe.items() if of == origin}
                source.replayed.safe(low, source.next)
        return self.positions()

    def positions(self) -> list[KeepPositions]:
        """The positions to keep, if they have changed."""
        found = tuple(s.replayed.at(s.next) for s in self._all.values() if s.replayed is not None)
        kept = KeepPositions(found) if found else None
        if kept is None or kept == self._kept:
            return []
        self._kept = kept
        return [kept]

    def before_sends(self, commands: list[Command]) -> list[Command]:
        """The commands, with the positions to keep before batches are sent, if they must be kept. O(commands)."""
        if not any(True for _ in self._replayed()):
            return commands
        due = False
        for command in commands:
            if isinstance(command, Send) and isinstance(command.message, Data):
                header = command.message.header
                source = self._all.get(header.origin.unsided)
                if source is not None and source.replayed is not None:
                    due |= source.replayed.sends(header)
        if not due:
            return commands
        return [*self.positions(), *(each for each in commands if not isinstance(each, KeepPositions))]

    def sent_before(self, header: Header) -> bool:
        """Whether an earlier start of this node may have sent a batch that one of its sources makes again."""
        source = self._all.get(header.origin.unsided)
        return source is not None and source.replayed is not None and source.replayed.sent_before(header.seq)

    def replays(self, origin: Origin) -> bool:
        """Whether the batches of an origin can be made again."""
        source = self._all.get(origin)
        return source is not None and source.replayed is not None

    def goes_on(self, origin: Origin) -> bool:
        """Whether an origin goes on from an earlier start, under the same name."""
        source = self._all.get(origin)
        return source is not None and source.replayed is not None and source.replayed.resumes

    def _replayed(self) -> Iterator[Replayed]:
        return (source.replayed for source in self._all.values() if source.replayed is not None)

    def complete(self, here: Collection[QueryId], ordered_us: int | None, now: int) -> bool:
        """Whether all queries that sources of an earlier start have fed are `here` again. If the node has forgotten
        them, it waits for the coordinator to deploy them. A query that was not deployed by `PATIENCE_US` after the
        first orders was stopped. O(queries)."""
        lacks = [query for source in self._replayed() for query in source.queries() if query not in here]
        if lacks and ordered_us is not None and now - ordered_us > PATIENCE_US:
            for query in lacks:
                self.left(query)
            return True
        return not lacks

    def held(self, room: int, limit: int, known: bool = True) -> list[Wait | Go]:
        """Make sources wait when less than a quarter of the room is free, and go on when half of it is. A source of an
        earlier start goes on when it is `known` which batches are on the disk and which queries run: it must not make
        batches again that are on the disk, nor leave out those that queries still need."""
        said: list[Wait | Go] = []
        for origin, source in self._all.items():
            if not source.waits and room < limit // 4:
                source.waits = True
                said.append(Wait(origin))
            elif source.waits and room > limit // 2 and (known or source.replayed is None):
                source.waits = False
                said.append(Go(origin))
        return said

    def waiting(self) -> list[Origin]:
        return [origin for origin, source in self._all.items() if source.waits]

    def learn(self, columns: Mapping[str, str]) -> None:
        """Take the columns of streams from a query that reads them."""
        self._columns |= columns

    def listed(self, earlier: Collection[Origin] = ()) -> tuple[SourceHere, ...]:
        """All sources, and those of earlier starts whose rows are still here."""
        found = {origin: (source.stream, source.columns) for origin, source in self._all.items()}
        for origin in earlier:
            if origin.stage == SOURCE and origin.name in self._columns:
                found.setdefault(origin, (origin.name, self._columns[origin.name]))
        return tuple(
            SourceHere(stream=stream, origin=origin, columns=columns, goes_on=self.goes_on(origin))
            for origin, (stream, columns) in sorted(found.items())
        )
