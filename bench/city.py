"""A city on one coordinator: many devices, edges and queries, and a hundred changes of the topology each second.

The coordinator runs in this process, without sockets, and the nodes around it do what they are told at once
(`bench/control`). A change is a device that comes back at another parent. It is complete when the device, its new
parent and its old parent run what they should. Changes come at fixed times of a virtual clock, and the steady reports
of all nodes come between them; the CPU that the coordinator takes is real. If it takes less CPU than time passes, one
core is enough.

What a change costs is measured with the queries of few and of many streams. A device is read by the same number of
queries in both, so the other queries are those that the change does not touch.
"""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from rich.progress import Progress

from bench.control import PER_STREAM, STREAMS, Fleet
from bench.report import check
from rove.control.coordinator import Coordinator
from rove.control.deployment.query import QueryState
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId

PAPER = {
    "goal": "DESIGN.md, decision 8: 5,000 devices, 500 edges and 200 queries on one core, at 100 changes a second",
    "ISQD, section 1": "10 changes a second that touch all 10 queries stop a holistic system after 7 s",
}


class Sizes(NamedTuple):
    """The city, and how long changes come."""

    edges: int
    devices: int
    queries: tuple[int, ...]  # from few to many
    changes_per_s: int
    seconds: int
    report_s: float  # between two reports of a node that has nothing new


SMOKE = Sizes(edges=10, devices=60, queries=(10, 20), changes_per_s=10, seconds=2, report_s=1.0)
QUICK = Sizes(edges=100, devices=800, queries=(50, 200), changes_per_s=100, seconds=5, report_s=4.0)
FULL = Sizes(edges=500, devices=5_000, queries=(50, 100, 200), changes_per_s=100, seconds=60, report_s=4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One city. Costs are of the coordinator alone."""

    queries: int
    changes: int
    completed: int
    busy: float  # CPU seconds of the coordinator in each second
    change_ms: list[float]
    kept_bytes: float
    messages: float
    report_us: float
    memory_mb: float  # of a coordinator that knows all this
    peak_mb: float  # of the whole process, with the nodes around the coordinator

    def shown(self) -> dict[str, float]:
        ordered = sorted(self.change_ms)
        return {
            "queries": self.queries,
            "changes": self.changes,
            "completed": self.completed,
            "share of one core": self.busy,
            "change, ms": median(ordered),
            "change p99, ms": ordered[int(len(ordered) * 0.99)],
            "change, kept bytes": self.kept_bytes,
            "change, messages": self.messages,
            "report, us": self.report_us,
            "memory, MB": self.memory_mb,
            "peak of the process, MB": self.peak_mb,
        }


class City(Fleet):
    """A fleet with a clock. `touched` are devices of one stream, which all queries of that stream read."""

    def __init__(self, sizes: Sizes, queries: int) -> None:
        super().__init__(sizes.edges, sizes.devices)
        self._reporting: Iterator[NodeId] = cycle(list(self.nodes))
        for n in range(queries):
            self.submit(f"q{n}", f"s{n // PER_STREAM % STREAMS}", windowed=n % 2 == 1)
        few = max(1, min(queries // PER_STREAM, STREAMS))
        self.read = [d for n, d in enumerate(self.devices) if n % STREAMS < few]

    def is_complete(self, device: NodeId, old: NodeId) -> bool:
        """Whether everybody runs what they should after a move: the device, its new parent and its old one."""
        node = self.nodes[device]
        for query in self.machine.deployments.live(device):
            deployment = query.deployment
            if deployment is None or query.state is not QueryState.RUNNING:
                return False
            if deployment.tree.parts[device].next != node.reaches[0]:
                return False
            for name in (device, node.reaches[0], old):
                part, runs = deployment.fragments.get(name), self.nodes[name].running.get(query.id)
                if part is None and runs is not None and name != old:
                    return False
                if part is not None and (runs is None or runs < part.version):
                    return False
        return True

    def memory_mb(self) -> float:
        """The memory that a second coordinator takes that knows the same: it is restored from the records, and hears
        all nodes."""
        gc.collect()
        before = _resident_mb()
        twin = Coordinator()
        twin.restore((kind, name, data) for (kind, name), data in self.kept.items())
        for node in self.nodes.values():
            twin.handle(Arrived(node.name.encode(), node.report(whole=True)), self.now)
        twin.validate()
        return _resident_mb() - before

    def report_steadily(self, count: int) -> float:
        """CPU seconds for so many reports with nothing new."""
        begun = self.cost.cpu_s
        for _ in range(count):
            node = self.nodes[next(self._reporting)]
            self._hear(node, node.report())
        return self.cost.cpu_s - begun


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(sizes: Sizes, queries: int, progress: Progress) -> Measured:
    """Build a city with its queries, and let devices move in it."""
    task = progress.add_task(f"a city with {queries} queries", total=sizes.seconds * sizes.changes_per_s)
    city, random = City(sizes, queries), Random(7)
    gc.collect()
    gc.freeze()
    base_us, every_us = city.now, 1_000_000 // sizes.changes_per_s
    reports_each = len(city.nodes) / sizes.report_s / sizes.changes_per_s
    change_ms, kept, messages, completed, reported, report_s, tick_s = [], 0, 0, 0, 0, 0.0, 0.0
    changes = sizes.seconds * sizes.changes_per_s
    for n in range(changes):
        city.now = max(city.now, base_us + n * every_us)
        device = random.choice(city.read)
        old = city.nodes[device].reaches[0]
        cost = city.move(device)
        change_ms.append(cost.cpu_s * 1e3)
        kept, messages = kept + cost.kept_bytes, messages + cost.messages
        completed += city.is_complete(device, old)
        due = int((n + 1) * reports_each)
        report_s += city.report_steadily(due - reported)
        reported = due
        if (n + 1) % sizes.changes_per_s == 0:
            begun = process_time()
            city._handle(Tick())
            tick_s += process_time() - begun
        progress.advance(task)
    city.machine.validate()
    gc.unfreeze()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    progress.remove_task(task)
    return Measured(
        queries=queries,
        changes=changes,
        completed=completed,
        busy=(sum(change_ms) / 1e3 + report_s + tick_s) / sizes.seconds,
        change_ms=change_ms,
        kept_bytes=kept / changes,
        messages=messages / changes,
        report_us=report_s * 1e6 / max(1, reported),
        memory_mb=city.memory_mb(),
        peak_mb=peak_mb,
    )


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    with Progress(transient=True) as progress:
        cities = [measure(sizes, queries, progress) for queries in sizes.queries]
    few, many = cities[0], cities[-1]
    growth = median(many.change_ms) / median(few.change_ms)
    completed = sum(city.completed for city in cities) / sum(city.changes for city in cities)
    checks = [
        check("changes_completed", completed, 1),
        check("cost_per_change_growth", growth, 1.3, at_least=False),
    ]
    fleets = {f"{city.queries} queries": city.shown() for city in cities}
    costs = {what: {name: shown[what] for name, shown in fleets.items()} for what in few.shown()}
    curves = {
        "change, ms of CPU, against queries": {
            "median": {city.queries: median(city.change_ms) for city in cities},
            "p99": {city.queries: city.shown()["change p99, ms"] for city in cities},
        },
        "share of one core, against queries": {"coordinator": {city.queries: city.busy for city in cities}},
    }
    size = {"edges": sizes.edges, "devices": sizes.devices, "changes a second": sizes.changes_per_s, "s": sizes.seconds}
    return {
        "bench": "city",
        "checks": checks,
        "figures": {"city": size, "costs": costs, "curves": curves},
        "paper": PAPER,
    }
