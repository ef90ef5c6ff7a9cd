"""A device with several ways to the gateway, in one process and real time, with the latencies of a city's network.

    device ─► w0.0 ─► w0.1 ─► hub ─► gateway          Figure 4 of NebulaStream-MSS; as many and as long as one likes
           ─► w1.0 ─► w1.1 ─┘
           ─► w2.0 ─► w2.1 ─┘

The query is the paper's Query 1: a filter on the device, a second filter on the way, then the sink. The device is
connected to one way at a time. In between it is cut off from everyone, also from the coordinator.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

import rove
from bench import football
from rove.control.asks.requests import Submit, Submitted
from rove.control.coordinator import Coordinator
from rove.data.events import Produced
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import COORDINATOR
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.runtime.local import LocalNet
from rove.runtime.shell import CoordinatorShell, WorkerShell

DEVICE, HUB, GATEWAY = NodeId("device"), NodeId("hub"), NodeId("gateway")
STREAM, ORIGIN, QUERY = "match", Origin("match", "device"), QueryId("q")
FIRST, SECOND = "vx > 0", "v >= 0"
LINK_US, COORDINATOR_US = 5_000, 20_000  # from one node to the next, and to the coordinator
SILENT_US = 150_000
MEMORY_BYTES = 50_000_000


@cache
def plan() -> Stages:
    """Query 1: two filters, the first on the device."""
    stream = rove.Session.local().stream(STREAM, schema=football.COLUMNS)
    return Stages.of({"out": optimize(stream.where(FIRST).at("device").where(SECOND).at("edge").plan)})


class Ways:
    """The network, and the way to which its device is connected, if any."""

    def __init__(self, folder: Path, ways: int, nodes: int, net: type[LocalNet] = LocalNet) -> None:
        self.net = net(folder, _delay_us)
        self.ways = [[NodeId(f"w{way}.{n}") for n in range(nodes - 3)] for way in range(ways)]
        self.at: int | None = 0
        self._add(GATEWAY, "gateway", ())
        self._add(HUB, "edge", (GATEWAY,))
        for way in self.ways:
            for name, above in reversed(list(pairwise([*way, HUB]))):
                self._add(name, "edge", (above,))
        for way in self.ways[1:]:
            self.net.cut(DEVICE, way[0])
        self._add(DEVICE, "device", tuple(way[0] for way in self.ways))
        self.worker.add_source(STREAM, ORIGIN, football.COLUMNS)
        self.wait(lambda: self._reaches(0) and self._knows_all())

    def submit(self, query: QueryId, replication: int = 1, copies: bool = True) -> None:
        """Start the query, and wait until the device runs it."""
        body = Submit(
            name=query, plan=codec.encode(plan()), sink=Sink(kind="discard"), replication=replication, copies=copies
        )
        self.net.ask("submit", body, Submitted)
        self.wait(lambda: query in self.worker.running())

    def leave(self) -> None:
        """Cut the device off from everyone."""
        if self.at is not None:
            self.net.cut(DEVICE, self.ways[self.at][0])
            self.net.cut(DEVICE, COORDINATOR)
            self.at = None

    def come(self, way: int) -> None:
        """Connect the device to one of the ways."""
        self.at = way
        self.net.mend(DEVICE, self.ways[way][0])
        self.net.mend(DEVICE, COORDINATOR)

    def produce(self, rows: pa.RecordBatch) -> None:
        self.shell._handle(Produced(ORIGIN, rows, 0))

    def wait(self, condition: Callable[[], bool], timeout_s: float = 30) -> None:
        if not self.net.run_until(condition, timeout_s):
            raise RuntimeError("the network of the benchmark did not come to rest in time")

    def delivered(self, query: QueryId) -> int:
        """How many rows of the source have reached the sink."""
        count = self.net.worker(GATEWAY).worker.output.counts.get((query, ORIGIN))
        return 0 if count is None else count.delivered

    @property
    def shell(self) -> WorkerShell:
        return self.net.worker(DEVICE)

    @property
    def worker(self) -> Worker:
        return self.shell.worker

    @property
    def coordinator(self) -> CoordinatorShell:
        found = self.net._shells[COORDINATOR]
        if not isinstance(found, CoordinatorShell):
            raise TypeError("the coordinator is not there")
        return found

    @property
    def machine(self) -> Coordinator:
        return self.coordinator.machine

    def heard_at(self, way: int) -> bool:
        """Whether the coordinator knows that the device is back."""
        return self.machine.membership.topology.works(DEVICE, self.ways[way][0])

    def _reaches(self, way: int) -> bool:
        links = self.worker.links()
        return self.ways[way][0] in links and links[self.ways[way][0]].up

    def _knows_all(self) -> bool:
        """Whether the coordinator knows all ways, so that a query can have alternatives from its beginning."""
        topology = self.machine.membership.topology
        nodes = [way[0] for way in self.ways]
        return topology.has(DEVICE) and all(
            topology.has(node) and topology.reaches(node, GATEWAY) and topology.linked(DEVICE, node) for node in nodes
        )

    def _add(self, name: NodeId, kind: str, parents: tuple[NodeId, ...]) -> None:
        settings = WorkerSettings(
            node=name,
            kind=kind,  # type: ignore[arg-type]
            parents=parents,
            memory_bytes=MEMORY_BYTES,
            silent_us=SILENT_US,
        )
        self.net.add_node(settings)


@contextmanager
def built(ways: int, nodes: int, net: type[LocalNet] = LocalNet) -> Iterator[Ways]:
    """A network that is closed at the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        found = Ways(Path(folder), ways, nodes, net)
        try:
            yield found
        finally:
            found.net.close()


def _delay_us(a: str, b: str) -> int:
    return COORDINATOR_US if COORDINATOR in (a, b) else LINK_US
