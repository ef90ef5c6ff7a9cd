"""A simulated world of nodes in virtual time: one heap of events, one seed, one history.

Law: every event is on the heap, and commands of machines put new events onto it. Two runs of a seed are equal to the
byte; the hash of the transcript shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from heapq import heappop, heappush
from random import Random
from typing import Protocol

from rove.control.asks.requests import PATIENCE_US, Drain, Named, Submit, Update, to_body
from rove.control.commands import Keep
from rove.data.events import (
    AskReaders,
    Command,
    Dial,
    DiskWork,
    Event,
    Evicted,
    Go,
    KeepPositions,
    ListFolders,
    Load,
    OnDisk,
    Open,
    Pack,
    Produced,
    ReadLog,
    Remember,
    Wait,
)
from rove.data.settings import WorkerSettings
from rove.data.store.packing import Packer
from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived, Send, Tick
from rove.model.ids import SOURCE, NodeId, Origin, QueryId
from rove.model.messages import Answer, Ask, Goodbye, Message, Sink, encode
from rove.plan import codec
from rove.plan.stages import Stages
from rove.sim.network import InFlight, Network
from rove.sim.nodes import NOWHERE, SimCoordinator, SimNode, SimSource
from rove.sim.queries import START_US, some_rows
from rove.sim.shelf import SimShelf

COORDINATOR_TICK_US = 500_000
PACK_US = 2_000
SMALL_NODES_MAX = 20  # in a world of so many nodes a machine is validated after each of its steps
VALIDATED_EVERY = 8  # in a larger one after each n-th step of all: it would take half as long again otherwise


# The coordinator's tables are worked out again after an event with commands, and after each n-th event of all. That
# takes forty times as long as to compare its states and indexes, which is done as often as nodes are validated.
WHOLE_EVERY = 64


class Watcher(Protocol):
    """A checker that looks at a node after every step."""

    def stepped(self, world: World, node: SimNode) -> None: ...


class Listener(Protocol):
    """Records every event that a machine gets, and every command that it returns."""

    def told(self, world: World, who: NodeId, event: object, commands: Sequence[object]) -> None: ...


class Forger(Protocol):
    """Changes messages of a node when they arrive."""

    def passed(self, world: World, flight: InFlight) -> InFlight: ...


class World:
    """Nodes, a coordinator and the network between them. `random` makes all random choices."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.network = Network(Random(random.random()))
        self.nodes: dict[NodeId, SimNode] = {}
        self.coordinator = SimCoordinator()
        self.queries: dict[QueryId, tuple[Stages, Sink]] = {}
        self.asked: set[str] = set()
        self.answers: dict[str, Answer] = {}
        self.stopped: set[QueryId] = set()  # queries that were stopped
        self.first: dict[QueryId, set[Origin]] = {}  # the origins each query began with
        self.evicted: set[tuple[str, Origin, int]] = set()  # batches that full stores evicted: query, origin, seq
        self.thinned: set[QueryId] = set()  # queries that thin batches before they lose whole ones
        self.impatient: set[QueryId] = (
            set()
        )  # queries with a short return timeout: rows of devices that are away become late
        self.forgot: set[QueryId] = set()  # queries that lost the state of an operator with a node without a disk
        self.replaced: set[QueryId] = set()  # queries with operators that were started elsewhere without their state
        self.dead: set[Origin] = set()  # origins that ended with their processes
        self.hurt: set[QueryId] = set()  # queries with a folder on a disk that has lost something of it
        self.unreadable: set[QueryId] = set()  # of those, queries whose log names damage to its readers
        self.forged: set[NodeId] = set()  # nodes to which frames were forged
        self.twins: set[NodeId] = set()  # names under which two processes ran at a time
        self.safe: set[tuple[str, Origin, int]] = (
            set()
        )  # of those, batches that were on their disks: query, origin, seq
        self.unsaved: set[tuple[str, Origin, int]] = set()  # batches whose only keeper died without a disk
        self.watchers: list[Watcher] = []
        self.audits: list[Callable[[World], None]] = []  # checks that are made at each tick of the coordinator
        self.listeners: list[Listener] = []
        self.forger: Forger | None = None
        self._packer = Packer()
        self.now = 0
        self.steps = self._ticks = self._handled = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._transcript = blake2b(digest_size=16)
        self.flying: dict[int, InFlight] = {}

    # Building

    def add_node(
        self,
        settings: WorkerSettings,
        durable: bool = False,
        sources: tuple[SimSource, ...] = (),
        skew_us: int = 0,
        place: NodeId = NOWHERE,
    ) -> SimNode:
        shelf = SimShelf(Random(self.random.random())) if durable else None
        node = SimNode(settings, shelf, list(sources), skew_us, place=place)
        self.nodes[node.place] = node
        return node

    def at(self, moment: int, action: Callable[[], None]) -> None:
        """Put an event onto the heap."""
        self._count += 1
        heappush(self._heap, (max(moment, self.now), self._count, action))

    # Starting and killing processes

    def start(self, name: NodeId) -> None:
        """Start a node's process. It dials the coordinator and the peers that it remembers."""
        node = self.nodes[name]
        if node.left:
            return
        if self.now < node.begins_us:
            self.at(node.begins_us, partial(self._start_late, name))
            return
        self._note("start", name)
        worker = node.start()
        self.network.dial(name, COORDINATOR)
        kept = node.kept
        if kept is not None:
            commands = worker.remembered(kept, self.now)
            self._tell(name, kept, commands)
            self._obey(node, commands)
        for source in node.sources:
            if not source.ended and (source.replays or not source.made):
                self._schedule_source(node, source)
        self._tick(node)

    def _start_late(self, name: NodeId) -> None:
        if self.nodes[name].worker is None:
            self.start(name)

    def kill(self, name: NodeId, power: bool = False) -> None:
        """Kill a process without a message to its peers. If the power goes while its disk lies, whatever the reason,
        the disk loses what it said it had synced."""
        node = self.nodes[name]
        self._note("kill", name)
        if node.shelf is not None:
            if power and node.shelf.lies:
                self.hurt |= node.shelf.queries()
            node.shelf.crash(node.pending, power)
        if node.worker is not None:
            self.safe.update((h.query, h.origin.unsided, h.seq) for h in node.worker.on_disk())
            kept = (e.header for e in node.worker.store if node.shelf is None and e.receipt is None)
            self.unsaved.update((h.query, h.origin.unsided, h.seq) for h in kept if h.origin.stage != SOURCE)
        node.worker, node.pending, node.tick_us = None, [], -1  # its timer no longer counts
        for source in node.sources:
            source.dead, source.died, source.owed = not source.replays, True, False
            if source.dead:
                self.dead.add(source.origin)
        for wire in self.network.wires.values():
            if name in (wire.dialer, wire.listener):
                wire.generation += 1

    def leave(self, name: NodeId, goodbye: bool) -> None:
        """A node leaves for good, with or without a goodbye. What it alone had is lost."""
        node = self.nodes[name]
        if goodbye and node.worker is not None:
            self.say(name, COORDINATOR, Goodbye(name))
        self.kill(name)
        node.left = True
        for source in node.sources:
            source.ended = source.dead = True
            self.dead.add(source.origin)
        self.safe = {each for each in self.safe if each[1].node != node.name or node.second}

    def say(self, name: NodeId, to: NodeId, message: Message, payload: bytes | None = None) -> None:
        """Send messages of a process that its machine did not ask for."""
        self._send(self.nodes[name], to, message, payload)

    def remove(self, name: NodeId) -> None:
        """A user removes a node that has left."""
        self._ask(Ask(f"remove {name} {self.now}", "remove", to_body(Named(name=name))))

    def start_coordinator(self) -> None:
        self._note("start", COORDINATOR)
        self.coordinator.start()
        self.at(self.now, self._tick_coordinator)

    def kill_coordinator(self) -> None:
        self._note("kill", COORDINATOR)
        self.coordinator.machine = None
        for wire in self.network.wires.values():
            if wire.listener == COORDINATOR:
                wire.generation += 1

    def submit(
        self,
        name: QueryId,
        stages: Stages,
        sink: Sink,
        strategy: str = "bottom_up",
        replication: int = 1,
        copies: bool = True,
        patience_us: int = PATIENCE_US,
        thins: int = 0,
        folds: bool = False,
    ) -> None:
        """Submit a query."""
        self.queries[name] = (stages, sink)
        if thins:
            self.thinned.add(name)
        if patience_us < PATIENCE_US:
            self.impatient.add(name)
        body = to_body(
            Submit(
                name=name,
                plan=codec.encode(stages),
                sink=sink,
                strategy=strategy,
                replication=replication,
                copies=copies,
                patience_us=patience_us,
                thins=thins,
                folds=folds,
            )
        )
        self._ask(Ask(f"submit {name}", "submit", body))

    def stop(self, name: QueryId) -> None:
        """Stop a query."""
        self.stopped.add(name)
        self._ask(Ask(f"stop {name}", "stop", to_body(Named(name=name))))

    def update(self, name: QueryId, stages: Stages) -> None:
        """Give a query another text that means the same."""
        self._ask(Ask(f"update {name} {self.now}", "update", to_body(Update(name=name, plan=codec.encode(stages)))))

    def drain(self, name: NodeId, back: bool = False) -> None:
        """A user drains a node, or lets it take part again."""
        self._ask(Ask(f"drain {name} {back} {self.now}", "drain", to_body(Drain(name=name, back=back))))

    def _ask(self, ask: Ask) -> None:
        """Repeat a request until it is answered."""
        self.asked.add(ask.id)

        def again() -> None:
            if ask.id not in self.answers:
                self._to_coordinator(Arrived("user", ask))
                self.at(self.now + 1_000_000, again)

        self.at(self.now, again)

    # The loop

    def run(self, until: int, done: Callable[[], bool] = lambda: False) -> None:
        """Run events until a time, or until `done`."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heappop(self._heap)
            action()
            self.steps += 1
            if self.steps % 64 == 0 and done():
                return
        self.now = max(self.now, until)

    def transcript(self) -> str:
        return self._transcript.hexdigest()

    def handle(self, node: SimNode, event: Event) -> None:
        """Give a machine an event, then a tick."""
        worker = node.worker
        if worker is None:
            return
        commands = worker.handle(event, self.now)
        self._tell(node.name, event, commands)
        self._obey(node, commands)
        if node.worker is worker:
            self._tick(node)

    def _tick(self, node: SimNode) -> None:
        worker = node.worker
        if worker is None:
            return
        commands = worker.handle(Tick(), self.now)
        self._tell(node.name, Tick(), commands)
        self._obey(node, commands)
        self._ticks += 1
        if len(self.nodes) <= SMALL_NODES_MAX or self._ticks % VALIDATED_EVERY == 0:
            worker.validate()
        for watcher in self.watchers:
            watcher.stepped(self, node)
        due = max(worker.due(), self.now + 1_000)
        if node.tick_us <= self.now or due < node.tick_us:
            node.tick_us = due
            self.at(due, lambda: self._timer(node, worker, due))

    def _timer(self, node: SimNode, worker: Worker, due: int) -> None:
        if node.worker is worker and node.tick_us == due:
            node.tick_us = -1
            self._tick(node)

    def _obey(self, node: SimNode, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send(conn=conn, message=message, payload=payload):
                    self._send(node, conn, message, payload)
                case Dial(peer=peer):
                    self.network.dial(node.place, peer.node)
                case OnDisk() | Open() | ReadLog() | Load() | ListFolders() | AskReaders() if node.shelf is not None:
                    node.pending.append(command)
                    done = node.shelf.done_at(command, self.now)
                    self.at(done, partial(self._disk, node, node.worker, command))
                case Evicted(query=query, origin=origin, seq=seq, late=False):
                    self.evicted.add((query, origin, seq))
                case Pack():
                    self.at(self.now + PACK_US, partial(self._packed, node, node.worker, command))
                case Wait(origin=origin) | Go(origin=origin):
                    for source in node.sources:
                        if source.origin == origin:
                            source.waits = isinstance(command, Wait)
                            if not source.waits and source.owed:
                                source.owed = False
                                self.at(self.now, partial(self._produce, node, source))
                case Remember():
                    node.kept = command
                case KeepPositions(positions=positions):
                    kept = {at.origin: at for at in positions}
                    for source in node.sources:
                        source.at = kept.get(source.origin, source.at)

    def _disk(self, node: SimNode, worker: Worker | None, order: DiskWork) -> None:
        if node.worker is not worker or node.shelf is None:
            return
        node.pending = [each for each in node.pending if each is not order]
        answer = node.shelf.answer(order)
        self._note("disk", node.name, type(answer).__name__, getattr(answer, "trouble", ""))
        self.handle(node, answer)

    def _packed(self, node: SimNode, worker: Worker | None, order: Pack) -> None:
        if node.worker is worker:
            self.handle(node, self._packer.answer(order))

    # Messages

    def _send(self, node: SimNode, conn: str | bytes, message: Message, payload: bytes | memoryview | None) -> None:
        if isinstance(conn, str):
            wire = self.network.wires.get((node.place, NodeId(conn)))
        else:
            dialer = NodeId(conn.decode().partition("#")[0])
            wire = self.network.wires.get((dialer, node.place))
            if wire is not None and wire.conn != conn:
                return  # that connection is closed
        if wire is None:
            return
        sent = self.network.send(node.place, wire, message, payload, self.now)
        if sent is not None:
            self._fly(*sent)

    def _fly(self, arrives: int, flight: InFlight) -> None:
        self._count += 1
        number = self._count
        self.flying[number] = flight
        self.at(arrives, lambda: self._land(number))

    def _land(self, number: int) -> None:
        flight = self.flying.pop(number)
        if flight.wire.cut or flight.generation != flight.wire.generation:
            return
        if self.forger is not None:
            flight = self.forger.passed(self, flight)
        self._note("message", flight.to, encode(flight.message))
        event = Arrived(flight.conn, flight.message, flight.payload)
        if flight.to == COORDINATOR:
            self._to_coordinator(event)
        else:
            self.handle(self.nodes[flight.to], event)

    def _to_coordinator(self, event: Arrived | Tick) -> None:
        machine = self.coordinator.machine
        if machine is None:
            return
        commands = machine.handle(event, self.now, START_US + self.now + self.coordinator.skew_us)
        self._handled += 1
        if len(self.nodes) <= SMALL_NODES_MAX or self._handled % VALIDATED_EVERY == 0:
            machine.deployments.validate(whole=False)
        if commands or self._handled % WHOLE_EVERY == 0:
            machine.validate()
        self._tell(COORDINATOR, event, commands)
        for command in commands:
            match command:
                case Keep(kind=kind, name=name, record=record):
                    if record is None:
                        self.coordinator.kept.pop((kind, name), None)
                    else:
                        self.coordinator.kept[(kind, name)] = record
                case Send(conn="user", message=Answer() as answer):
                    self.answers[answer.id] = answer
                    self._note("answer", answer.id, answer.trouble)
                case Send(conn=bytes() as conn, message=message):
                    dialer = NodeId(conn.decode().partition("#")[0])
                    wire = self.network.wires.get((dialer, COORDINATOR))
                    if wire is not None and wire.conn == conn:
                        sent = self.network.send(COORDINATOR, wire, message, None, self.now)
                        if sent is not None:
                            self._fly(*sent)

        for query in machine.queries.values():
            if query.id not in self.first and query.fragments:
                made = {origin for f in query.fragments.values() for origin in (*f.feeds, *f.makes.values())}
                self.first[query.id] = made

    def _tick_coordinator(self) -> None:
        machine = self.coordinator.machine
        if machine is not None:
            self._to_coordinator(Tick())
            for audit in self.audits:
                audit(self)
            self.at(
                self.now + COORDINATOR_TICK_US,
                lambda: self._tick_coordinator() if self.coordinator.machine is machine else None,
            )

    # Sources

    def _schedule_source(self, node: SimNode, source: SimSource) -> None:
        worker = node.worker

        def due() -> None:
            if node.worker is worker:  # else its process has died since
                self._produce(node, source)

        self.at(self.now + self.random.randint(1, 2 * source.every_us), due)

    def _produce(self, node: SimNode, source: SimSource) -> None:
        if node.worker is None or source.ended:
            return
        if source.waits:
            source.owed = True
            return
        source.next += 1
        if source.next <= len(source.made):  # it was made before its process died
            for query in node.worker.fed(source.origin):  # it may have begun behind this batch before the process died
                first = node.worker.sources.first(query, source.origin)
                source.fed.setdefault(query, max(first, source.next - 1))
            self._note("made again", str(source.origin), str(source.next))
            self.handle(node, Produced(source.origin, source.made[source.next - 1], self._wall(node)))
            self._schedule_source(node, source)
            return
        source.left -= 1
        if source.left < 0:
            source.ended = True
            self.handle(node, Produced(source.origin, None, self._wall(node), ended=True))
            return
        clock = START_US + self.now + node.jumped_us
        data = some_rows(self.random, source.origin.node, clock, source.rows, 3_000_000)
        for query in node.worker.fed(source.origin):
            source.fed.setdefault(query, len(source.made))
        source.made.append(data)
        self._note("produced", str(source.origin), str(data.num_rows))
        self.handle(node, Produced(source.origin, data, self._wall(node)))
        self._schedule_source(node, source)

    def _tell(self, who: NodeId, event: object, commands: Sequence[object]) -> None:
        for listener in self.listeners:
            listener.told(self, who, event, commands)

    def _wall(self, node: SimNode) -> int:
        return START_US + self.now + node.skew_us + node.jumped_us

    def _note(self, what: str, *details: str | bytes) -> None:
        """Add a line to the transcript. Only its hash is kept."""
        self._transcript.update(f"{self.now} {what} ".encode())
        for detail in details:
            self._transcript.update(detail if isinstance(detail, bytes) else detail.encode())
