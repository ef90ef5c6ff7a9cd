"""Measures devices that come back: the cost of disconnections for a query, and the time of recovery. Figures 6 and 8 of
NebulaStream-MSS.

Everything runs in this process and in real time, with the machines, shells and coordinator of production. Messages take
5 ms from a node to the next and 20 ms to the coordinator. A source makes its rows at a steady rate. Runtime is from the
first row to the arrival of the last of 2 million. While a device is away its source goes on, and its rows wait. Vanilla
NebulaStream removes the device and its query and starts both again; its source is paused, and continues after the last
row that had arrived.

Recovery is from the return of a device at another parent to the arrival of all batches it had kept. It is measured with
one route (the coordinator redeploys), with routes that were known beforehand (`replication`), and with forwarding
queries as in the paper. All send to the gateway. The removal of forwarding queries is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from rich.progress import Progress

from bench import football, forwarding
from bench.report import check
from bench.ways import DEVICE, QUERY, SILENT_US, Ways, built
from rove.control.asks.requests import Named
from rove.model.ids import QueryId
from rove.runtime.clock import now_us

BATCH_ROWS = 5_000
CALM = 0.85  # disconnections happen in this first part of a run
BUFFERED = 40  # batches that a device has kept when it comes back
PATH = 5  # nodes of the path
REPLICATION = 2
WAYS = 3
PAPER = {
    "same parent": "runtime almost constant over 10 disconnections",
    "all redeployed": "runtime converges to that of vanilla NebulaStream",
    "recovery": "most of it is redeployment and deploying forwarding queries; grows with both",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """The length of the runs and what is varied: the number of disconnections, and the share with a redeployment."""

    tuples: int
    seconds: float  # how long the source takes for all rows
    away_s: float
    counts: tuple[int, ...]  # numbers of disconnections
    shares: tuple[float, ...]  # shares of disconnections with a redeployment
    paths: tuple[int, ...]
    replications: tuple[int, ...]
    rounds: int


SMOKE = Sizes(
    tuples=40_000,
    seconds=1.0,
    away_s=0.2,
    counts=(0, 2),
    shares=(0.0, 1.0),
    paths=(PATH,),
    replications=(2,),
    rounds=1,
)
QUICK = Sizes(
    tuples=2_000_000,
    seconds=5.0,
    away_s=0.2,
    counts=(0, 10),
    shares=(0.0, 1.0),
    paths=(4, PATH, 7),
    replications=(1, 8),
    rounds=3,
)
FULL = Sizes(
    tuples=2_000_000,
    seconds=2_000_000 / 56_375,
    away_s=0.5,
    counts=(0, 2, 4, 6, 8, 10),
    shares=(0.0, 0.25, 0.5, 0.75, 1.0),
    paths=(4, PATH, 7),
    replications=(1, 2, 4, 8),
    rounds=5,
)


@dataclass(slots=True)
class Source:
    """Makes batches at a steady rate. A source that had to wait does not catch up."""

    ways: Ways
    sizes: Sizes
    batches: list[Any]
    made: int = 0  # batches
    since_us: int = field(default_factory=now_us)

    def feed(self) -> None:
        in_all = self.sizes.tuples // BATCH_ROWS
        due = int((now_us() - self.since_us) / 1e6 / self.sizes.seconds * in_all)
        while self.made < min(due, in_all):
            self.ways.produce(self.batches[self.made % len(self.batches)])
            self.made += 1

    def again_from(self, batch: int) -> None:
        """Continue after the last row that has arrived."""
        self.made = batch
        self.since_us = now_us() - int(batch * BATCH_ROWS / self.sizes.tuples * self.sizes.seconds * 1e6)


def runtime(sizes: Sizes, disconnections: int, redeployed: float = 0.0, vanilla: bool = False) -> float:
    """The runtime of all tuples, with so many disconnections, a share of which end at another parent."""
    with built(WAYS, PATH) as ways:
        ways.submit(QUERY)
        batches = [football.rows(BATCH_ROWS, seed) for seed in range(5)]
        source, query, done, lost_s = Source(ways, sizes, batches), QUERY, 0, 0.0
        begun = time.perf_counter()
        moved = 0.0
        for n in range(disconnections):
            cut_at = begun + lost_s + CALM * sizes.seconds * (n + 0.5) / disconnections
            _run(source, lambda at=cut_at: time.perf_counter() >= at)
            here, paused = ways.at or 0, time.perf_counter()
            ways.leave()
            moved += redeployed
            back = (here + 1) % WAYS if moved >= 1 else here
            moved -= moved >= 1
            if vanilla:
                for verb, name in (("remove", DEVICE), ("stop", query)):
                    ways.net.ask(verb, Named(name=name), Named)
                ways.net.run_for(max(0.0, paused + sizes.away_s - time.perf_counter()))
                done += ways.delivered(query)
                ways.come(back)
                ways.wait(lambda: DEVICE in ways.machine.membership.members)
                query = QueryId(f"{QUERY}{n}")
                ways.submit(query)
                source.again_from(done // BATCH_ROWS)
                lost_s += time.perf_counter() - paused
            else:
                _run(source, lambda at=paused + sizes.away_s: time.perf_counter() >= at)
                ways.come(back)
        _run(source, lambda: done + ways.delivered(query) >= sizes.tuples)
        return time.perf_counter() - begun


def _run(source: Source, condition: Callable[[], bool]) -> None:
    def fed() -> bool:
        source.feed()
        return condition()

    source.ways.wait(fed, 120)


def recovery(nodes: int, ways_count: int, replication: int, way: str) -> dict[str, float]:
    """Milliseconds from the return of a device at another parent until all kept batches have arrived, by phase."""
    net = forwarding.ForwardingNet if way == "forwarding queries" else forwarding.LocalNet
    with built(ways_count, nodes, net) as ways:
        routes = replication if way in ("all routes", "best route") else 1
        ways.submit(QUERY, routes, copies=way == "all routes")
        batches = [football.rows(BATCH_ROWS, seed) for seed in range(5)]
        ways.produce(batches[0])
        ways.wait(lambda: not len(ways.worker.store))
        version = ways.worker.running()[QUERY].fragment.version
        ways.leave()
        for n in range(BUFFERED):
            ways.produce(batches[n % len(batches)])
        ways.net.run_for(2 * SILENT_US / 1e6)
        kept = forwarding.buffer_of(ways) if way == "forwarding queries" else []
        marks = [time.perf_counter()]

        def mark(condition: Callable[[], bool]) -> None:
            ways.wait(condition)
            marks.append(time.perf_counter())

        if routes > 1:  # the device knows its routes, so nothing is deployed
            other = ways.worker.running()[QUERY].fragment.others[0]
            ways.come([way[0] for way in ways.ways].index(other))
            mark(lambda: ways.worker.running()[QUERY].route == other)
            mark(lambda: True)
        else:
            ways.come(1)
            mark(lambda: ways.heard_at(1))
            mark(lambda: ways.worker.running()[QUERY].fragment.version > version)
        if way == "forwarding queries":
            forwarding.deploy(ways, replication)
            mark(lambda: True)
            forwarding.send(ways, kept, replication)
            mark(lambda: True)
        else:
            mark(lambda: True)
            mark(lambda: ways.delivered(QUERY) >= (BUFFERED + 1) * BATCH_ROWS)
        parts = [1e3 * (b - a) for a, b in pairwise(marks)]
        return {**dict(zip(("notify", "redeploy", "forwarding", "drain"), parts, strict=True)), "all": sum(parts)}


def _typical(runs: list[dict[str, float]]) -> dict[str, float]:
    return {part: median(run[part] for run in runs) for part in runs[0]}


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """Runtimes by disconnections and by redeployments; recovery by length of path and by replication."""
    counts, shares, most = sizes.counts, sizes.shares, sizes.counts[-1]
    ours: dict[int, float] = {}
    vanilla: dict[int, float] = {}
    redeployed: dict[float, float] = {}
    with Progress(transient=True) as progress:
        total = 2 * len(counts) + len(shares) - 2 + 3 * len(sizes.paths) + 3 * len(sizes.replications)
        task = progress.add_task("devices that come back", total=total)

        def step(what: str) -> None:
            progress.update(task, description=what, advance=1)

        for count in counts:
            ours[count] = runtime(sizes, count)
            step(f"{count} disconnections")
            if count:
                vanilla[count] = runtime(sizes, count, vanilla=True)
                step(f"{count} disconnections, vanilla")
        vanilla[0] = ours[0]
        for share in shares:
            redeployed[share] = ours[most] if not share else runtime(sizes, most, share)
            step(f"{share:.0%} redeployed")
        by_path: dict[str, dict[str, float]] = {}
        for nodes in sizes.paths:
            for way in ("best route", "one route", "forwarding queries"):
                times = sizes.rounds if nodes == PATH else max(1, sizes.rounds // 2)
                found = [recovery(nodes, WAYS, REPLICATION, way) for _ in range(times)]
                by_path[f"{nodes} nodes, {way}"] = _typical(found)
                step(f"{nodes} nodes, {way}")
        by_routes: dict[str, dict[str, float]] = {}
        for replication in sizes.replications:
            for way in ("all routes", "best route", "forwarding queries"):
                found = [recovery(PATH, 8 + WAYS, replication, way) for _ in range(max(1, sizes.rounds // 2))]
                by_routes[f"{replication} routes, {way}"] = _typical(found)
                step(f"{replication} routes, {way}")
    theirs = by_path[f"{PATH} nodes, forwarding queries"]["all"]
    checks = [
        check("runtime_ratio_same_parent", ours[most] / ours[0], 1.03, at_least=False),
        check("runtime_ratio_all_redeployed", redeployed[1.0] / ours[0], 1.03, at_least=False),
        check(
            "recovery_vs_forwarding_queries", by_path[f"{PATH} nodes, best route"]["all"] / theirs, 0.5, at_least=False
        ),
    ]
    figures = {
        "runtime_s": {
            "rove, same parent": {str(n): ours[n] for n in counts},
            "vanilla": {str(n): vanilla[n] for n in counts},
            "vanilla, less the time away": {str(n): vanilla[n] - n * sizes.away_s for n in counts},
        },
        "runtime_s_by_share_redeployed": {"rove": {f"{s:.0%}": redeployed[s] for s in shares}},
        "recovery_ms_by_length_of_path": by_path,
        "recovery_ms_by_routes": by_routes,
        "curves": {
            "runtime, s, against disconnections": {"rove": ours, "vanilla": {n: vanilla[n] for n in counts}},
            "runtime, s, against % redeployed": {"rove": {100 * s: redeployed[s] for s in shares}},
            "recovery, ms, against nodes of the path": {
                way: {nodes: by_path[f"{nodes} nodes, {way}"]["all"] for nodes in sizes.paths}
                for way in ("best route", "one route", "forwarding queries")
            },
            "recovery, ms, against routes": {
                way: {n: by_routes[f"{n} routes, {way}"]["all"] for n in sizes.replications}
                for way in ("all routes", "best route", "forwarding queries")
            },
        },
    }
    return {"bench": "reconnect", "checks": checks, "figures": figures, "paper": PAPER}
