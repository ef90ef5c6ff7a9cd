"""What it costs to follow topology changes, beside the baselines HSQD and HCQD of ISQD: Figures 7 to 10 of the paper.

Ten queries run over moving devices (`bench/streets`). First nothing moves, then all mobile devices move at every
interval, then nothing moves again. All three strategies are settings of the same coordinator and see the same changes.

- Deployment latency of a change: from the moment when the coordinator is told until all nodes run what they should and
  all mobile devices send to their new edge. A change that comes meanwhile counts as one with it. Aggregated, it is the
  time in which some query was being redeployed. Placement is the part in which the coordinator computes.
- Event-time latency: from the moment when a batch was due at its source until it is at the sink. A process that had no
  time to make it is no excuse.
- A change is completed if that happens before the run ends: after the last change a run waits as long as for one change
  that times out.
- Rows are lost if they have not arrived after all is quiet.

Every node has a core of its own, and time is the CPU time that its turns took (`bench/streets`). The coordinator has
one core, so HCQD places queries one after the other, and all at once only what nodes do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from bench.report import check
from bench.streets import Shape, Streets, World, built
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
    "rates, 8 sources": "HCQD 18 to 72 s down to 1 s, then times out; ISQD 7 times less, down to 0.25 s; HSQD only 4 s",
    "shapes, stateful": "circle 65 s, tree 55 s, full 52 s; 1 to 4 intermediates 55 to 75 s, 8 time out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is varied, and how long runs take. A change comes every `interval_s`, `changes` times."""

    queries: int
    edges: int
    sources: tuple[int, ...]
    mobile: tuple[int, ...]
    intervals_s: tuple[float, ...]
    shapes: tuple[Shape, ...]
    between: tuple[int, ...]
    warm_s: float  # before anything is measured
    calm_s: float
    interval_s: float
    changes: int
    timeout_s: float
    all_ways: bool = True  # run the baselines in every variation, not only where they are judged


SMOKE = Sizes(
    queries=2,
    edges=3,
    sources=(2, 4),
    mobile=(2,),
    intervals_s=(0.25,),
    shapes=("circle",),
    between=(1,),
    warm_s=0.5,
    calm_s=0.5,
    interval_s=0.5,
    changes=2,
    timeout_s=10.0,
    all_ways=False,
)
QUICK = Sizes(
    queries=10,
    edges=10,
    sources=(16,),
    mobile=(),
    intervals_s=(0.25,),
    shapes=("circle",),
    between=(),
    warm_s=1.0,
    calm_s=4.0,
    interval_s=1.0,
    changes=4,
    timeout_s=10.0,
    all_ways=False,
)
FULL = Sizes(
    queries=10,
    edges=10,
    sources=(2, 4, 8, 16),
    mobile=(2, 4, 8),
    intervals_s=(4.0, 2.0, 0.5, 0.25, 0.1),
    shapes=("full", "circle"),
    between=(1, 4, 16),
    warm_s=2.0,
    calm_s=20.0,
    interval_s=1.0,
    changes=120,
    timeout_s=120.0,
)
SOURCES, MOBILE_SOURCES, SHAPE_SOURCES = 16, 8, 4  # of each query, where something else is varied


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run measured. Latencies of batches are in ms."""

    changes: int
    completed: int
    deploying_s: float  # in which some query was being redeployed
    placing_s: float
    calm_ms: dict[int, float]
    changing_ms: dict[int, float]
    made: int
    lost: int

    def shown(self) -> dict[str, float]:
        return {
            "changes": self.changes,
            "completed": self.completed,
            "deployment, s": self.deploying_s,
            "of it placement, s": self.placing_s,
            **{f"calm p{p}, ms": self.calm_ms[p] for p in PERCENTILES},
            **{f"changing p{p}, ms": self.changing_ms[p] for p in PERCENTILES},
            "rows": self.made,
            "rows lost": self.lost,
        }


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


def measure(streets: Streets, way: str, sizes: Sizes, interval_s: float, changes: int) -> Run:
    """Let a network run calmly, then with changes, then calmly again, and then until all rows are there."""
    with built(streets, WAYS[way]) as world:
        clock = Clock(world)

        def run_until(at_us: float) -> None:
            def past() -> bool:
                clock.look()
                return world.now_us() >= at_us

            world.net.run_until(past, 10 * sizes.timeout_s)

        world.start()
        run_until(world.now_us() + sizes.warm_s * 1e6)
        world.take_latencies()
        run_until(world.now_us() + sizes.calm_s / 2 * 1e6)
        calm, placed_s, begun_us = world.take_latencies(), world.machine.placing_s, world.now_us()
        for n in range(changes):
            clock.began()
            world.move()
            run_until(begun_us + (n + 1) * interval_s * 1e6)
        world.net.run_until(clock.look, sizes.timeout_s)
        clock.stop()
        changing, placing_s = world.take_latencies(), world.machine.placing_s - placed_s
        run_until(world.now_us() + sizes.calm_s / 2 * 1e6)
        calm += world.take_latencies()
        world.stop()
        made = sum(world.made.values())
        world.net.run_until(lambda: world.delivered() >= made, sizes.timeout_s)
        return Run(
            changes=changes,
            completed=clock.completed,
            deploying_s=clock.deploying_s,
            placing_s=placing_s,
            calm_ms=_percentiles(calm),
            changing_ms=_percentiles(changing),
            made=made,
            lost=made - world.delivered(),
        )


def _percentiles(latencies_us: list[int]) -> dict[int, float]:
    found = np.percentile(latencies_us, PERCENTILES) / 1e3 if latencies_us else [float("nan")] * len(PERCENTILES)
    return dict(zip(PERCENTILES, map(float, found), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One point of a figure."""

    figure: str
    at: float | str
    streets: Streets
    interval_s: float
    ways: tuple[str, ...]


