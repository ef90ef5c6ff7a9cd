"""Runs many nodes in one process, in real time: queues instead of sockets, real disks, real clocks, one thread.

Law: the machines and shells are the same as in separate processes; only the connections differ. A message to a node
that does not run is lost, as on any network. A node whose machine breaks ends alone, and is started again.
"""

from __future__ import annotations

import logging
import select
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from pathlib import Path
from typing import TypeVar

import msgspec

from rove.control.asks.requests import Named, Submit, Submitted, from_body, to_body
from rove.control.coordinator import Coordinator
from rove.control.deployment.holistic import Redeploy
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.errors import RoveError, SetupError, nearest
from rove.model.events import COORDINATOR, Arrived, Conn, Garbled, Payload, dialed, dialer_of
from rove.model.ids import NodeId
from rove.model.messages import Answer, Ask, Message, Peer, Sink
from rove.plan import codec
from rove.plan.stages import Stages
from rove.runtime.adapters.sources import Producer, SourceSpec
from rove.runtime.broken import Broken, Restarts
from rove.runtime.clock import now_us
from rove.runtime.disk.catalog import Catalog
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.network.bell import Bell
from rove.runtime.shell import CoordinatorShell, WorkerShell

log = logging.getLogger("rove")

T = TypeVar("T")

USER = "user"
SETTLE_US = 50_000  # how often a condition is checked when nothing happens
INBOX_MAX = 100_000


class LocalWires:
    """One node's end of the queues. The dialing side knows a connection by its peer's name, the other side by a
    number."""

    def __init__(self, net: LocalNet, name: str) -> None:
        self._net, self._name = net, name
        self._dialed: dict[str, bytes] = {}
        self.inbox: deque[Arrived | Garbled] = deque()

    def send(self, conn: Conn, message: Message, payload: Payload | None = None) -> bool:
        if isinstance(conn, str):
            ours = self._dialed.get(conn)
            return ours is not None and self._net.deliver(self._name, conn, Arrived(ours, message, payload))
        dialer = dialer_of(conn)
        return self._net.knows(dialer, self._name, conn) and self._net.deliver(
            self._name, dialer, Arrived(self._name, message, payload)
        )

    def dial(self, name: str, address: str, key: str = "") -> None:
        self._dialed[name] = dialed(NodeId(self._name), self._net.number())

    def hang_up(self, conn: Conn) -> None:
        if isinstance(conn, str):
            self._dialed.pop(conn, None)

    def allow(self, peers: Iterable[Peer]) -> None:
        """Does nothing: all nodes of this process may connect."""

    def dialed(self, name: str) -> bytes | None:
        return self._dialed.get(name)

    def take(self) -> list[Arrived | Garbled]:
        found = list(self.inbox)
        self.inbox.clear()
        return found


