"""Nodes that each have a core of their own, driven by one thread: the time of `rove bench redeploy` and `migrate`.

Every node, and the coordinator, has its own clock: a node begins when something is due there and its last turn is over,
and its turn takes as long as the CPU time that it used. So figures do not depend on what else this machine does, and a
chain of twenty nodes runs as on twenty machines. Waiting for the disk of the catalog takes no CPU and is not counted.

A message arrives when it was sent, or when a link of limited speed has carried it.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from rove.control.asks.requests import to_body
from rove.control.coordinator import Coordinator
from rove.control.deployment.holistic import Redeploy
from rove.model.batch import Header
from rove.model.events import COORDINATOR, Arrived
from rove.model.ids import NodeId
from rove.model.messages import Answer, Ask, encode
from rove.runtime import local, shell
from rove.runtime.disk.catalog import Catalog
from rove.runtime.local import USER, LocalNet, LocalWires
from rove.runtime.shell import CoordinatorShell

BEGIN_US = 1_800_000_000_000_000


@dataclass(slots=True)
class Links:
    """Links of one speed between nodes. Each carries one message after the other, in each direction. Messages of the
    coordinator and of users take the latency only."""

    bytes_per_s: float
    latency_us: int
    carried: Counter[tuple[str, str]] = field(default_factory=Counter)  # bytes by sender and receiver
    _free_us: dict[tuple[str, str], float] = field(default_factory=dict)

    def arrives_us(self, sender: str, to: str, event: Arrived, now_us: int) -> int:
        if COORDINATOR in (sender, to) or USER in (sender, to):
            return now_us + self.latency_us
        size = len(encode(event.message)) + (0 if event.payload is None else len(event.payload))
        self.carried[sender, to] += size
        done_us = max(now_us, self._free_us.get((sender, to), 0.0)) + size / self.bytes_per_s * 1e6
        self._free_us[sender, to] = done_us
        return int(done_us) + self.latency_us


class CoreTime:
    """The clock of the node whose turn it is: when the turn began, and the CPU time since then."""

    def __init__(self) -> None:
        self._at_us, self._begun_ns = BEGIN_US, 0  # between two turns the clock stands still

    def now_us(self) -> int:
        return self._at_us + ((time.thread_time_ns() - self._begun_ns) // 1_000 if self._begun_ns else 0)

    def begin(self, at_us: int) -> None:
        self._at_us, self._begun_ns = at_us, time.thread_time_ns()

    def end(self) -> int:
        """The turn is over. Returns the time."""
        self._at_us, self._begun_ns = self.now_us(), 0
        return self._at_us

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Nodes that are driven inside this block live by this clock. No node searches the heap of all nodes in its
        turn."""
        before = [(module, module.now_us) for module in (local, shell)]
        gc.collect()
        gc.disable()
        try:
            for module, _ in before:
                module.now_us = self.now_us  # type: ignore[attr-defined]
            yield
        finally:
            gc.enable()
            for module, clock in before:
                module.now_us = clock  # type: ignore[attr-defined]


class Watched(Coordinator):
    """A coordinator that says how long it took to place queries and to write their changes down."""

    placing_s = 0.0

    def settle(self) -> None:
        begun = time.thread_time()
        super().settle()
        self.placing_s += time.thread_time() - begun


class WatchedNet(LocalNet):
    """Such a coordinator, with nodes, each on a core of its own. `asked` are requests without an answer yet; `sources`
    are calls that make a batch, with the time when each is due."""

    def __init__(
        self, folder: Path, clock: CoreTime, redeploy: Redeploy = "incremental", links: Links | None = None
    ) -> None:
        self.clock, self.links, self.asked = clock, links, 0
        self.sources: dict[str, tuple[int, Callable[[int], int]]] = {}
        self._mail: dict[str, list[tuple[int, int, Arrived]]] = {}  # by receiver, a heap by the time of arrival
        self._free_us: dict[str, int] = {}  # when the last turn of a node was over
        self._turns: list[tuple[int, str]] = []  # a heap
        super().__init__(folder, redeploy=redeploy)

    def deliver(self, sender: str, to: str, event: Arrived) -> bool:
        wires = self._wires.get(to)
        if wires is None:
            return False
        if to == USER:
            wires.inbox.append(event)
        else:
            now_us = self.clock.now_us()
            at_us = now_us if self.links is None else self.links.arrives_us(sender, to, event, now_us)
            heappush(self._mail.setdefault(to, []), (at_us, self.number(), event))
            self._schedule(to)
        return True

    def _step(self) -> None:
        """The turn of the node that can begin first."""
        at_us, name = self._next()
        mail, arrived = self._mail.get(name, []), []
        while mail and mail[0][0] <= at_us:
            arrived.append(heappop(mail)[2])
        self.clock.begin(at_us)
        if name in self.sources and self.sources[name][0] <= at_us:
            due_us, make = self.sources[name]
            self.sources[name] = (make(due_us), make)
        self._shells[name].round(arrived)
        self._free_us[name] = self.clock.end()
        self._schedule(name)

    def _next(self) -> tuple[int, str]:
        """The node that can begin first, and when. Of what was scheduled, only what still holds counts."""
        if len(self._free_us) < len(self._shells):
            for name in [name for name in self._shells if name not in self._free_us]:
                self._free_us[name] = self.clock.now_us()
                self._schedule(name)
        while True:
            at_us, name = heappop(self._turns)
            if name in self._shells and at_us == self._begins_us(name):
                return at_us, name

    def on_arrival(self, node: NodeId, note: Callable[[Header], None]) -> None:
        """Call `note` for every batch with rows that reaches the outputs of a node for the first time, when it is
        taken."""
        output = self.worker(node).worker.output
        take = output.take

        def taken(*arguments, **named):  # type: ignore[no-untyped-def]
            header = next(each for each in arguments if isinstance(each, Header))
            new = header.rows and not output.took(header.query, header.origin, header.seq)
            answer = take(*arguments, **named)
            if new:
                note(header)
            return answer

        output.take = taken  # type: ignore[method-assign]

    def feed(self, name: str, due_us: int, make: Callable[[int], int]) -> None:
        """A source of a node makes its first batch then."""
        self.sources[name] = (due_us, make)
        self._schedule(name)

    def _schedule(self, name: str) -> None:
        """Note when a node can begin, because that may have changed."""
        if name in self._shells and name in self._free_us:
            heappush(self._turns, (self._begins_us(name), name))

    def _begins_us(self, name: str) -> int:
        """When the next turn of a node can begin."""
        due = self._shells[name].due()
        if mail := self._mail.get(name):
            due = min(due, mail[0][0])
        if name in self.sources:
            due = min(due, self.sources[name][0])
        return max(due, self._free_us[name])

    def start_coordinator(self) -> None:
        wires = self._wires[COORDINATOR] = LocalWires(self, COORDINATOR)
        self.machine = Watched(redeploy=self._redeploy)
        found = CoordinatorShell(self.machine, wires, Catalog(self.folder / "coordinator" / "catalog.sqlite"))
        found.start()
        self._shells[COORDINATOR] = found

    def send(self, verb: str, body: msgspec.Struct) -> None:
        """Ask the coordinator, and do not wait for the answer."""
        self.asked += 1
        self._user.send(COORDINATOR, Ask(f"bench {self.number()}", verb, to_body(body)))

    def check_answers(self) -> None:
        """Raise if an answer that nobody waited for tells of trouble."""
        for event in self._user.take():
            if isinstance(event, Arrived) and isinstance(event.message, Answer):
                self.asked -= 1
                if event.message.trouble:
                    raise RuntimeError(event.message.trouble)
