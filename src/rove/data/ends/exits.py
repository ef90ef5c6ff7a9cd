"""The way out of a node: what operators give, and what passes by, goes to its end here or on to the next node.

Law: who sent a batch here keeps it until what came of it is in safe hands. What goes on is in the store until it is
acked; where there is no room for it, the ring decides what goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from rove.data.ends.output import Sinks
from rove.data.events import Command
from rove.data.fragment.pipeline import Emitted
from rove.data.fragment.running_fragment import Running, encode_rows
from rove.data.link.receipts import Ticket
from rove.data.link.routes import Roads
from rove.data.store.retention import Ring
from rove.data.store.store import Store
from rove.model.batch import Batch, Header
from rove.model.errors import ProtocolError, UnknownOrigin
from rove.model.events import Payload
from rove.model.ids import QueryId
from rove.model.messages import ROWS_BYTES_MAX


class Outlet:
    """Sinks, store and roads of one node, for the queries that run on it. `count` hears what could not be given; what
    is to be done is added to `commands`, so that it is there even if a later batch cannot be taken."""

    def __init__(
        self,
        store: Store,
        sinks: Sinks,
        ring: Ring,
        roads: Roads,
        queries: Mapping[QueryId, Running],
        count: Callable[[str], None],
    ) -> None:
        self._store, self._sinks, self._ring = store, sinks, ring
        self._roads, self._queries, self._count = roads, queries, count
        self.begin(0, [])

    def begin(self, now: int, commands: list[Command]) -> None:
        """From now on, what is to be done goes into these."""
        self._now, self._commands = now, commands

    def emit(
        self,
        running: Running,
        emitted: list[Emitted],
        batch: Batch | None = None,
        payload: Payload | None = None,
        ticket: Ticket | None = None,
    ) -> None:
        """What came out, of a batch if it was one, to where it goes. Rows that nothing was done to are not encoded
        again."""
        for each in emitted:
            if each.fault is not None:
                self._count(type(each.fault).__name__)
                continue
            same = batch is not None and each.batch.data is batch.data
            header = replace(each.batch.header, query=running.fragment.query, stage=each.stage)
            rows = payload if same and payload is not None else encode_rows(each.batch.data)
            if rows is not None and len(rows) > ROWS_BYTES_MAX:  # no link would carry it; its name goes on
                self._count("oversize")
                header, rows = replace(header, rows=0, born=0, lost=header.lost + header.born), None
            if each.late:
                self.late(running, header, rows, ticket)
            else:
                self._out(running, each, header, rows, ticket)

    def _out(
        self, running: Running, each: Emitted, header: Header, rows: Payload | None, ticket: Ticket | None
    ) -> None:
        sink = running.fragment.sinks.get(each.stage)
        if sink is not None:
            self._sinks.take(running, each.stage, sink, header, rows, ticket)
        if each.passes and running.road is None:
            raise UnknownOrigin(f"nobody waits for origin `{header.origin}` here; its query has to be deployed with it")
        if running.leaves(each.stage) or each.passes:
            self.forward(running, header, rows, ticket)

    def late(self, running: Running, header: Header, rows: Payload | None, ticket: Ticket | None) -> None:
        """Late rows end where their query ends."""
        if running.fragment.sinks:
            self._sinks.take_late(running, header, rows, ticket)
        else:
            self.forward(running, header, rows, ticket)

    def forward(self, running: Running, header: Header, rows: Payload | None, ticket: Ticket | None) -> None:
        """On to the next node. Who sent it here keeps it until the next one has it in safe hands."""
        if running.road is None:
            raise ProtocolError("unexpected", f"query `{header.query}` goes nowhere from here at stage {header.stage}")
        if ticket is not None:
            ticket.hold()
        entry = self._store.put(header, rows, ticket, self._now, alone=running.again)
        self._commands += self._roads.send(running, entry, self._now, running.fragment.overtakes)
        if not entry.number:
            self._commands += self._ring.waits(entry, running, self._now)
        if self._store.room < 0:
            self._make_room(QueryId(header.query))

    def _make_room(self, query: QueryId) -> None:
        for evicted in self._ring.make_room(query, self._queries):
            self._commands.append(evicted)
            running = self._queries.get(evicted.query)
            if running is not None:
                self._roads.sweep(running)
