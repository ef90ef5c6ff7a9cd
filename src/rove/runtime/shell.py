"""Shells: they give events to machines and execute their commands, over any transport.

Law: events go in one after the other, and every command is executed before the next round begins. A coordinator's
records are on the disk before any message of that round is sent. An exception that leaves a machine ends it
(`runtime/broken`). A command that cannot be executed is logged and counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from rove.data.events import (
    AskReaders,
    Command,
    Cut,
    Dial,
    DiskAnswer,
    Event,
    Evicted,
    Go,
    KeepPositions,
    ListFolders,
    Load,
    Met,
    Note,
    OnDisk,
    Open,
    Pack,
    ReadLog,
    Remember,
    Stop,
    Wait,
)
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.errors import DiskError, RoveError
from rove.model.events import COORDINATOR, Allow, Arrived, Conn, Drop, Garbled, Payload, Send, Tick
from rove.model.messages import Message, Peer
from rove.runtime.adapters.places import Places
from rove.runtime.adapters.sources import Producers, SourceSpec
from rove.runtime.broken import Broken, described
from rove.runtime.clock import now_us, wall_us
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.functions.reader import ProcessReader
from rove.runtime.hooks import Hooks
from rove.runtime.loading import policy_at
from rove.runtime.packing import PackThread
from rove.runtime.watch import LOOK_US, Once, Watch

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator
    from rove.runtime.disk.catalog import Catalog
    from rove.runtime.metrics import MetricsServer

log = logging.getLogger("rove")

COORDINATOR_TICK_US = 500_000
STOP_US_MAX = 5_000_000  # for writing waiting batches when the process stops


class Transport(Protocol):
    """Carries messages: sockets (zeromq), or queues in one process (local)."""

    def send(self, conn: Conn, message: Message, payload: Payload | None = None) -> bool: ...

    def dial(self, name: str, address: str, key: str = "") -> None: ...

    def hang_up(self, conn: Conn) -> None: ...

    def allow(self, peers: Iterable[Peer]) -> None: ...


class WorkerShell:
    """A worker with its disk, its sources and its transport. `functions` runs users' functions apart; without it they
    run here. With `again`, files are read from their first row."""

    def __init__(
        self,
        settings: WorkerSettings,
        wires: Transport,
        specs: tuple[SourceSpec, ...] = (),
        shelf: DiskShelf | None = None,
        hooks: Hooks | None = None,
        functions: ProcessReader | None = None,
        again: bool = False,
    ) -> None:
        self._wires, self.shelf, self._hooks, self._functions = wires, shelf, hooks, functions
        start = shelf.start if shelf is not None else time.time_ns()
        self.worker = Worker(settings, start, shelf is not None, policy_at(settings.evict), functions)
        self._places = Places(shelf, again) if shelf is not None else None
        files = [spec for spec in specs if spec.file]
        at = {s.stream: at for s in files if self._places is not None and (at := self._places.of(s)) is not None}
        self.producers = Producers(specs, start, now_us(), at)
        for origin, producer in self.producers.all.items():
            spec, replays = producer.spec, bool(producer.spec.file) and shelf is not None
            self.worker.add_source(spec.stream, origin, spec.columns, replays, producer.at)
        self._packing = PackThread(settings.compress)
        self._watch = Watch(now_us())
        self._unkept: Remember | KeepPositions | None = None  # what the disk did not take

    def start(self) -> None:
        """Resume where the last start ended."""
        kept = self.shelf.remembered() if self.shelf is not None else None
        for damage in self.shelf.damaged if self.shelf is not None else ():
            log.warning("%s", damage)
            self.worker.accounts.refuse("damaged")
        if kept is not None:
            self._obey(self.worker.remembered(kept, now_us()))

    def round(self, arrived: Iterable[Arrived | Garbled] = ()) -> None:
        """Handle all events of the transport, the disk and the sources; then a tick."""
        for event in arrived:
            self._handle(event)
            if isinstance(event, Arrived):
                self._watch.heard(event, now_us())
        for answer in self._answers():
            self._handle(answer)
        for packed in self._packing.done():
            self._handle(packed)
        for produced in self.producers.make(now_us()):
            self._handle(produced)
        self._handle(Tick())
        if self._watch.due(now_us()):
            self._look()

    def due(self) -> int:
        """When the next round is needed, if nothing comes in."""
        made = self.producers.due()
        return self.worker.due() if made is None else min(made, self.worker.due())

    def stop(self) -> None:
        """Write waiting batches to the disk, send the acks for them, and send a last report to the coordinator."""
        if self.shelf is not None:
            self.round()
            end = now_us() + STOP_US_MAX
            while self._written() and now_us() < end:
                pass
            self._handle(Tick())
            self.shelf.close()
        self._obey(self.worker.reports())

    def abandon(self) -> None:
        """The machine is broken. Close the disk, and send nothing more."""
        if self.shelf is not None:
            self.shelf.close()

    def _written(self) -> bool:
        """Write waiting batches. Returns whether there were any."""
        if self.shelf is None:
            return False
        self._handle(Stop())
        self.shelf.settle()
        answers = self._answers()
        for answer in answers:
            self._handle(answer)
        return bool(answers)

    def _answers(self) -> list[DiskAnswer]:
        """Handle the disk's answers since the last call."""
        try:
            return [] if self.shelf is None else list(self.shelf.done())
        except Exception as error:
            raise _broken(self.worker.node, "work on its disk", error) from error

    def _handle(self, event: Event) -> None:
        try:
            self._obey(self.worker.handle(event, now_us()))
        except Exception as error:
            raise _broken(self.worker.node, event, error) from error

    def _obey(self, commands: list[Command]) -> None:
        wires = self._wires
        for command in commands:
            if isinstance(command, Send):
                sent = wires.send(command.conn, command.message, command.payload)
                if command.conn == COORDINATOR:
                    self._watch.reached = sent
                continue
            try:
                self._do(command)
            except RoveError as error:  # a command that fails does not keep others from being executed
                why = type(error).__name__
                self.worker.refused[why] = self.worker.refused.get(why, 0) + 1
                log.warning("%s: %s", described(command), error)

    def _do(self, command: Command) -> None:
        wires = self._wires
        match command:
            case Dial(peer=peer):
                log.info("dialing %s at %s", peer.node, peer.address)
                wires.dial(peer.node, peer.address, peer.key)
            case Drop(conn=conn):
                wires.hang_up(conn)
            case Allow(peers=peers):
                wires.allow(peers)
            case Wait(origin=origin) | Go(origin=origin):
                log.info("source %s %s", origin.shown, "waits" if isinstance(command, Wait) else "goes on")
                self.producers.hold(origin, isinstance(command, Wait), now_us())
            case Cut() | Met() | Evicted():
                if self._hooks is not None:
                    self._hooks.tell(command)
            case Note(text=text, error=error):
                log.error("%s", text, exc_info=error)
            case Pack():
                self._packing.begin(command)
            case OnDisk() | Open() | ReadLog() | Load() | ListFolders() | AskReaders() if self.shelf is not None:
                self.shelf.ask(command)
            case Remember() if self.shelf is not None:
                self.shelf.remember(command)
                self._unkept = command if self.shelf.trouble else None
            case KeepPositions(positions=positions) if self.shelf is not None and self._places is not None:
                self._places.keep(positions, (each.spec for each in self.producers.all.values()))
                self._unkept = command if self.shelf.trouble else None

    def _look(self) -> None:
        """Try again what the disk did not take, end functions of queries that have ended, and log what has changed."""
        if self._functions is not None:
            self._functions.keep(self.worker.running().values())
        if self._unkept is not None:
            self._do(self._unkept)
        troubles = {}
        if self._hooks is not None and self._hooks.missed:
            troubles["hooks"] = f"too slow, {self._hooks.missed} calls were skipped"
        if self.shelf is not None and self.shelf.trouble:
            troubles["disk"] = self.shelf.trouble
        self._watch.look(self.worker, troubles, now_us())