def variations(sizes: Sizes) -> Iterator[Variation]:
    """The points of all figures. The largest number of sources is where strategies are judged."""
    every = tuple(WAYS)
    some = every if sizes.all_ways else ("ours",)
    base = {"queries": sizes.queries, "edges": sizes.edges}
    for sources in sizes.sources:
        streets = Streets(**base, sources=sources)
        ways = every if sources == sizes.sources[-1] else some
        yield Variation(figure="sources", at=sources, streets=streets, interval_s=sizes.interval_s, ways=ways)
    for mobile in sizes.mobile:
        streets = Streets(**base, sources=max(mobile, min(MOBILE_SOURCES, sizes.sources[-1])), mobile=mobile)
        yield Variation(figure="mobile", at=mobile, streets=streets, interval_s=2 * sizes.interval_s, ways=some)
    for interval_s in sizes.intervals_s:
        streets = Streets(**base, sources=min(MOBILE_SOURCES, sizes.sources[-1]))
        yield Variation(figure="interval", at=interval_s, streets=streets, interval_s=interval_s, ways=some)
    small = {**base, "sources": SHAPE_SOURCES, "mobile": 2}
    for shape in sizes.shapes:
        streets = Streets(**small, shape=shape)
        yield Variation(figure="shape", at=shape, streets=streets, interval_s=2 * sizes.interval_s, ways=some)
    for between in sizes.between:
        streets = Streets(**small, between=between)
        yield Variation(figure="between", at=between, streets=streets, interval_s=2 * sizes.interval_s, ways=some)


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """All points of all figures, with the strategies that are compared at each."""
    points = list(variations(sizes))
    found: dict[tuple[str, float | str], dict[str, Run]] = {}
    with Progress(transient=True) as progress:
        task = progress.add_task("redeployments", total=sum(len(point.ways) for point in points))
        for point in points:
            lasts_s = sizes.interval_s * sizes.changes
            changes = max(2, round(lasts_s / point.interval_s))
            for way in point.ways:
                progress.update(task, description=f"{point.figure} {point.at}, {way}")
                runs = found.setdefault((point.figure, point.at), {})
                runs[way] = measure(point.streets, way, sizes, point.interval_s, changes)
                progress.advance(task)
    judged = found["sources", sizes.sources[-1]]
    ours, all_ours = judged["ours"], [runs["ours"] for runs in found.values()]
    checks = [
        check("deploy_vs_hcqd_16src", judged["HCQD"].deploying_s / ours.deploying_s, 10),
        check("deploy_vs_hsqd_16src", judged["HSQD"].deploying_s / ours.deploying_s, 10),
        check("p95_changing_vs_calm_stateless", ours.changing_ms[95] / ours.calm_ms[95], 1.1, at_least=False),
        check("changes_completed", sum(r.completed for r in all_ours) / sum(r.changes for r in all_ours), 1),
        check("rows_lost", sum(r.lost for runs in found.values() for r in runs.values()), 0, at_least=False),
    ]
    figures = {
        f"by_{figure}": {
            f"{at}, {way}": each.shown()
            for (name, at), runs in found.items()
            if name == figure
            for way, each in runs.items()
        }
        for figure in dict.fromkeys(point.figure for point in points)
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
            for what, value in (("deployment, s", each.deploying_s), ("p95, ms", each.changing_ms[95])):
                curves.setdefault(f"{what}, against {figure}", {}).setdefault(way, {})[float(at)] = value
    return curves
