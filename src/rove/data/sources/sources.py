"""The sources of one node: they number their batches, and are told to wait before the room is used up.

Law: an origin numbers its batches 0, 1, 2 … without gaps, for all queries alike. A batch that does not fit its stream
gets no number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from msgspec.structs import replace

from rove.data.events import Go, Produced, Wait
from rove.model.batch import Batch, Header, empty
from rove.model.clock import END, MICROS_MIN
from rove.model.errors import UnknownOrigin
from rove.model.ids import SOURCE, Origin
from rove.model.messages import Fragment, SourceHere
from rove.model.schema import conformed, parse_schema


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


class Sources:
    """Sources by origin."""

    def __init__(self) -> None:
        self._all: dict[Origin, _Source] = {}
        self._columns: dict[str, str] = {}  # the columns of streams, by name

    def add(self, stream: str, origin: Origin, columns: str) -> None:
        """Declare a source of a stream."""
        self._all[origin] = _Source(stream, parse_schema(columns), columns)
        self._columns[stream] = columns

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

    def missed(self, origins: Collection[Origin]) -> Iterator[tuple[str, Batch]]:
        """Headers for the batches that these sources have produced so far. A query that is deployed later begins with
        them."""
        for origin, source in self._all.items():
            if source.next and origin in origins:
                yield source.stream, empty(origin, 0, source.next - 1, source.watermark)

    def held(self, room: int, limit: int) -> list[Wait | Go]:
        """Make sources wait when less than a quarter of the room is free, and go on when half of it is."""
        said: list[Wait | Go] = []
        for origin, source in self._all.items():
            if not source.waits and room < limit // 4:
                source.waits = True
                said.append(Wait(origin))
            elif source.waits and room > limit // 2:
                source.waits = False
                said.append(Go(origin))
        return said

    def waiting(self) -> list[Origin]:
        return [origin for origin, source in self._all.items() if source.waits]

    def learn(self, columns: Mapping[str, str]) -> None:
        """Take the columns of streams from a query that reads them."""
        self._columns |= columns

    def listed(self, earlier: Collection[Origin] = ()) -> tuple[SourceHere, ...]:
        """All of them, and those of earlier starts whose rows are still here."""
        found = {origin: (source.stream, source.columns) for origin, source in self._all.items()}
        for origin in earlier:
            if origin.stage == SOURCE and origin.name in self._columns:
                found.setdefault(origin, (origin.name, self._columns[origin.name]))
        return tuple(SourceHere(stream=s, origin=o, columns=columns) for o, (s, columns) in sorted(found.items()))
