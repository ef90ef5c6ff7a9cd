"""What it costs to follow topology changes, beside the baselines HSQD and HCQD of ISQD: Figures 7 to 10 of the paper.

Ten queries run over moving devices (`bench/streets`): a filter and a map, or a join of two streams within windows of
event time (`bench/workloads`). First nothing moves, then all mobile devices move at every interval, then nothing moves
again. All three strategies are settings of the same coordinator and see the same changes.

- Deployment latency of a change: from the moment when the coordinator is told until all nodes run what they should and
  all mobile devices send to their new edge. A change that comes meanwhile counts as one with it. Aggregated, it is the
  time in which some query was being redeployed. Placement is the part in which the coordinator computes.
- Event-time latency: from the moment when a batch was due at its source until it is at the sink. For a join, from the
  moment when the last batch was due that closes the window until the result is at the sink. A process that had no time
  to make a batch is no excuse.
- A change is completed if that happens before the run ends: after the last change a run waits as long as for one change
  that times out.
- Rows are lost if they are in no result after all is quiet. Rows that come twice count as well.

Where state is: the product puts a join on a node that no route of a moving device can avoid, which is the gateway or
the edge that leads out. Then a move touches no state, and devices go on sending over their new edge. The paper's joins
move with the devices. So the figures "stateful" say what a move costs a query with a join in either design, and not
what it costs to move its state. The figures "climbing" do that, for ours alone: the join is at an edge by a hint, and
every change drains the nodes where the joins of all queries run, so all of them move to the next node with their open
windows. Operators move up only, so there are as many changes as there are nodes on the way. A change is completed when
the coordinator knows that the whole state has come. `bench/migrate` compares how state moves.

The baselines let operators with memory stay where they are, so for joins they do not compute a new placement: they
undeploy and deploy it whole, and only devices change their routes.

Every node has a core of its own, and time is the CPU time that its turns took (`bench/cores`). The coordinator has one
core, so HCQD places queries one after the other, and all at once only what nodes do. Links take no time, but for the
figures with other shapes, intermediates and climbing joins: there they carry 250 Mbit/s, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from bench.report import check
from bench.streets import Shape, Streets, World, built
from bench.workloads import Filtered, Joined, Workload
from rove.control.deployment.holistic import Redeploy

WAYS: dict[str, Redeploy] = {"ours": "incremental", "HCQD": "holistic_concurrent", "HSQD": "holistic_serial"}
PERCENTILES = (50, 75, 95, 99)
PAPER = {
    "aggregated deployment latency, s, 120 changes": {
        "ISQD": "12 to 14 with 2 to 16 sources",
        "HCQD": "25 with 2 sources, 98 with 8; 72% of the changes completed with 16",
        "HSQD": "128 with 2 sources, times out beyond",
    },
    "event-time latency, 16 sources": "5.7 ms calm; changing: ISQD 6.1 ms, HSQD 238 ms, HCQD 1306 ms",
    "mobile sources, 8 sources, 2 s": "HCQD 37 s; ISQD lowest, with 8 mobile 10% below HCQD; HSQD times out",
    "mobile sources, stateful, 16 sources, 2 s": "HSQD and HCQD time out; ISQD times out with many",
    "rates, 8 sources": "HCQD 18 to 72 s down to 1 s, then times out; ISQD 7 times less, down to 0.25 s; HSQD only 4 s",
    "rates, stateful, 16 sources": "HCQD only 4 s; ISQD down to 0.5 s, and times out at 0.25 s; p75 203 to 258 ms",
    "shapes, stateful": "circle 65 s, tree 55 s, full 52 s; 1 to 4 intermediates 55 to 75 s, 8 time out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is varied, and how long runs take. Where strategies are judged, a change comes every `interval_s`, `changes`
    times, and each has several `rounds`, in turns, because the machine may be busier at times; elsewhere changes come
    for `other_s`. Stateful queries have twice as many mobile sources, as a join has two sides."""

    queries: int
    edges: int
    sources: tuple[int, ...]
    mobile: tuple[int, ...]
    mobile_stateful: tuple[int, ...]
    intervals_s: tuple[float, ...]
    shapes: tuple[Shape, ...]
    between: tuple[int, ...]
    climbing_s: tuple[float, ...]
    warm_s: float  # before anything is measured, beside the time in which windows fill
    calm_s: float
    interval_s: float
    changes: int
    rounds: int
    other_s: float
    timeout_s: float
    all_ways: bool = True  # run the baselines in every variation, not only where they are judged


