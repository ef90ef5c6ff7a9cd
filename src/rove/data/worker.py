"""A node that works: device, edge or gateway, as one machine.

Law: events in, commands out; no socket, file, clock or chance. A batch that came in is acked when what came of it is
in safe hands: on a disk, in an operator's memory, or acked by the next node. So a node that only passes batches on may
die at any time, and whoever sent them sends them again. Room is promised to peers before they use it, so what a node
holds stays below its bound, and a source is told to wait before there is no room.

    Arrived ─► link ─► fragment ─► store ─► link ─► Send          a batch that goes on
                          └──────► sinks ─► OnDisk … DiskDone ─► Ack        a batch that ends here
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rove.data.accounts import Accounts
from rove.data.ends.exits import Exits
from rove.data.ends.output import Sinks
from rove.data.ends.pending_input import PendingBatch, PendingInput
from rove.data.ends.shelf import Shelf
from rove.data.ends.wait_changes import heeded, is_word
from rove.data.events import Command, DiskDone, Event, Packed, Produced, Remember, Stop
from rove.data.fragment.running_fragment import RunningFragment, encode_rows
from rove.data.link.link import Link
from rove.data.link.neighbours import Neighbours
from rove.data.link.parking import Parked, Parking
from rove.data.link.queue import Queue
from rove.data.link.receipts import FrameReceipt
from rove.data.link.routes import Routes
from rove.data.settings import WorkerSettings
from rove.data.sources.sources import Sources
from rove.data.store.eviction import Policy
from rove.data.store.kept_batch import KEPT_BYTES_MIN, size_of
from rove.data.store.retention import Retention
from rove.data.store.store import Store
from rove.model.batch import Batch, Header
from rove.model.errors import DataError, ProtocolError, RoveError
from rove.model.events import COORDINATOR, Arrived, Conn, Garbled, Payload, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, source_of
from rove.model.messages import (
    PROTOCOL,
    ROWS_BYTES_MAX,
    Data,
    Fragment,
    Hello,
    Orders,
    Peer,
    Refused,
    Report,
    Welcome,
    check_header,
    digest_of,
)
from rove.plan.user_functions import reader


class Worker:
    """Links, fragments, sources and sinks of one node. `incarnation` differs from every earlier start of the node; a
    `policy` of the user's own decides what goes when there is no room."""

    def __init__(
        self, settings: WorkerSettings, incarnation: int, shelf: Shelf | None = None, policy: Policy | None = None
    ) -> None:
        self.settings, self._incarnation = settings, incarnation
        self.node = settings.node
        self.store = Store(settings.memory_bytes)
        self.sinks = Sinks(shelf)
        self.accounts = Accounts()
        self._retention = Retention(self.store, settings, shelf, incarnation, policy)
        # Messages, and batches on the disk, that were not taken, by reason.
        self.refused: dict[str, int] = {"damaged": self._retention.damaged} if self._retention.damaged else {}
        self._neighbours = Neighbours(settings, incarnation, self.store)
        self._routes = Routes(self._neighbours, self.store)
        self._running: dict[QueryId, RunningFragment] = {}
        self._stopped: dict[QueryId, None] = {}
        self._exits = Exits(self.store, self.sinks, self._retention, self._routes, self._running, self._count)
        self._parking = Parking()
        self._pending_input = PendingInput()
        self._troubles: dict[QueryId, str] = {}  # why a query cannot run here
        self.sources = Sources()
        self._beat_due = self._report_due = 0
        self._changed = False
        self._commands: list[Command] = []
        self._now = 0

    # Before it runs

    def add_source(self, stream: str, origin: Origin, columns: str) -> None:
        """Declare a producer of a stream on this node."""
        self.sources.add(stream, origin, columns)

    def remembered(self, fragments: tuple[Fragment, ...], peers: tuple[Peer, ...], now: int = 0) -> list[Command]:
        """Go on with what this node ran before it was stopped or died, whether or not anybody hears it. Its sources are
        others now. Where their order matters, those above have to be told of them before their rows come: until then
        these are kept."""
        self._begin(now)
        self._meet(peers)
        for fragment in fragments:
            self._deploy(self.sources.renamed(fragment))
            if fragment.feeds and not fragment.overtakes and fragment.query in self._running:
                self._running[fragment.query].kept = Queue()
        return self._commands

    # The one door

    def handle(self, event: Event, now: int) -> list[Command]:
        """Take an event; what to do about it."""
        self._begin(now)
        match event:
            case Arrived():
                self._arrived(event)
            case Produced():
                self._produced(event)
            case Tick():
                self._tick()
            case DiskDone():
                self._disk_done(event)
            case Packed():
                self._commands += self._retention.packed(event, self._now)
            case Stop():
                self._commands += self._retention.write_all(now)
            case Garbled(conn=conn, why=why, text=text):
                self._refuse(conn, why, text)
        return self._commands

    def _begin(self, now: int) -> None:
        self._commands, self._now = [], now
        self._exits.begin(now, self._commands)

    def _disk_done(self, event: DiskDone) -> None:
        if self._retention.done(event):
            return
        safe = list(self.sinks.done(event))
        if safe:
            self._pending_input.in_memory(safe)
        self._catch_up()

    def due(self) -> int:
        """When a Tick is next needed, if nothing else happens."""
        return min(self._beat_due, self._report_due)

    # Messages

    def _arrived(self, event: Arrived) -> None:
        message, conn = event.message, event.conn
        link = self._neighbours.at(conn)
        if isinstance(message, Data) and link is not None:
            self._data(link, message, event.payload, conn)
            return
        match message:
            case Hello():
                try:
                    self._commands += self._neighbours.hello(message, event, self._now)
                except ProtocolError as error:
                    self._refuse(conn, error.why, str(error))
            case Orders() if conn == COORDINATOR:
                self._orders(message)
            case Refused():
                self._count("told no")
                if link is not None and message.why == "unexpected":
                    link.refused()
                    self._beat_due = self._now
            case Welcome(protocol=protocol) if protocol != PROTOCOL:
                self._count("protocol")
            case _ if link is not None:
                self._commands += self._neighbours.heard(link, message, conn, self._now)
                if isinstance(message, Welcome):
                    # A parent is back: what follows from it waits only for those who come back with it.
                    self._beat_due = min(self._beat_due, self._now + self._neighbours.beat_us // 5)
            case _:
                self._refuse(conn, "unexpected", "say hello first")

    def _data(self, link: Link, data: Data, payload: Payload | None, conn: Conn) -> None:
        size = size_of(data.header, payload)
        if size > ROWS_BYTES_MAX + KEPT_BYTES_MIN:
            self._refuse(conn, "oversize", f"rows of {size} bytes; at most {ROWS_BYTES_MAX} are read")
            return
        try:
            check_header(data.header)
        except ProtocolError as error:
            self._refuse(conn, error.why, str(error))
            return
        fresh, sends = self._neighbours.receive(link, data.number, size, self._now)
        self._commands += sends
        if not fresh:
            self._count("frame again")
            return
        self._take(data.header, payload, FrameReceipt(link, data.number, size), conn)

    def _take(self, header: Header, payload: Payload | None, receipt: FrameReceipt, conn: Conn) -> None:
        query = QueryId(header.query)
        running = self._running.get(query)
        if running is None:
            if query in self._stopped:
                self._count("stopped")
                receipt.release()
                return
            self._parking.put(query, Parked(header, payload, receipt))
            return
        try:
            self._advance(running, header, payload, receipt)
        except RoveError as error:
            why = error.why if isinstance(error, ProtocolError) else type(error).__name__
            self._refuse(conn, why, str(error))
            self._write_off(query, header)
        finally:  # a frame that nobody can take must not hold up those behind it
            receipt.release()

    def _advance(
        self, running: RunningFragment, header: Header, payload: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """One batch through what this node does to it. Rows that pass by are not decoded."""
        running.check(header)
        header, payload = running.opened(header, payload)
        if header.late:
            if running.fragment.sinks:
                running.read(header, payload)
            self._exits.late(running, header, payload, receipt)
            return
        batch = running.read(header, payload) if running.touches(header.stage) else None
        if batch is None:
            self._exits.forward(running, header, payload, receipt)
        elif running.remembers and self.sinks.durable:
            self.sinks.remember(running, header, payload, receipt)
        else:
            self._run(running, Stage(header.stage), batch, payload, receipt)

    def _run(
        self,
        running: RunningFragment,
        stage: Stage,
        batch: Batch,
        payload: Payload | None,
        receipt: FrameReceipt | None,
    ) -> None:
        emitted = running.process(stage, batch)
        self._exits.emit(running, emitted, batch, payload, receipt)

    def _catch_up(self) -> None:
        """Compute with what is safe, in order, as far as there is room for what comes of it."""
        while self._pending_input and self.store.room > self.sinks.pending_bytes:
            try:
                replay = self._pending_input.next()
            except RoveError as error:
                self._give_up(self._pending_input.first, error)
                continue
            if replay is not None:
                self._replay(replay)

    def _give_up(self, query: QueryId, error: RoveError) -> None:
        """A query whose memory cannot be read does not run on without it; it is tried again when it is deployed."""
        self._count(type(error).__name__)
        self._troubles[query] = str(error)
        self._pending_input.forget(query)
        running = self._running.pop(query, None)
        if running is not None:
            for header in self.sinks.close(running):
                self._lose(query, header, type(error).__name__)

    def _replay(self, replay: PendingBatch) -> None:
        """What is on the disk goes into the operators that remember: a batch, or the word to wait for an origin."""
        running, header = self._running.get(replay.query), replay.header
        if running is None:
            return
        running.again = replay.again
        if is_word(header.origin):
            self._exits.emit(running, heeded(running, header))
        else:
            self._compute(running, replace(header, origin=header.origin.partition(" ")[2]), replay.payload)
        running.again = False

    def _compute(self, running: RunningFragment, header: Header, payload: Payload | None) -> None:
        try:
            batch = running.read(header, payload)
            self._run(running, Stage(header.stage), batch, payload, None)
        except RoveError as error:  # it is on the disk, and the next start loses it again: it is counted with the rest
            self._count(type(error).__name__)
            count = running.pipeline.count(source_of(header.origin))
            count.lost += header.born + header.lost
            count.evicted += header.evicted

    # Sources

    def _produced(self, event: Produced) -> None:
        try:
            stream, batch = self.sources.named(event)
        except DataError as error:
            self._count(type(error).__name__)
            return
        for running in self._running.values():
            if event.origin in running.fragment.feeds:
                try:
                    self._feed(running, stream, batch)
                except RoveError as error:  # one query's trouble is not another's
                    self._lose(running.fragment.query, batch.header, type(error).__name__)
        self._hold_sources()

    def _hold_sources(self) -> None:
        """Where nothing is thrown away, or not fast enough, sources wait before there is no room."""
        limit = self.settings.memory_bytes
        waits = self._retention.blocks or self._pending_input.bytes > limit // 4
        self._commands += self.sources.held(self.room if waits else limit, limit)

    def _feed(self, running: RunningFragment, stream: str, batch: Batch) -> None:
        stage = running.sources.get(stream)
        if stage is None:
            return
        query, header = running.fragment.query, batch.header
        self.accounts.produced(query, header.origin, header.born * running.ends[stage])
        if running.remembers and self.sinks.durable:
            header = replace(header, query=query, stage=stage)
            self.sinks.remember(running, header, encode_rows(batch.data), None)
            return
        self._run(running, stage, batch, None, None)

    # The coordinator's orders

    def _orders(self, orders: Orders) -> None:
        if orders.protocol != PROTOCOL:
            self._count("protocol")
            return
        if orders.peers is not None and digest_of(orders.peers) != self._neighbours.digest:
            self._meet(orders.peers)
            self._changed = True
        for query in orders.stop:
            self._stop(query)
        for query in orders.leave:
            self._end(query)
        for fragment in orders.deploy:
            self._deploy(fragment)
        if orders.deploy or orders.stop or orders.leave:
            self._report_due = self._now
            self._changed = True

    def _deploy(self, fragment: Fragment) -> None:
        known = self._running.get(fragment.query)
        if known is not None and known.fragment.version >= fragment.version:
            return
        before = () if known is None else known.fragment.feeds
        route = None if known is None else known.route
        kept = () if known is None or known.kept is None else known.kept
        try:
            read, forgets = reader(self.settings.trusts), not self.sinks.durable
            running = RunningFragment(fragment, forgets, read) if known is None else known.update(fragment)
            replays = self.sinks.open(running)
        except RoveError as error:
            self._count(type(error).__name__)
            self._troubles[fragment.query] = str(error)
            return
        self._running[fragment.query] = running
        self.sources.learn(running.columns())
        self._stopped.pop(fragment.query, None)
        self._troubles.pop(fragment.query, None)
        self._pending_input.on_disk(fragment.query, replays)
        if route != running.route:
            self._beat_due = self._now  # a link that begins anew says so
        self._commands += self._routes.turned(fragment.query, route, running, self._now)
        for entry in kept:
            self._commands += self._routes.send(running, entry, self._now)
        if running.remembers and self.sinks.durable:
            self.sinks.expect(running)
        else:
            unheard = running.unheard(batch.header.origin for batch in running.pipeline.held())
            emitted = running.expect(fragment.waits) + running.pipeline.gone(unheard)
            self._exits.emit(running, emitted)
        for stream, missed in self.sources.missed([o for o in fragment.feeds if o not in before]):
            self._feed(running, stream, missed)
        for header, payload, receipt in self._parking.take(fragment.query):
            self._take(header, payload, receipt, b"")
        self._commands += self._routes.changed([(fragment.query, running)], self._now)
        for entry in self._retention.pick_up(running, self._now):
            self._commands += self._routes.send(running, entry, self._now)

    def _stop(self, query: QueryId) -> None:
        """A query is over, and what nobody else can have is lost. What else had not arrived the coordinator knows: it
        knows what has."""
        self._stopped[query] = None
        for header in self._end(query):
            self._lose(query, header, "stopped")

    def _end(self, query: QueryId) -> list[Header]:
        """Run a query no longer; what was kept of it that nobody else can have."""
        running = self._running.pop(query, None)
        self._troubles.pop(query, None)
        dropped: list[Header] = []
        if running is not None:
            self.sinks.close(running)
            self.accounts.stopped(query, running.counts())
            dropped += self._routes.forget(running)
        dropped += self._neighbours.forget(query)
        self._retention.forget(query)
        for _, _, receipt in self._parking.take(query):
            receipt.release()
        return dropped

    def _meet(self, peers: tuple[Peer, ...]) -> None:
        self._commands += self._neighbours.meet(peers)
        self._beat_due = 0

    # Time

    def _tick(self) -> None:
        self._catch_up()
        self._commands += self.sinks.flush(self._now)
        self._commands += self._retention.tick(self._now)
        self._commands += self._neighbours.flush(self.room, self._now)
        if self._now >= self._beat_due:
            self._beat_due = self._now + self._neighbours.beat_us // 2
            before = self._neighbours.reached
            self._commands += self._neighbours.beat(self._now)
            if self._neighbours.reached != before:
                self._report_due = self._beat_due = self._now
                self._commands += self._routes.changed(self._running.items(), self._now)
        if self._changed and self.sinks.durable:  # kept before those below hear that they may begin
            running = tuple(r.fragment for r in self._running.values())
            self._commands.append(Remember(running, self._neighbours.peers))
        self._changed = False
        if self._now >= self._report_due:
            self._report_due = self._now + self.settings.report_us
            self._commands.append(Send(COORDINATOR, self.report()))
            self._commands += self.sinks.retire(self._now)
        self._hold_sources()

    @property
    def room(self) -> int:
        """Bytes this node may still take on."""
        return self.store.room - self.sinks.pending_bytes - self._parking.bytes - self._pending_input.bytes

    # What it tells

    def report(self) -> Report:
        """Who this node is, what it runs, and what it counted."""
        left = self._retention.left_behind()
        return Report(
            protocol=PROTOCOL,
            node=self.node,
            incarnation=self._incarnation,
            kind=self.settings.kind,
            address=self.settings.address,
            parents=self.settings.parents,
            slots=self.settings.slots,
            memory_bytes=self.settings.memory_bytes,
            sources=self.sources.listed(self._retention.earlier()),
            running={q: r.fragment.version for q, r in self._running.items()},
            unknown=tuple(dict.fromkeys((*self._parking.queries(), *(QueryId(h.query) for h in left)))),
            tallies=self.accounts.tallies(self._running, self.sinks, self.store, self.links().values()),
            refused=dict(self.refused),
            durable=self.sinks.durable,
            knows=self._neighbours.digest,
            troubles=self._troubles,
            reaches=self._neighbours.reached,
            trusts=self.settings.trusts,
            held=self.store.held(self._now),
            taken_bytes=self.store.bytes_taken,
            shrunk=self.store.shrunk,
            disk_bytes=self._retention.disk_bytes,
        )

    def on_disk(self) -> Iterator[Header]:
        """What waits on its disk, whichever start put it there."""
        yield from (entry.header for entry in self.store if entry.disk_bytes)
        yield from self._retention.left_behind()

    @property
    def trouble(self) -> str:
        """What is wrong with the disk behind its memory, if anything is."""
        return self._retention.trouble

    @property
    def busy(self) -> bool:
        """Whether something that is safe is still to be computed."""
        return bool(self._pending_input)

    def running(self) -> dict[QueryId, RunningFragment]:
        return self._running

    def links(self) -> dict[NodeId, Link]:
        return self._neighbours.links

    def _refuse(self, conn: Conn, why: str, text: str) -> None:
        self._count(why)
        self._commands.append(Send(conn, Refused(why, text)))

    def _lose(self, query: QueryId, header: Header, why: str) -> None:
        """A batch that nobody will take."""
        self._count(why)
        self._write_off(query, header)

    def _write_off(self, query: QueryId, header: Header) -> None:
        """The rows of a batch are accounted for as lost, and those that had gone before as what they were."""
        if not header.late:
            self.accounts.gone(query, source_of(header.origin), header.born + header.lost, header.evicted)

    def _count(self, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1