class CoordinatorShell:
    """The coordinator with its catalog, its transport and its metrics."""

    def __init__(
        self, machine: Coordinator, wires: Transport, catalog: Catalog, metrics: MetricsServer | None = None
    ) -> None:
        self.machine, self._wires, self._catalog, self._metrics = machine, wires, catalog, metrics
        self._unkept: dict[tuple[str, str], bytes | None] = {}  # the newest of each record
        self._trouble = ""  # why the catalog did not take them
        self._tick_due = 0
        self._queries, self._look_due = Once(), now_us() + LOOK_US

    def start(self) -> None:
        """Restore the coordinator from its catalog."""
        self._obey(self.machine.restore(self._catalog.records()))

    def round(self, arrived: Iterable[Arrived | Garbled] = ()) -> None:
        """Handle all events, store all records at once, then send the messages."""
        commands: list[Any] = []
        for event in arrived:
            commands += self._handle(event)
        if now_us() >= self._tick_due:
            self._tick_due = now_us() + COORDINATOR_TICK_US
            commands += self._handle(Tick())
        self._obey(commands)
        if now_us() >= self._look_due:
            self._look_due = now_us() + LOOK_US
            self._queries.look(self.machine.troubles(now_us(), wall_us()).of_placing())
        if self._metrics is not None:
            self._metrics.answer(lambda: self.machine.snapshot(now_us(), wall_us()))

    def due(self) -> int:
        return self._tick_due

    def stop(self) -> None:
        self._catalog.close()

    def abandon(self) -> None:
        """The machine is broken. Close the catalog."""
        self._catalog.close()

    def _handle(self, event: Arrived | Garbled | Tick) -> list[Any]:
        try:
            return list(self.machine.handle(event, now_us(), wall_us()))
        except Exception as error:
            raise _broken(COORDINATOR, event, error) from error

    def _obey(self, commands: list[Any]) -> None:
        from rove.control.commands import Keep

        self._unkept |= {(c.kind, c.name): c.record for c in commands if isinstance(c, Keep)}
        if self._unkept:
            try:
                self._catalog.keep((*key, record) for key, record in self._unkept.items())
            except DiskError as error:
                # A message is not sent unless its records are stored. Clients and nodes will ask again.
                if str(error) != self._trouble:  # every message tries again
                    log.error("%s", error)
                self._trouble = str(error)
                commands = [c for c in commands if isinstance(c, Allow)]
            else:
                for (kind, name), record in self._unkept.items():
                    log.info("%s %s is %s", kind, name, "stored" if record is not None else "deleted")
                self._unkept, self._trouble = {}, ""
        for command in commands:
            match command:
                case Send(conn=conn, message=message, payload=payload):
                    self._wires.send(conn, message, payload)
                case Allow(peers=peers):
                    self._wires.allow(peers)
                case Drop(conn=conn):
                    self._wires.hang_up(conn)


def _broken(node: str, event: object, error: Exception) -> Broken:
    """The final message of a machine. The exception itself is logged."""
    log.error("the machine of %s is broken", node, exc_info=error)
    return Broken(node, event, error)


Shell = WorkerShell | CoordinatorShell
Ready = Callable[[str], None]
