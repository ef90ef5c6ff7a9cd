"""A network of edges with moving devices, in one process: the world of `rove bench redeploy`.

    device ─► edge ─► (intermediates) ─► gateway       tree: each edge has its own way to the gateway
                                                       full: all edges are linked, and one has a way to the gateway
                                                       circle: each edge has two neighbours, and one has a way

Every query reads streams of its own, which several devices make (`bench/workloads`). Some of these devices are mobile.
A change moves all mobile devices to the next edge: the coordinator is told so (`relink`), as NebulaStream's simulator
does it. Or no device moves, and the operators of each query `climb`: a change drains the nodes where they run, and they
leave with their state for the next node above. The nodes are workers as in production, with queues instead of sockets.

Every node, and the coordinator, has a core of its own (`bench/cores`), as on the paper's server with 64 of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pyarrow as pa

from bench.cores import CoreTime, Links, WatchedNet
from bench.workloads import Filtered, Workload
from rove.control.asks.requests import Drain, LinkChange, Relink, Relinked, Submit, Submitted
from rove.control.deployment.holistic import Redeploy
from rove.control.deployment.query import QueryState
from rove.data.events import Produced
from rove.data.settings import WorkerSettings
from rove.model.batch import Header
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.plan import codec

Shape = Literal["tree", "full", "circle"]
GATEWAY = NodeId("gateway")
SLOTS = 1_000
BUILT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Streets:
    """What is built: `mobile` of the `sources` of each query move; `between` are nodes between an edge and the
    gateway."""

    queries: int = 10
    sources: int = 16
    mobile: int = 1
    edges: int = 10
    shape: Shape = "tree"
    between: int = 0
    climbs: bool = False  # all devices of a query are at one edge, and its operators move
    bytes_per_s: float | None = None  # of every link
    workload: Callable[[], Workload] = Filtered


class World:
    """The network, its sources, and the latency of each batch that has arrived, in µs."""

    def __init__(self, folder: Path, streets: Streets, redeploy: Redeploy, clock: CoreTime) -> None:
        links = None if streets.bytes_per_s is None else Links(streets.bytes_per_s, 0)
        self.net, self.now_us = WatchedNet(folder, clock, redeploy, links), clock.now_us
        self.streets, self.machine = streets, self.net.machine
        self.edges = [NodeId(f"edge{n}") for n in range(streets.edges)]
        self.workload, self.latencies = streets.workload(), list[int]()
        self._numbers: dict[NodeId, int] = {}  # of the next batch
        self._at: dict[NodeId, int] = {}  # the edge of each mobile device, by its number
        self._add(GATEWAY, "gateway", ())
        self._build_edges()
        devices = self._build_devices()
        self._wait(lambda: len(self.machine.membership.members) == len(self.net.workers()))
        self._keep_home()
        self.net.on_arrival(GATEWAY, self._arrived)
        self._wait(lambda: all(self.machine.membership.topology.reaches(d, GATEWAY) for d in devices))
        for query in range(streets.queries):
            plan, sink = codec.encode(self.workload.plan(query)), Sink(kind="discard", node=GATEWAY)
            self.net.ask("submit", Submit(name=f"q{query}", plan=plan, sink=sink), Submitted)
        self._wait(self.is_idle)
        self._devices = devices

    # Building

    def _build_edges(self) -> None:
        """Add the edges, and what lies between them and the gateway. Links beside lead to an earlier edge."""
        for n, edge in enumerate(self.edges):
            leads_out = self.streets.shape == "tree" or n == 0
            out = [NodeId(f"{edge}.{k}") for k in range(self.streets.between if leads_out else 0)]
            for name, above in reversed(list(pairwise([*out, GATEWAY]))):
                self._add(name, "edge", (above,))
            beside = [other for other in self.edges[:n] if self._beside(n, self.edges.index(other))]
            self._add(edge, "edge", ((out or [GATEWAY])[0], *beside) if leads_out else tuple(beside))

    def _beside(self, a: int, b: int) -> bool:
        match self.streets.shape:
            case "tree":
                return False
            case "full":
                return True
            case "circle":
                return abs(a - b) in (1, self.streets.edges - 1)

    def _build_devices(self) -> list[NodeId]:
        """Add the devices. A mobile one knows all edges, another one knows one."""
        devices = []
        for query in range(self.streets.queries):
            for n in range(self.streets.sources):
                name = NodeId(f"d{query}.{n}")
                home = (query if self.streets.climbs else query + n) % len(self.edges)
                mobile = n < self.streets.mobile
                self._add(name, "device", tuple(self.edges) if mobile else (self.edges[home],))
                stream = self.workload.stream(query, n)
                self.net.worker(name).worker.add_source(stream, Origin(stream, name), self.workload.columns)
                devices.append(name)
                if mobile:
                    self._at[name] = home
        return devices

    def _keep_home(self) -> None:
        """Mobile devices are linked with one edge only."""
        away = [
            LinkChange(a=device, b=edge, add=False)
            for device, home in self._at.items()
            for n, edge in enumerate(self.edges)
            if n != home
        ]
        if away:
            self.net.ask("relink", Relink(changes=tuple(away)), Relinked, 60)

    def _add(self, name: NodeId, kind: str, parents: tuple[NodeId, ...]) -> None:
        settings = WorkerSettings(
            node=name,
            kind=kind,  # type: ignore[arg-type]
            parents=parents,
            slots=SLOTS,
        )
        self.net.add_node(settings)

    def _arrived(self, header: Header) -> None:
        took_us = self.workload.arrived(header, self.now_us())
        if took_us is not None:
            self.latencies.append(took_us)

    def _wait(self, condition: Callable[[], bool]) -> None:
        if not self.net.run_until(condition, BUILT_S):
            raise RuntimeError("the network of the benchmark did not come to rest in time")

    # Running

    def start(self) -> None:
        """The sources begin now. They take turns."""
        every_us = self.workload.batch_us
        for n, device in enumerate(self._devices):
            first_us = self.now_us() + n * every_us // len(self._devices)
            self.net.feed(device, first_us, partial(self._make, device))

    def stop(self) -> None:
        """The sources make no more, but for a last batch if the workload needs one."""
        for device in self._devices:
            self.net.sources.pop(device, None)
            rows = self.workload.last(self._numbers.get(device, 0))
            if rows is not None:
                self._produce(device, rows, self.now_us())
            self.net._schedule(device)

    def _make(self, device: NodeId, due_us: int) -> int:
        """Make a batch that was due then. Returns when the next one is due."""
        number = self._numbers.get(device, 0)
        self._numbers[device] = number + 1
        self._produce(device, self.workload.batch(*_numbered(device), number, due_us), due_us)
        return due_us + self.workload.batch_us

    def _produce(self, device: NodeId, rows: pa.RecordBatch, due_us: int) -> None:
        origin = Origin(self.workload.stream(*_numbered(device)), device)
        self.net.worker(device)._handle(Produced(origin, rows, due_us))

    def take_latencies(self) -> list[int]:
        """The latencies since the last call, in µs."""
        found, self.latencies = self.latencies, []
        return found

    def move(self) -> int:
        """Move all mobile devices to the next edge. Returns how many there are."""
        changes = []
        for device, at in list(self._at.items()):
            to = self._at[device] = (at + 1) % len(self.edges)
            changes.append(LinkChange(a=device, b=self.edges[at], add=False))
            changes.append(LinkChange(a=device, b=self.edges[to], add=True))
        self.net.send("relink", Relink(changes=tuple(changes)))
        return len(changes) // 2

    def is_settled(self) -> bool:
        """Whether all changes are known to the coordinator, and followed by everybody."""
        self.net.check_answers()
        return not self.net.asked and self.is_idle()

    def is_idle(self) -> bool:
        """Whether every node runs what it should, and every mobile device sends to its edge. O(queries + mobile
        devices)."""
        deployments = self.machine.deployments
        queries = deployments.queries.values()
        if deployments.holistic or any(q.rollout.pending or q.state is not QueryState.RUNNING for q in queries):
            return False
        return all(self._sends_to(device, self.edges[at]) for device, at in self._at.items())

    def _sends_to(self, device: NodeId, edge: NodeId) -> bool:
        worker = self.net.worker(device).worker
        link = worker.links().get(edge)
        return link is not None and link.up and all(running.route == edge for running in worker.running().values())


class Climbing(World):
    """A tree in which the operators of query n begin at edge n. Each change moves all of them to the next node, as
    long as there is one below the gateway."""

    def __init__(self, folder: Path, streets: Streets, redeploy: Redeploy, clock: CoreTime) -> None:
        self._climbed = 0
        super().__init__(folder, streets, redeploy, clock)

    def move(self) -> int:
        for query in range(self.streets.queries):
            self.net.send("drain", Drain(name=self._station(query)))
        self._climbed += 1
        return self.streets.queries

    def is_idle(self) -> bool:
        """Whether the operators are where they should be, and their whole state with them. O(nodes of the queries)."""
        return super().is_idle() and all(self._is_whole(query) for query in range(self.streets.queries))

    def _is_whole(self, query: int) -> bool:
        deployment = self.machine.deployments.queries[QueryId(f"q{query}")].deployment
        parts = {} if deployment is None else deployment.tree.parts
        here = parts.get(self._station(query))
        return here is not None and bool(here.hosts) and not any(part.moves for part in parts.values())

    def _station(self, query: int) -> NodeId:
        """The node where the operators of a query should be."""
        edge = self.edges[query % len(self.edges)]
        return NodeId(f"{edge}.{self._climbed - 1}") if self._climbed else edge


def _numbered(device: NodeId) -> tuple[int, int]:
    """The number of a device's query, and its own in there."""
    query, _, number = device[1:].partition(".")
    return int(query), int(number)


@contextmanager
def built(streets: Streets, redeploy: Redeploy) -> Iterator[World]:
    """A network that is closed at the end of the block."""
    clock = CoreTime()
    with tempfile.TemporaryDirectory() as folder, clock.kept():
        world = (Climbing if streets.climbs else World)(Path(folder), streets, redeploy, clock)
        try:
            yield world
        finally:
            world.net.close()
