"""What the coordinator costs: moves, rollouts, joins, steady reports and a restart, in fleets of different sizes.

The coordinator runs in this process, without sockets. The nodes around it are as small as can be: they do what they are
told at once, and say so. CPU time is counted for the coordinator alone, over everything that an event brings about:
a move is over when the device and its new parent run their parts and the old parent has let go.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import rove
from bench.report import check
from rove import functions as F
from rove.control.asks.requests import Submit, to_body
from rove.control.commands import Keep
from rove.control.coordinator import Coordinator
from rove.control.deployment.holistic import Redeploy
from rove.data.link.below import Below
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import PROTOCOL, Answer, Ask, Facts, Kind, Orders, Report, Sink, SourceHere, digest_of, encode
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

SCHEMA = "train string, ts timestamp, boarding int, alighting int"
PARENTS = 3  # that each device knows
STREAMS = 20
ALL = "all"  # a stream that every device produces beside its own
PER_STREAM = 10  # queries
SLOTS = 64
GATEWAY = NodeId("gateway")


class Sizes(NamedTuple):
    """Fleets that are compared: `few` and `many` devices and queries; `moves` and `reports` are repetitions."""

    edges: int
    devices_few: int
    devices_many: int
    queries_few: int
    queries_many: int
    moves: int
    reports: int


SMOKE = Sizes(edges=10, devices_few=20, devices_many=60, queries_few=10, queries_many=20, moves=2, reports=20)
QUICK = Sizes(edges=200, devices_few=500, devices_many=1_500, queries_few=20, queries_many=60, moves=15, reports=500)
FULL = Sizes(edges=500, devices_few=500, devices_many=5_000, queries_few=50, queries_many=200, moves=40, reports=2_000)


@dataclass(slots=True)
class Cost:
    """What one event took of the coordinator, with everything that it brought about."""

    cpu_s: float = 0.0
    kept_bytes: int = 0
    messages: int = 0
    message_bytes: int = 0


@dataclass(slots=True)
class Node:
    """A node that does what it is told. `number` counts its reports."""

    name: NodeId
    facts: Facts
    reaches: tuple[NodeId, ...]
    number: int = 0
    running: dict[QueryId, Version] = field(default_factory=dict)
    knows: str = ""
    below: Below = field(default_factory=Below)
    unsaid: dict[str, Any] = field(default_factory=dict)  # what its next report says
    obeyed: int = 0  # the number of the last orders

    def obey(self, orders: Orders) -> None:
        """Take orders, and have something to say if there was something to do."""
        self.obeyed = orders.number or self.obeyed
        for fragment in orders.deploy:
            self.running[fragment.query] = fragment.version
            self.unsaid.setdefault("running", {})[fragment.query] = fragment.version
        for query in (*orders.stop, *orders.leave):
            if self.running.pop(query, None) is not None:
                self.unsaid["ended"] = (*self.unsaid.get("ended", ()), query)
        if orders.peers is not None:
            self.knows = self.unsaid["knows"] = digest_of(orders.peers)
        if orders.learn is not None and self.below.learn(orders.learn):
            self.unsaid["learned"] = self.below.known

    def report(self, whole: bool = False) -> Report:
        """What is new, or everything."""
        self.number += 1
        said, self.unsaid = self.unsaid, {}
        if whole:
            said = {
                "facts": self.facts,
                "running": dict(self.running),
                "unknown": (),
                "refused": {},
                "knows": self.knows,
                "troubles": {},
                "reaches": self.reaches,
                "held": (),
                "learned": self.below.known,
            }
        return Report(
            protocol=PROTOCOL, node=self.name, start=1, number=self.number, whole=whole, obeyed=self.obeyed, **said
        )


class Fleet:
    """A coordinator with its nodes."""

    def __init__(self, edges: int, devices: int, seed: int = 1, redeploy: Redeploy = "incremental") -> None:
        random = Random(seed)
        self.machine, self.now, self._ids = Coordinator(redeploy=redeploy), 0, count()
        self.kept: dict[tuple[str, str], bytes] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.devices: list[NodeId] = []
        self.cost = Cost()
        names = [NodeId(f"edge{n}") for n in range(edges)]
        self.join(GATEWAY, "gateway", (), ())
        for name in names:
            self.join(name, "edge", (GATEWAY,), ())
        for n in range(devices):
            name = NodeId(f"device{n}")
            self.devices.append(name)
            self.join(name, "device", tuple(random.sample(names, PARENTS)), (f"s{n % STREAMS}", ALL))

    def join(self, name: NodeId, kind: Kind, parents: tuple[NodeId, ...], streams: tuple[str, ...]) -> Cost:
        sources = tuple(SourceHere(stream=s, origin=Origin(s, name), columns=SCHEMA) for s in streams)
        facts = Facts(
            kind=kind, address="there", parents=parents, slots=SLOTS, memory_bytes=2**33, sources=sources,
            durable=kind != "device",
        )  # fmt: skip
        node = self.nodes[name] = Node(name, facts, parents[:1])
        return self.measured(lambda: self._hear(node, node.report(whole=True)))

    def submit(self, name: str, stream: str, windowed: bool) -> Cost:
        rows = rove.Session.local().stream(stream, schema=SCHEMA).where("boarding + alighting > 3")
        if windowed:
            rows = rows.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "30 seconds"), "train").count()
        plan = codec.encode(Stages.of({"out": optimize(rows.plan)}))
        ask = Ask(str(next(self._ids)), "submit", to_body(Submit(name=name, plan=plan, sink=Sink(kind="log"))))
        return self.measured(lambda: self._handle(Arrived("user", ask)))

    def move(self, device: NodeId) -> Cost:
        """A device comes back at another of its parents."""
        node = self.nodes[device]
        others = [parent for parent in node.facts.parents if parent not in node.reaches]
        old, node.reaches = node.reaches[0], (others[0],)
        node.unsaid["reaches"] = node.reaches

        def moved() -> None:
            self._hear(node, node.report())
            self._hear(self.nodes[old], self.nodes[old].report())  # it learns at its next report that it may leave

        return self.measured(moved)

    def restart(self) -> float:
        """Seconds of CPU until a new coordinator has found its world again."""
        self.machine = Coordinator()
        begun = process_time()
        self.machine.restore((kind, name, data) for (kind, name), data in self.kept.items())
        return process_time() - begun

    def measured(self, act: Callable[[], object]) -> Cost:
        """Let something happen, and all that follows from it; what it cost."""
        self.cost = Cost()
        act()
        return self.cost

    def steady(self, reports: int) -> float:
        """Microseconds of CPU for a report with nothing new."""
        nodes = [self.nodes[name] for name in self.devices]
        said = [(nodes[n % len(nodes)].name, nodes[n % len(nodes)].report()) for n in range(reports)]
        self.cost = Cost()
        for name, report in said:
            self._handle(Arrived(name.encode(), report))
        return self.cost.cpu_s * 1e6 / reports

    def tick(self) -> float:
        """Milliseconds of CPU for a beat of the coordinator's clock with nothing new, after all nodes have reported."""
        self.steady(len(self.devices))
        for name in self.nodes.keys() - set(self.devices):
            self._hear(self.nodes[name], self.nodes[name].report())
        self._handle(Tick())  # what has changed since the last one
        return self.measured(lambda: self._handle(Tick())).cpu_s * 1e3

    def _hear(self, node: Node, report: Report) -> None:
        self._handle(Arrived(node.name.encode(), report))

    def _handle(self, event: Arrived | Tick) -> None:
        """One event at the coordinator, and whatever the nodes have to say because of it, until all is quiet."""
        waiting: list[Arrived | Tick] = [event]
        while waiting:
            self.now += 1_000
            begun = process_time()
            commands = self.machine.handle(waiting.pop(0), self.now)
            self.cost.cpu_s += process_time() - begun
            for command in commands:
                match command:
                    case Keep(kind=kind, name=name, record=record):
                        self.cost.kept_bytes += len(record or b"")
                        if record is None:
                            self.kept.pop((kind, name), None)
                        else:
                            self.kept[kind, name] = record
                    case Send(conn=bytes() as conn, message=Orders() as orders):
                        self.cost.messages += 1
                        self.cost.message_bytes += len(encode(orders))
                        node = self.nodes[NodeId(conn.decode())]
                        node.obey(orders)
                        if node.unsaid or orders.whole:
                            waiting.append(Arrived(conn, node.report(orders.whole)))
                    case Send(message=Answer(trouble=trouble)) if trouble:
                        raise RuntimeError(trouble)