class LocalNet:
    """A coordinator and nodes, below one folder. They run only inside `run_for` and `run_until`. `delay_us` is the
    latency of messages between two nodes; without it they arrive at once. `redeploy` is a setting of the
    coordinator."""

    def __init__(
        self,
        folder: str | Path,
        delay_us: Callable[[str, str], int] | None = None,
        redeploy: Redeploy = "incremental",
    ) -> None:
        self.folder, self._delay_us, self._redeploy = Path(folder), delay_us, redeploy
        self._flying: list[tuple[int, int, str, Arrived]] = []  # a heap of messages: time of arrival, number, receiver
        self._bell, self._count = Bell(), 0
        self._wires: dict[str, LocalWires] = {}
        self._shells: dict[str, WorkerShell | CoordinatorShell] = {}
        self._made: dict[str, tuple[WorkerSettings, tuple[SourceSpec, ...], bool]] = {}
        self._cut: set[frozenset[str]] = set()
        self._restarts: dict[str, Restarts] = {}
        self._down: dict[str, int] = {}  # nodes that ended by a bug, and when they are started again
        self._user = self._wires[USER] = LocalWires(self, USER)
        self._user.dial(COORDINATOR, "")
        self.start_coordinator()

    # Starting and stopping

    def start_coordinator(self) -> None:
        wires = self._wires[COORDINATOR] = LocalWires(self, COORDINATOR)
        machine = Coordinator(redeploy=self._redeploy)
        shell = CoordinatorShell(machine, wires, Catalog(self.folder / "coordinator" / "catalog.sqlite"))
        shell.start()
        self._shells[COORDINATOR] = shell

    def add_node(self, settings: WorkerSettings, sources: tuple[SourceSpec, ...] = (), durable: bool = False) -> None:
        """Add a node and start it. A durable node has a disk below the net's folder."""
        if settings.node in self._made or settings.node in (COORDINATOR, USER):
            raise SetupError(f"there is a node `{settings.node}` already; choose another name")
        self._made[settings.node] = (msgspec.structs.replace(settings, address=settings.node), sources, durable)
        self.start(settings.node)

    def equip(self, node: NodeId, sources: tuple[SourceSpec, ...]) -> None:
        """Start a node again with other sources."""
        settings, _, durable = self._made[node]
        self.stop(node)
        self._made[node] = (settings, sources, durable)
        self.start(node)

    def start(self, node: NodeId) -> None:
        """Start a node, or restart it after a stop."""
        if node not in self._made:
            raise SetupError(f"no node `{node}`; {nearest(node, list(self._made))}")
        settings, sources, durable = self._made[node]
        wires = self._wires[node] = LocalWires(self, node)
        wires.dial(COORDINATOR, "")
        shelf = DiskShelf(self.folder / node, self._bell) if durable else None
        shell = WorkerShell(settings, wires, sources, shelf)
        shell.start()
        self._shells[node] = shell

    def stop(self, name: NodeId) -> None:
        """Stop a node, or the coordinator, cleanly."""
        if self._down.pop(name, None) is None:
            self._shells.pop(name).stop()
            del self._wires[name]

    def _fell(self, name: str, broken: Broken) -> None:
        """A machine is broken. It is started again from its disk, unless it breaks too often or has sources: they would
        start over and make the same rows twice."""
        log.error("%s", broken)
        self._shells.pop(name).abandon()
        del self._wires[name]
        again = self._restarts.setdefault(name, Restarts()).after(now_us())
        if again is None or (name in self._made and self._made[NodeId(name)][1]):
            raise broken
        self._down[name] = again

    def _start_again(self) -> None:
        for name in [n for n, due in self._down.items() if due <= now_us()]:
            del self._down[name]
            log.warning("%s is started again", name)
            if name == COORDINATOR:
                self.start_coordinator()
            else:
                self.start(NodeId(name))

    def cut(self, a: str, b: str) -> None:
        """Cut the connection between two nodes."""
        self._cut.add(frozenset((a, b)))

    def mend(self, a: str, b: str) -> None:
        """Restore the connection between two nodes."""
        self._cut.discard(frozenset((a, b)))

    def worker(self, node: NodeId) -> WorkerShell:
        shell = self._shells[node]
        if not isinstance(shell, WorkerShell):
            raise SetupError(f"`{node}` is not a worker")
        return shell

    def workers(self) -> list[Worker]:
        """The machines of all running nodes."""
        return [shell.worker for shell in self._shells.values() if isinstance(shell, WorkerShell)]

    def producers(self) -> list[Producer]:
        """Every source of every node."""
        shells = (shell for shell in self._shells.values() if isinstance(shell, WorkerShell))
        return [producer for shell in shells for producer in shell.producers.all.values()]

    def close(self) -> None:
        for name in list(self._shells):
            self.stop(NodeId(name))
        self._bell.close()

    # Asking

    def ask(self, verb: str, body: msgspec.Struct | None, kind: type[T], timeout_s: float = 10) -> T:
        """Ask the coordinator. Everything runs on meanwhile."""
        ask = Ask(f"local {self.number()}", verb, to_body(Named() if body is None else body))
        self._user.send(COORDINATOR, ask)
        answers: list[Answer] = []

        def answered() -> bool:
            answers.extend(
                e.message
                for e in self._user.take()
                if isinstance(e, Arrived) and isinstance(e.message, Answer) and e.message.id == ask.id
            )
            return bool(answers)

        if not self.run_until(answered, timeout_s):
            raise SetupError(f"the coordinator did not answer `{verb}` in {timeout_s:g} s; start it first")
        if answers[0].trouble:
            raise RoveError(answers[0].trouble)
        return from_body(answers[0].body, kind)

    def submit(self, name: str, stages: Stages, sink: Sink, strategy: str = "bottom_up") -> Submitted:
        """Submit a query."""
        body = Submit(name=name, plan=codec.encode(stages), sink=sink, strategy=strategy)
        return self.ask("submit", body, Submitted)

    # Running

    def run_for(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], timeout_s: float = 30) -> bool:
        """Run until a condition holds. Returns whether it did in time."""
        deadline = now_us() + int(timeout_s * 1e6)
        while not (found := condition()) and now_us() < deadline:
            self._step()
        return found

    def _step(self) -> None:
        """One round of all nodes that have something to do, or a short wait if none has."""
        idle_us = SETTLE_US
        self._bell.quiet()
        self._start_again()
        self._land()
        if self._flying:
            idle_us = max(0, min(idle_us, self._flying[0][0] - now_us()))
        for name, shell in list(self._shells.items()):
            inbox = self._wires[name].inbox
            waits = 0 if inbox or _disk_done(shell) else shell.due() - now_us()
            if waits <= 0:
                try:
                    shell.round(self._wires[name].take())
                except Broken as broken:
                    self._fell(name, broken)
                idle_us = 0
            idle_us = min(idle_us, max(0, waits))
        if idle_us:
            self._rest(idle_us)

    def _rest(self, idle_us: int) -> None:
        """Wait until something is due, or a disk is done."""
        select.select([self._bell.descriptor], [], [], idle_us / 1_000_000)

    # Delivery

    def deliver(self, sender: str, to: str, event: Arrived) -> bool:
        wires = self._wires.get(to)
        if wires is None or len(wires.inbox) >= INBOX_MAX or frozenset((sender, to)) in self._cut:
            return False
        if self._delay_us is None:
            wires.inbox.append(event)
        else:
            heappush(self._flying, (now_us() + self._delay_us(sender, to), self.number(), to, event))
        return True

    def _land(self) -> None:
        """Deliver messages whose latency is over."""
        while self._flying and self._flying[0][0] <= now_us():
            _, _, to, event = heappop(self._flying)
            if to in self._wires:
                self._wires[to].inbox.append(event)

    def knows(self, dialer: str, listener: str, conn: bytes) -> bool:
        """Whether a connection is still the dialer's present one."""
        wires = self._wires.get(dialer)
        return wires is not None and wires.dialed(listener) == conn

    def number(self) -> int:
        self._count += 1
        return self._count


def _disk_done(shell: WorkerShell | CoordinatorShell) -> bool:
    return isinstance(shell, WorkerShell) and shell.shelf is not None and shell.shelf.has_done
