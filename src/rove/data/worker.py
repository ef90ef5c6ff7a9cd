"""A worker (device, edge node or gateway) as one state machine.

Law: events in, commands out; no socket, file, clock or randomness. A received batch is acked when its results are safe:
on a disk, in an operator's state, or acked by the next node. So a node that only passes batches on may die at any time,
and the senders send the batches again. Room is promised to peers before they use it, so a node stays below its bound,
and a source is told to wait before the room is used up.

    Arrived ─► link ─► fragment ─► store ─► link ─► Send          a batch that goes on
                          └──────► output ─► OnDisk … DiskDone ─► Ack       a batch that ends here
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from rove.data import troubles
from rove.data.accounts import Accounts
from rove.data.ends.exits import Exits
from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.ends.pending_input import PendingInput
from rove.data.events import (
    Command,
    DiskDone,
    Event,
    Listed,
    Loaded,
    LogRead,
    Opened,
    OpenFailed,
    Packed,
    Produced,
    Readers,
    Remember,
    Stop,
)
from rove.data.fragment.deployment.checkpoints import Checkpoints
from rove.data.fragment.deployment.deployment import Deployment
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.deployment.opening import Openings
from rove.data.fragment.deployment.replay import Replay
from rove.data.fragment.entrance import Entrance
from rove.data.fragment.reconfigure.leaving_states import LeavingStates
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.link import Link, Said
from rove.data.link.neighbours import Neighbours
from rove.data.link.parking import Parking
from rove.data.link.receipts import FrameReceipt
from rove.data.link.routes import Routes
from rove.data.log.folders import Folders
from rove.data.reports import Reports, facts_of
from rove.data.settings import WorkerSettings
from rove.data.sources.positions import SourceAt
from rove.data.sources.safety import first_unsafe
from rove.data.sources.sources import Sources
from rove.data.store.eviction import Policy
from rove.data.store.kept_batch import size_of
from rove.data.store.retention import Retention
from rove.data.store.store import Store
from rove.data.turn import Turn
from rove.model.batch import Header, HeaderKind
from rove.model.errors import DataError, ProtocolError, RoveError
from rove.model.events import COORDINATOR, Arrived, Conn, Garbled, Payload, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import (
    PROTOCOL,
    Data,
    Fragment,
    Hello,
    Orders,
    Peer,
    Refused,
    Report,
    TroubleHere,
    Welcome,
    digest_of,
)
from rove.plan.user_functions import Reader, reader


class Worker:
    """The links, fragments, sources and ends of one node. `start` differs from every earlier start of the node. A
    `durable` node has a disk. A user's own `policy` decides what is evicted when there is no room. `read` reads users'
    functions; without it they run here."""

    def __init__(
        self,
        settings: WorkerSettings,
        start: int,
        durable: bool = False,
        policy: Policy | None = None,
        read: Reader | None = None,
    ) -> None:
        self.settings, self.start, self.node = settings, start, settings.node
        self.store = Store(settings.memory_bytes)
        self.durable, self._folders = durable, Folders()
        self.output, self.input_log = Output(self._folders, durable), InputLog(self._folders)
        self._openings = Openings(self._folders)
        self._retention = Retention(self.store, settings, self._folders if durable else None, start, policy)
        self.accounts = Accounts()
        self.refused = self.accounts.refused
        self._neighbours = Neighbours(settings, start, self.store)
        self._routes = Routes(self._neighbours, self.store)
        self._fragments = Fragments()
        self._turn, self.parking, self._reports = Turn(), Parking(), Reports()
        self.sources = Sources()
        running = self._fragments.running
        parts = (self._turn, self.store, self.output, self._retention, self._routes, self.sources)
        self._exits = Exits(*parts, running, self.accounts.refuse)
        self._entrance = Entrance(
            turn=self._turn,
            fragments=self._fragments,
            parking=self.parking,
            unheard=self._neighbours.unheard,
            sources=self.sources,
            output=self.output,
            input_log=self.input_log,
            exits=self._exits,
            accounts=self.accounts,
        )
        pending, ends = PendingInput(), (self.output, self.input_log, self._exits)
        self._leaving_states = LeavingStates(self._fragments, self.store, *ends, pending)
        self._checkpoints = Checkpoints(self._turn, self._fragments, self.store, *ends[:2], settings)
        self._replay = Replay(
            pending=pending,
            checkpoints=self._checkpoints,
            sources=self.sources,
            leaving_states=self._leaving_states,
            turn=self._turn,
            fragments=self._fragments,
            store=self.store,
            output=self.output,
            input_log=self.input_log,
            entrance=self._entrance,
            exits=self._exits,
            accounts=self.accounts,
        )
        self._deployment = Deployment(
            read=read or reader(settings.trusts),
            turn=self._turn,
            fragments=self._fragments,
            sources=self.sources,
            store=self.store,
            folders=self._folders,
            openings=self._openings,
            output=self.output,
            input_log=self.input_log,
            retention=self._retention,
            neighbours=self._neighbours,
            routes=self._routes,
            parking=self.parking,
            entrance=self._entrance,
            exits=self._exits,
            replay=self._replay,
            accounts=self.accounts,
            leaving_states=self._leaving_states,
        )
        self._beat_due, self._report_due, self._changed = 0, 0, False
        self._ordered_us: int | None = None  # when the coordinator first gave orders
        self._found = self._retention.knows  # whether the batches that earlier starts left on the disk are known

    # Before it starts

    def add_source(
        self, stream: str, origin: Origin, columns: str, replays: bool = False, at: SourceAt | None = None
    ) -> None:
        """Declare a source. One that `replays` can make its batches again, and goes on `at` an earlier position."""
        self.sources.add(stream, origin, columns, replays, at)
        self.accounts.goes_on(at)

    def remembered(self, kept: Remember, now: int = 0) -> list[Command]:
        """Resume the fragments that this node ran before it stopped or died, with or without the coordinator."""
        self._turn.begin(now)
        self._meet(kept.peers)
        self._neighbours.below.learn(kept.below)
        for fragment in kept.fragments:
            self._beat_if(self._deployment.resume(fragment, kept.plans))
        self._turn.commands += self._folders.ask(now)
        return self._turn.commands

    # Events

    def handle(self, event: Event, now: int) -> list[Command]:
        """Take an event. Returns what to do about it."""
        self._turn.begin(now)
        match event:
            case Arrived():
                self._arrived(event)
            case Produced():
                self._produced(event)
            case Tick():
                self._tick()
            case DiskDone():
                self._disk_done(event)
            case Opened() | OpenFailed():
                self._opened(event)
            case LogRead():
                self._log_read(event)
            case Loaded():
                self._turn.commands += self._neighbours.loaded(event, now)
            case Listed():
                self._retention.listed(event, now)
                self._find()
            case Readers():
                self._turn.commands += self.output.read_by(event, now)
            case Packed():
                self._turn.commands += self._retention.packed(event, self._turn.now)
            case Stop():
                ends = (*self.output.flush(now), *self.input_log.flush(now))
                self._turn.commands += [*ends, *self._retention.write_all(now)]
                self._keep_positions()
            case Garbled(conn=conn, why=why, text=text):
                self._entrance.refuse(conn, why, text)
        self._turn.commands += self._folders.ask(now)
        return self.sources.before_sends(self._turn.commands)

    # The disk

    def _disk_done(self, event: DiskDone) -> None:
        if self._retention.done(event):
            return
        safe = self.input_log.done(event)
        if safe is None:
            self.output.done(event)
            safe = []
        self._replay.became_safe(safe)

    def _opened(self, event: Opened | OpenFailed) -> None:
        """A folder is open, or could not be opened. Parts that wait for it go on, or learn why not."""
        if not self._folders.answered(event, self._turn.now):
            return
        if isinstance(event, Opened):
            self._turn.commands += self.accounts.recovered(event, not self._retention.owns(event.folder))
        self._retention.opened(event.folder)
        self.output.opened(event.folder)
        for opening in self._openings.ready():
            self._beat_if(self._deployment.go_on(opening))
            self._report_due, self._changed = self._turn.now, True
        self._find()

    def _log_read(self, event: LogRead) -> None:
        if self._retention.read(event, self._turn.now):
            self._find()
        else:
            self._replay.read(event)

    def _find(self) -> None:
        """Ask for batches that earlier starts left. Once all are known, running queries send theirs."""
        if self._found:
            return
        self._turn.commands += self._retention.look(self._turn.now)
        if self._retention.knows:
            self._found = True
            self.sources.left_behind(self._retention.left_behind())
            self._turn.commands += self._retention.look(self._turn.now)
            self.accounts.refuse("damaged", self._retention.damaged)
            for running in self._fragments.running.values():
                self._deployment.pick_up(running)

    def due(self) -> int:
        """When the next Tick is needed, if nothing else happens."""
        return min(self._beat_due, self._report_due) if self._found else self._beat_due

    # Messages

    def _arrived(self, event: Arrived) -> None:
        message, conn = event.message, event.conn
        link = self._neighbours.at(conn)
        if isinstance(message, Data) and link is not None:
            self._data(link, message, event.payload, conn)
            return
        match message:
            case Orders() if conn == COORDINATOR:
                self._orders(message)
            case Refused():
                self.accounts.refuse("refused by a peer")
                if link is not None and message.why == "unexpected" and link.refused():
                    self._beat_due = self._turn.now
            case Welcome(protocol=protocol) if protocol != PROTOCOL:
                self.accounts.refuse("protocol")
            case _:
                try:
                    self._turn.commands += self._heard(link, event)
                except ProtocolError as error:
                    self._entrance.refuse(conn, error.why, str(error))

    def _heard(self, link: Link | None, event: Arrived) -> list[Said]:
        """Handle a peer's message about its link."""
        message, conn, now = event.message, event.conn, self._turn.now
        if isinstance(message, Hello):
            return self._neighbours.hello(message, event, now)
        if link is None:
            raise ProtocolError("unexpected", "say hello first")
        said = self._neighbours.heard(link, message, conn, now)
        if isinstance(message, Welcome):
            # A parent is back. Wait a moment for others that come back with it, then choose routes.
            self._beat_due = min(self._beat_due, now + self._neighbours.beat_us // 5)
        return said

    def _data(self, link: Link, data: Data, payload: Payload | None, conn: Conn) -> None:
        size = size_of(data.header, payload)
        try:
            fresh, sends = self._neighbours.receive(link, data, size, self._turn.now)
        except ProtocolError as error:
            self._entrance.refuse(conn, error.why, str(error))
            return
        self._turn.commands += sends
        if not fresh:
            self.accounts.refuse("duplicate frame")
            return
        self._entrance.take(data.header, payload, FrameReceipt(link, data.number, size), conn)

    # Sources

    def _produced(self, event: Produced) -> None:
        try:
            stream, batch = self.sources.named(event)
        except DataError as error:
            self.accounts.refuse(type(error).__name__)
            return
        self._openings.produced(stream, batch)
        for running in self._fragments.running.values():
            if event.origin in running.fragment.feeds:
                try:
                    self._entrance.feed(running, stream, batch)
                except RoveError as error:  # trouble of one query must not affect others
                    self.accounts.lose(running.fragment.query, batch.header, type(error).__name__)
                    running.lost(error)
        self._hold_sources()

    def _hold_sources(self) -> None:
        """Make sources wait before the room is used up, if nothing is evicted or not fast enough."""
        limit, here = self.settings.memory_bytes, {*self._fragments.running, *self.opening()}
        waits = self._retention.blocks or self._replay.pending.bytes + self._openings.bytes > limit // 4
        known = self._found and self.sources.complete(here, self._ordered_us, self._turn.now)
        self._turn.commands += self.sources.held(self.room if waits else limit, limit, known)

    def _keep_positions(self) -> None:
        unsafe = first_unsafe(self.store, self.output, self.input_log, self._openings, self.sources.replays)
        self._turn.commands += self.sources.safe(unsafe)

    # The coordinator's orders

    def _orders(self, orders: Orders) -> None:
        if orders.protocol != PROTOCOL:
            self.accounts.refuse("protocol")
            return
        self._ordered_us = self._turn.now if self._ordered_us is None else self._ordered_us
        if self._reports.ordered(orders):
            self._report_due = self._turn.now
        if orders.peers is not None and digest_of(orders.peers) != self._neighbours.digest:
            self._meet(orders.peers)
            self._changed = True
        if orders.learn is not None:
            self._turn.commands += self._neighbours.learn(orders.learn, self._turn.now)
            self._report_due, self._changed = self._turn.now, True
        for query in orders.stop:
            self._deployment.stop(query)
        for query in orders.leave:
            self._beat_if(self._deployment.leave(query))
        for fragment in orders.deploy:
            counted = orders.counted.get(fragment.query, ())
            self._beat_if(self._deployment.deploy(fragment, orders.plans, counted=counted))
        if orders.deploy or orders.stop or orders.leave:
            self._report_due = self._turn.now
            self._changed = True

    def _beat_if(self, turned: bool) -> None:
        """After a route has changed, a link may need a new session. Let it say so at once."""
        if turned:
            self._beat_due = self._turn.now

    def _meet(self, peers: tuple[Peer, ...]) -> None:
        self._turn.commands += self._neighbours.meet(peers)
        self._beat_due = 0

    # Time

    def _tick(self) -> None:
        self._replay.catch_up()
        self._leaving_states.pump(self._turn.now)
        self._checkpoints.advance()
        self._turn.commands += [*self.output.flush(self._turn.now), *self.input_log.flush(self._turn.now)]
        self._turn.commands += self._retention.tick(self._turn.now)
        self._find()
        self._turn.commands += self._neighbours.flush(self.room, self._turn.now)
        if self._turn.now >= self._beat_due:
            self._beat_due = self._turn.now + self._neighbours.beat_us // 2
            before = self._neighbours.reached
            self._turn.commands += self._neighbours.beat(self._turn.now)
            if self._neighbours.reached != before:
                self._report_due = self._beat_due = self._turn.now
                self._turn.commands += self._routes.changed(self._fragments.running.items(), self._turn.now)
        if self._changed:
            self._fragments.forget_plans(fragment.plan for fragment in self.opening().values())
        if self._changed and self.durable:  # stored before the nodes below are told that they may begin
            fragments = ({q: r.fragment for q, r in self._fragments.running.items()} | self.opening()).values()
            below = self._neighbours.below.everything()
            kept = Remember(tuple(fragments), self._neighbours.peers, dict(self._fragments.plans), below)
            self._turn.commands.append(kept)
        self._changed = False
        # A report must include the origins of earlier starts; otherwise others would no longer wait for them.
        if self._turn.now >= self._report_due and self._found:
            self._report_due = self._turn.now + self.settings.report_us
            self._keep_positions()
            self._turn.commands += self.reports()
            self._turn.commands += [*self.output.retire(), *self.input_log.trim(self._turn.now)]
        self._hold_sources()

    @property
    def room(self) -> int:
        """How many bytes this node may still take."""
        waiting = self.output.pending_bytes + self.input_log.pending_bytes + self._openings.bytes
        return self.store.room - waiting - self.parking.bytes - self._replay.pending.bytes

    # Reporting

    def reports(self) -> list[Command]:
        """The reports that tell the coordinator what has changed."""
        return [Send(COORDINATOR, report) for report in self._reports.next(self.report())]

    def report(self) -> Report:
        """A whole report: what this node is, what it runs, and what it counted."""
        left, ends = self._retention.left_behind(), (self.output, self.input_log, self.store)
        waiting = (*left, *self.waiting())
        sources = self.sources.listed([o for o in self._retention.earlier() if o.node == self.node])
        facts = facts_of(self.settings, sources, self.durable, self._retention.disk_bytes)
        return Report(
            protocol=PROTOCOL,
            node=self.node,
            start=self.start,
            number=0,
            whole=True,
            facts=facts,
            running={q: r.fragment.version for q, r in self._fragments.running.items()},
            unknown=tuple(dict.fromkeys((*self.parking.queries(), *self.opening(), *(QueryId(h.query) for h in left)))),
            tallies=self.accounts.tallies(self._fragments.running, *ends, self.links().values(), waiting),
            refused=dict(self.refused),
            knows=self._neighbours.digest,
            learned=self._neighbours.below.known,
            troubles=self.troubles_of_queries(),
            reaches=self._neighbours.reached,
            held=self.store.held(self._turn.now),
            taken_bytes=self.store.bytes_taken,
            shrunk=self.store.shrunk,
            moved=self._leaving_states.moved(),
            released=self._leaving_states.released(),
        )

    def on_disk(self) -> Iterator[Header]:
        """The batches that wait on its disk, of any start."""
        return chain((entry.header for entry in self.store if entry.disk_bytes), self._retention.left_behind())

    def troubles(self) -> dict[str, str]:
        """What is wrong with its disk, by folder or part."""
        return troubles.of_node(self._folders, self._replay, self._neighbours, self._retention, self._turn.now)

    def troubles_of_queries(self) -> dict[QueryId, tuple[TroubleHere, ...]]:
        """What is wrong with which query here, for the coordinator."""
        parts = (self._retention, self._fragments, self._openings, self._neighbours)
        return troubles.of_queries(self.output, self.input_log, *parts, self._turn.now)

    def took(self, query: QueryId, origin: Origin, seq: int) -> bool:
        """Whether a batch of a source has reached its end here, or the input log of operators."""
        return self.output.took(query, origin, seq) or self.input_log.took(query, origin, seq)

    def waiting(self) -> Iterator[Header]:
        """The headers of batches that wait for the disk, or to be computed."""
        found = (*self.output.waiting(), *self.input_log.waiting(), *self._replay.pending.headers())
        return (h for h in found if not h.state and h.kind in (HeaderKind.BATCH, HeaderKind.INPUT))

    def fed(self, origin: Origin) -> list[QueryId]:
        """The queries that get the rows of a source, now or when their folders are open."""
        running = [q for q, r in self._fragments.running.items() if origin in r.fragment.feeds]
        return [*running, *(q for q in self._openings.feeds(origin) if q not in running)]

    def opening(self) -> dict[QueryId, Fragment]:
        """The fragments that wait for their folders."""
        return self._openings.fragments()

    @property
    def busy(self) -> bool:
        """Whether safe input is still to be computed, or a fragment waits for its folders."""
        return bool(self._replay.pending or self.opening()) or not self._found

    def validate(self) -> None:
        """Every law of this node that can be seen from inside it; one that is broken raises. O(what it holds)."""
        ends = (self.store, self.output, self.input_log, self._openings, self._replay.pending, self.parking)
        for part in (*ends, self._neighbours, self._fragments):
            part.validate()
        carried = [entry for link in self.links().values() for entry in link.entries()]
        carried += [entry for r in self._fragments.running.values() for entry in r.kept if not entry.gone]
        self.store.validate_carried(carried, self.node)

    def running(self) -> dict[QueryId, RunningFragment]:
        return self._fragments.running

    def links(self) -> dict[NodeId, Link]:
        return self._neighbours.links