class Figures(NamedTuple):
    """What one fleet measured. Times are CPU time of the coordinator."""

    move: Cost
    rollout_stream: Cost
    rollout_all: Cost
    join: Cost
    report_us: float
    tick_ms: float
    restart_s: float
    devices: int
    queries: int

    def shown(self) -> dict[str, float]:
        return {
            "devices": self.devices,
            "queries": self.queries,
            "move, ms": self.move.cpu_s * 1e3,
            "move, kept KB": self.move.kept_bytes / 1e3,
            "move, messages": self.move.messages,
            "new query over a stream, ms": self.rollout_stream.cpu_s * 1e3,
            "new query over all, ms": self.rollout_all.cpu_s * 1e3,
            "new query over all, messages": self.rollout_all.messages,
            "join, ms": self.join.cpu_s * 1e3,
            "join, kept KB": self.join.kept_bytes / 1e3,
            "report, us": self.report_us,
            "tick, ms": self.tick_ms,
            "restart, s": self.restart_s,
        }


def measure(sizes: Sizes, devices: int, queries: int) -> Figures:
    """Build a fleet with its queries, and let things happen to it."""
    fleet = Fleet(sizes.edges, devices)
    for n in range(queries):
        fleet.submit(f"q{n}", f"s{n // PER_STREAM % STREAMS}", windowed=n % 2 == 1)
    gc.collect()
    touched = [d for n, d in enumerate(fleet.devices) if n % STREAMS == 0]
    moves = [fleet.move(touched[n % len(touched)]) for n in range(sizes.moves)]
    report_us = min(fleet.steady(sizes.reports) for _ in range(3))
    tick_ms = min(fleet.tick() for _ in range(3))
    stream = fleet.submit("one-stream", "s1", windowed=True)
    over_all = min((fleet.submit(f"over-all-{n}", ALL, windowed=True) for n in range(2)), key=lambda c: c.cpu_s)
    join = fleet.join(NodeId("late"), "device", tuple(NodeId(f"edge{n}") for n in range(PARENTS)), ("s0",))
    fleet.machine.validate()
    restart_s = fleet.restart()
    fleet.machine.validate()
    return Figures(_median(moves), stream, over_all, join, report_us, tick_ms, restart_s, devices, queries)