SMOKE = Sizes(
    queries=2,
    edges=3,
    sources=(2, 4),
    mobile=(2,),
    mobile_stateful=(),
    intervals_s=(0.25,),
    shapes=("circle",),
    between=(2,),
    climbing_s=(0.25,),
    warm_s=0.5,
    calm_s=1.0,
    interval_s=0.5,
    changes=2,
    rounds=1,
    other_s=0.5,
    timeout_s=10.0,
    all_ways=False,
)
QUICK = Sizes(
    queries=10,
    edges=10,
    sources=(16,),
    mobile=(),
    mobile_stateful=(16,),
    intervals_s=(0.25,),
    shapes=("circle",),
    between=(8,),
    climbing_s=(0.25,),
    warm_s=0.5,
    calm_s=2.0,
    interval_s=1.0,
    changes=2,
    rounds=2,
    other_s=1.0,
    timeout_s=10.0,
    all_ways=False,
)
FULL = Sizes(
    queries=10,
    edges=10,
    sources=(2, 4, 8, 16),
    mobile=(1, 2, 4, 8),
    mobile_stateful=(2, 4, 8, 16),
    intervals_s=(4.0, 2.0, 0.5, 0.25, 0.1),
    shapes=("tree", "full", "circle"),
    between=(1, 2, 4, 8, 16),
    climbing_s=(4.0, 1.0, 0.25, 0.1),
    warm_s=2.0,
    calm_s=20.0,
    interval_s=1.0,
    changes=120,
    rounds=1,
    other_s=120.0,
    timeout_s=120.0,
)
KINDS: dict[str, Callable[[], Workload]] = {"stateless": Filtered, "stateful": Joined}
MOBILE_SOURCES, SHAPE_SOURCES = 8, 4  # of each query, where something else is varied
THROTTLED = 250e6 / 8  # bytes a second
CLIMBING = partial(Joined, batch_rows=1_000, late=4, at="edge")  # about 0.4 MB of state for each query


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run measured, or several together. Latencies are in µs."""

    changes: int
    completed: int
    deploying_s: float  # in which some query was being redeployed
    placing_s: float
    calm_us: list[int]
    changing_us: list[int]
    made: int
    lost: int

    def __add__(self, other: Run) -> Run:
        return Run(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    def slowdown(self) -> float:
        """How much longer the slowest results took while something changed."""
        return _percentiles(self.changing_us)[95] / _percentiles(self.calm_us)[95]

    def shown(self) -> dict[str, float]:
        phases = {"calm": _percentiles(self.calm_us), "changing": _percentiles(self.changing_us)}
        return {
            "changes": self.changes,
            "completed": self.completed,
            "deployment, s": self.deploying_s,
            "of it placement, s": self.placing_s,
            **{f"{name} p{p}, ms": found[p] for name, found in phases.items() for p in PERCENTILES},
            "rows": self.made,
            "rows lost": self.lost,
        }


def _percentiles(latencies_us: list[int]) -> dict[int, float]:
    """In ms."""
    found = np.percentile(latencies_us, PERCENTILES) / 1e3 if latencies_us else [float("nan")] * len(PERCENTILES)
    return dict(zip(PERCENTILES, map(float, found), strict=True))


class Clock:
    """Adds up the time in which something is under way, and counts the changes that were completed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.deploying_s, self.completed = 0.0, 0
        self._open, self._since = 0, 0

    def began(self) -> None:
        if not self._open:
            self._since = self._world.now_us()
        self._open += 1

    def look(self) -> bool:
        """Close what is complete. Returns whether nothing is under way."""
        if self._open and self._world.is_settled():
            self.completed += self._open
            self._open = 0
            self.deploying_s += (self._world.now_us() - self._since) / 1e6
        return not self._open

    def stop(self) -> None:
        if self._open:
            self.deploying_s += (self._world.now_us() - self._since) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a figure."""

    figure: str
    at: float | str
    streets: Streets
    interval_s: float
    changes: int
    ways: tuple[str, ...]
    judged: bool = False


def measure(point: Point, way: str, sizes: Sizes) -> Run:
    """Let a network run calmly, then with changes, then calmly again, and then until all rows are there."""
    calm_s, changes = sizes.calm_s if point.judged else min(sizes.calm_s, sizes.other_s), point.changes
    with built(point.streets, WAYS[way]) as world:
        clock = Clock(world)

        def run_until(at_us: float) -> None:
            def past() -> bool:
                clock.look()
                return world.now_us() >= at_us

            world.net.run_until(past, 10 * sizes.timeout_s)

        world.start()
        run_until(world.now_us() + sizes.warm_s * 1e6 + world.workload.filled_us)
        world.take_latencies()
        run_until(world.now_us() + calm_s / 2 * 1e6)
        calm, placed_s, begun_us = world.take_latencies(), world.machine.placing_s, world.now_us()
        for n in range(changes):
            clock.began()
            world.move()
            run_until(begun_us + (n + 1) * point.interval_s * 1e6)
        world.net.run_until(clock.look, sizes.timeout_s)
        clock.stop()
        changing, placing_s = world.take_latencies(), world.machine.placing_s - placed_s
        run_until(world.now_us() + calm_s / 2 * 1e6)
        calm += world.take_latencies()
        world.stop()
        world.net.run_until(lambda: world.workload.missing() <= 0, sizes.timeout_s)
        return Run(
            changes=changes,
            completed=clock.completed,
            deploying_s=clock.deploying_s,
            placing_s=placing_s,
            calm_us=calm,
            changing_us=changing,
            made=world.workload.made,
            lost=world.workload.missing(),
        )


def points(sizes: Sizes) -> Iterator[Point]:
    """The points of all figures."""
    for kind in KINDS:
        yield from _judged(sizes, kind)
        yield from _others(sizes, kind)
    yield from _climbing(sizes)


def _judged(sizes: Sizes, kind: str) -> Iterator[Point]:
    """Figure 8: more sources. The largest number is where strategies are judged."""
    for sources in sizes.sources:
        judged = sources == sizes.sources[-1]
        yield Point(
            figure=f"{kind}, sources",
            at=sources,
            streets=_streets(sizes, kind, sources=sources),
            interval_s=sizes.interval_s,
            changes=sizes.changes if judged else max(2, round(sizes.other_s / sizes.interval_s)),
            ways=tuple(WAYS) if judged or sizes.all_ways else ("ours",),
            judged=judged,
        )


def _others(sizes: Sizes, kind: str) -> Iterator[Point]:
    """Figures 9 and 10, and the shapes of section 7.2.3."""
    sides = 2 if kind == "stateful" else 1
    base, two_s = min(sides * MOBILE_SOURCES, sizes.sources[-1]), 2 * sizes.interval_s
    for mobile in sizes.mobile_stateful if kind == "stateful" else sizes.mobile:
        yield _point(sizes, kind, "mobile", mobile, two_s, sources=max(mobile, base), mobile=mobile)
    for interval_s in sizes.intervals_s:
        yield _point(sizes, kind, "interval", interval_s, interval_s, sources=base)
    small = {"sources": SHAPE_SOURCES, "mobile": 2, "bytes_per_s": THROTTLED}
    for shape in sizes.shapes:
        yield _point(sizes, kind, "shape", shape, two_s, shape=shape, **small)
    for between in sizes.between:
        yield _point(sizes, kind, "between", between, two_s, between=between, **small)


def _climbing(sizes: Sizes) -> Iterator[Point]:
    """Joins that move with their state, over as many nodes as there are."""
    for interval_s in sizes.climbing_s:
        between = sizes.between[-1]
        streets = _streets(sizes, "climbing", sources=SHAPE_SOURCES, between=between, bytes_per_s=THROTTLED)
        yield Point(
            figure="climbing, interval",
            at=interval_s,
            streets=streets,
            interval_s=interval_s,
            changes=between,
            ways=("ours",),
        )


def _point(sizes: Sizes, kind: str, varied: str, at: float | str, interval_s: float, **built: Any) -> Point:
    return Point(
        figure=f"{kind}, {varied}",
        at=at,
        streets=_streets(sizes, kind, **built),
        interval_s=interval_s,
        changes=max(2, round(sizes.other_s / interval_s)),
        ways=tuple(WAYS) if sizes.all_ways else ("ours",),
    )


def _streets(sizes: Sizes, kind: str, **built: Any) -> Streets:
    workload = CLIMBING if kind == "climbing" else KINDS[kind]
    mobile = {"stateless": 1, "stateful": 2, "climbing": 0}[kind]
    base = {"queries": sizes.queries, "edges": sizes.edges, "mobile": mobile, "climbs": kind == "climbing"}
    return Streets(**{**base, **built}, workload=workload)


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """All points of all figures, with the strategies that are compared at each."""
    every = list(points(sizes))
    found: dict[tuple[str, float | str], dict[str, Run]] = {}
    with Progress(transient=True) as progress:
        turns = [(point, way) for point in every for way in point.ways * (sizes.rounds if point.judged else 1)]
        for point, way in progress.track(turns, description="redeployments"):
            runs, measured = found.setdefault((point.figure, point.at), {}), measure(point, way, sizes)
            runs[way] = runs[way] + measured if way in runs else measured
    stateless, stateful = (found[f"{kind}, sources", sizes.sources[-1]] for kind in KINDS)
    ours, all_ours = stateless["ours"], [runs["ours"] for runs in found.values()]
    checks = [
        check("deploy_vs_hcqd_16src", stateless["HCQD"].deploying_s / ours.deploying_s, 10),
        check("deploy_vs_hsqd_16src", stateless["HSQD"].deploying_s / ours.deploying_s, 10),
        check("p95_changing_vs_calm_stateless", ours.slowdown(), 1.1, at_least=False),
        check("p95_changing_vs_calm_stateful", stateful["ours"].slowdown(), 1.5, at_least=False),
        check("changes_completed", sum(r.completed for r in all_ours) / sum(r.changes for r in all_ours), 1),
        check("rows_lost", sum(abs(r.lost) for runs in found.values() for r in runs.values()), 0, at_least=False),
    ]
    figures = {
        f"by_{figure}": {
            f"{at}, {way}": each.shown()
            for (name, at), runs in found.items()
            if name == figure
            for way, each in runs.items()
        }
        for figure in dict.fromkeys(point.figure for point in every)
    }
    return {
        "bench": "redeploy",
        "checks": checks,
        "figures": {**figures, "curves": _curves(found)},
        "paper": PAPER,
    }


def _curves(found: dict[tuple[str, float | str], dict[str, Run]]) -> dict[str, dict[str, dict[float, float]]]:
    """Deployment and p95 latency against what is varied by number."""
    curves: dict[str, dict[str, dict[float, float]]] = {}
    for (figure, at), runs in found.items():
        if isinstance(at, str):
            continue
        for way, each in runs.items():
            for what, value in (("deployment, s", each.deploying_s), ("p95, ms", _percentiles(each.changing_us)[95])):
                curves.setdefault(f"{what}, against {figure}", {}).setdefault(way, {})[float(at)] = value
    return curves
