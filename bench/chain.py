"""A join that is asked to leave its node, with its state: the world of `rove bench migrate`.

    west ─┐
          ├─► old ─► relay 1 ─► … ─► relay k ─► new ─► gateway
    east ─┘

Two devices make rows, a batch for each window of event time. The join keeps the last windows open, so its state has as
many of them as are asked for, all of one size. Every new batch closes the oldest window, and its matches are a result.
When `old` is drained, the join goes on at `new`.

Every node has a core of its own, and links have a speed (`bench/cores`). Relays have no slots, so that nothing stops
there; with state transfer, the baseline, they have, and the state goes from node to node.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import rove
from bench.cores import BEGIN_US, CoreTime, Links, WatchedNet
from rove.control.asks.requests import Drain
from rove.control.deployment.query import QueryState
from rove.data.events import Produced
from rove.data.settings import WorkerSettings
from rove.model.batch import Header
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.model.schema import parse_schema
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

COLUMNS = "ts timestamp, key bigint, a double, b double, c double"
SCHEMA = parse_schema(COLUMNS)
STATE_ROW_BYTES = 32  # a join keeps no time: the window is known
WINDOW_US = 1_000_000  # of event time
KEYS_PER_ROW = 10  # so that few rows match
SIDES = ("west", "east")
GATEWAY, OLD, NEW, QUERY = NodeId("gateway"), NodeId("old"), NodeId("new"), QueryId("pairs")
BUILT_S, MOVED_S = 600.0, 100.0  # the paper stops after 100 s
REPORT_US = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSizes:
    """What is built. The links carry 1 Gbit/s."""

    windows: int  # that are open
    window_bytes: int = 256 * 1024  # of state, both sides together
    between: int = 2
    every_s: float = 0.1  # between two batches of a device
    bytes_per_s: float = 125e6
    latency_us: int = 100
    memory_bytes: int = 4 * 2**30

    @property
    def state_bytes(self) -> int:
        return self.windows * self.window_bytes

    @property
    def batch_rows(self) -> int:
        return self.window_bytes // len(SIDES) // STATE_ROW_BYTES


@cache
def pairs(open_windows: int, where: str) -> Stages:
    """Rows of both sides with one key, in one window. The last windows stay open."""
    session = rove.Session.local()
    left, right = (
        session.stream(side, schema=COLUMNS)
        .withWatermark("ts", f"{open_windows * WINDOW_US} microseconds")
        .selectExpr("window(ts, '1 second') AS w", "key", f"a AS a_{side}", f"b AS b_{side}", f"c AS c_{side}")
        for side in SIDES
    )
    return Stages.of({"out": optimize(left.join(right, on=["w", "key"]).at(where).plan)})


@cache
def plain() -> Stages:
    """Rows as they are."""
    session = rove.Session.local()
    left, right = (session.stream(side, schema=COLUMNS) for side in SIDES)
    return Stages.of({"out": optimize(left.union(right).plan)})


class Chain:
    """The network, its sources, and when each result arrived."""

    def __init__(self, folder: Path, sizes: ChainSizes, plan: Stages, hop_by_hop: bool, clock: CoreTime) -> None:
        self.sizes, self.links = sizes, Links(sizes.bytes_per_s, sizes.latency_us)
        redeploy = "state_transfer" if hop_by_hop else "incremental"
        self.net, self.now_us = WatchedNet(folder, clock, redeploy, self.links), clock.now_us  # type: ignore[arg-type]
        self.arrived_us: dict[int, int] = {}  # the results, by window
        self.due_us: dict[int, int] = {}  # by batch
        self._random = np.random.default_rng(1)
        relays = [NodeId(f"relay{n}") for n in range(1, sizes.between + 1)]
        self.stations = [OLD, *(relays if hop_by_hop else []), NEW]  # where the state stops
        above = GATEWAY
        self._add(GATEWAY, "gateway", ())
        for node in (NEW, *reversed(relays), OLD):
            self._add(node, "edge", (above,), slots=8 if node in self.stations else 0)
            above = node
        for side in SIDES:
            self._add(NodeId(side), "device", (OLD,), slots=0)
            self.net.worker(NodeId(side)).worker.add_source(side, Origin(side, NodeId(side)), COLUMNS)
        members, topology = self.net.machine.membership.members, self.net.machine.membership.topology
        self._wait(lambda: len(members) == len(self.net.workers()))
        self._wait(lambda: all(topology.reaches(NodeId(side), GATEWAY) for side in SIDES))
        self.net.submit(QUERY, plan, Sink(kind="discard"))
        query = self.net.machine.deployments.queries[QUERY]
        self._wait(lambda: query.state is QueryState.RUNNING and not query.rollout.pending)
        self.net.on_arrival(GATEWAY, self._arrived)

    def _add(self, name: NodeId, kind: str, parents: tuple[NodeId, ...], slots: int = 8) -> None:
        settings = WorkerSettings(
            node=name,
            kind=kind,  # type: ignore[arg-type]
            parents=parents,
            slots=slots,
            memory_bytes=self.sizes.memory_bytes,
            report_us=REPORT_US,
        )
        self.net.add_node(settings)

    def _arrived(self, header: Header) -> None:
        self.arrived_us[header.seq] = self.now_us()

    def _wait(self, condition: Callable[[], bool]) -> None:
        if not self.net.run_until(condition, BUILT_S):
            raise RuntimeError("the chain of the benchmark did not come to rest in time")

    # Rows

    def fill(self) -> None:
        """Make the rows of the windows that stay open, as fast as they are taken."""
        for number in range(self.sizes.windows):
            for side in SIDES:
                self._make(side, number)
            self._wait(partial(self.has_taken, OLD, number))

    def start(self) -> None:
        """From now on each device makes a batch at every interval."""
        for side in SIDES:
            self.net.feed(NodeId(side), self.now_us(), partial(self._on_time, side, [self.sizes.windows]))

    def replay(self) -> int:
        """Make the rows of all windows, as fast as possible. Returns when that began."""
        for side in SIDES:
            self.net.feed(NodeId(side), self.now_us(), partial(self._at_once, side, [0]))
        return self.now_us()

    def _on_time(self, side: str, numbers: list[int], due_us: int) -> int:
        """Make a batch that was due then. Returns when the next one is due."""
        self.due_us.setdefault(numbers[-1], due_us)
        self._make(side, numbers[-1])
        numbers.append(numbers[-1] + 1)
        return due_us + int(self.sizes.every_s * 1e6)

    def _at_once(self, side: str, numbers: list[int], due_us: int) -> int:
        self._make(side, numbers[-1])
        numbers.append(numbers[-1] + 1)
        return due_us if numbers[-1] < self.sizes.windows else (2**62)

    def _make(self, side: str, number: int) -> None:
        self.net.worker(NodeId(side))._handle(Produced(Origin(side, NodeId(side)), self._rows(number), self.now_us()))

    def _rows(self, window: int) -> pa.RecordBatch:
        """The rows of a window. They do not compress."""
        count, random = self.sizes.batch_rows, self._random
        times = BEGIN_US + window * WINDOW_US + np.arange(count) * WINDOW_US // count
        columns = [
            pa.array(times, pa.timestamp("us", "UTC")),
            pa.array(random.integers(0, KEYS_PER_ROW * count, count)),
            *(pa.array(random.random(count)) for _ in "abc"),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def has_taken(self, node: NodeId, number: int) -> bool:
        """Whether the join has all rows of a window."""
        running = self.net.worker(node).worker.running()[QUERY]
        return all(running.pipeline.took(Origin(side, NodeId(side)), number) for side in SIDES)

    # The move

    def move(self) -> int | None:
        """Drain the old node, and let the state go on until all of it is at the new one. Returns how long that took;
        None if it took too long."""
        begun_us = self.now_us()
        for node, target in zip(self.stations, self.stations[1:], strict=False):
            self.net.send("drain", Drain(name=node))
            left_s = MOVED_S - (self.now_us() - begun_us) / 1e6
            if not self.net.run_until(partial(self._is_whole_at, target), left_s):
                return None
        self.net.check_answers()
        return self.now_us() - begun_us

    def _is_whole_at(self, node: NodeId) -> bool:
        """Whether all states that were to come to a node have come whole."""
        running = self.net.worker(node).worker.running().get(QUERY)
        return running is not None and 0 < len(running.fragment.awaits) == len(running.arrived())

    def latencies_us(self, since_us: int) -> list[int]:
        """How long each result took that was due since then and has come. The batch that closes a window comes when as
        many windows are open as should be. Every window has a result, so they are numbered from the first."""
        first = min(self.arrived_us, default=0)
        closing = {first + number - self.sizes.windows - 1: due_us for number, due_us in self.due_us.items()}
        return [
            at_us - closing[window]
            for window, at_us in self.arrived_us.items()
            if closing.get(window, 0) >= max(1, since_us)
        ]


@contextmanager
def built(sizes: ChainSizes, plan: Stages, hop_by_hop: bool = False) -> Iterator[Chain]:
    """A chain that is closed at the end of the block."""
    clock = CoreTime()
    with tempfile.TemporaryDirectory() as folder, clock.kept():
        chain = Chain(Path(folder), sizes, plan, hop_by_hop, clock)
        try:
            yield chain
        finally:
            chain.net.close()