def _median(costs: Iterable[Cost]) -> Cost:
    found = list(costs)
    return Cost(*(median(getattr(cost, name) for cost in found) for name in Cost.__slots__))


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    few = measure(sizes, sizes.devices_few, sizes.queries_many)
    quiet = measure(sizes, sizes.devices_many, sizes.queries_few)
    many = measure(sizes, sizes.devices_many, sizes.queries_many)
    rollout = (many.rollout_all.cpu_s / many.devices) / (few.rollout_all.cpu_s / few.devices)
    checks = [
        check("move_ms", many.move.cpu_s * 1e3, 10, at_least=False),
        check("move_growth_devices", many.move.cpu_s / few.move.cpu_s, 1.5, at_least=False),
        check("move_growth_queries", many.move.cpu_s / quiet.move.cpu_s, 1.3, at_least=False),
        check("move_kept_kb", many.move.kept_bytes / 1e3, 50, at_least=False),
        check("rollout_growth", rollout, 1.3, at_least=False),
        check("report_us", many.report_us, 300, at_least=False),
        check("tick_ms", many.tick_ms, 10, at_least=False),
    ]
    fleets = {"few devices": few.shown(), "few queries": quiet.shown(), "many": many.shown()}
    costs = {what: {name: shown[what] for name, shown in fleets.items()} for what in few.shown()}
    return {"bench": "control", "checks": checks, "figures": {"costs": costs}, "paper": {}}
