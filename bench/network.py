"""Measures the network: a hop compared with a bare pyzmq loop, latency over one to five hops, and placement at scale.

A hop is everything that Rove does to a batch between two processes: take it from its source, encode it, number it, keep
it until it is acked, send it, check it, account for it and ack it. The bare loop sends the same bytes through a DEALER
and a ROUTER and does nothing else. Both run in turns, and the ratio is the median of those turns.

Rows reach the log when a device has made them, an edge has passed them on, and a gateway has written and synced them
and said so. The device's batches are made beforehand, so that this measures the network and not the source.

A latency is from the moment a source has made a batch of 100 rows until the last node has taken it, at 1,000 batches a
second; each hop is a process of its own. The better of two rounds counts.

The topology of 43,602 nodes is the size of the largest one in the literature we compare with; a query reads 16 devices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.progress import Progress

from bench.cities import city, deployed, line, request, stages
from bench.loopback import bare_seconds, hop_seconds, into_log, latencies_us, made_up_us
from bench.report import check
from rove.control.placement import Load, bottom_up

KIB = 1_024
BATCH_BYTES = {"64k": 64 * KIB, "256k": 256 * KIB, "1m": 1_024 * KIB}
SOURCES = 16
RATE = 1_000
HOPS = (1, 3, 5)
LOG_BATCH_ROWS = (100, 1_000, 8_192)
LOG_BATCHES_MAX = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How much is measured, and how often."""

    batches: tuple[str, ...]  # keys of BATCH_BYTES
    hop_bytes: int  # bytes over one hop in one round
    hop_rounds: int
    latency_s: float
    log_rows: int  # rows into the log in one round
    nodes: int  # nodes of the topology
    queries: int
    cold_rounds: int  # placements in a topology that has just changed
    most_queries: int  # the most queries in the curves


SMOKE = Sizes(
    batches=("64k",),
    hop_bytes=4 * KIB * KIB,
    hop_rounds=1,
    latency_s=0.1,
    log_rows=4_000,
    nodes=1_000,
    queries=10,
    cold_rounds=1,
    most_queries=10,
)
QUICK = Sizes(
    batches=("64k",),
    hop_bytes=256 * KIB * KIB,
    hop_rounds=3,
    latency_s=1.0,
    log_rows=1_000_000,
    nodes=43_602,
    queries=1_000,
    cold_rounds=2,
    most_queries=100,
)
FULL = Sizes(
    batches=("64k", "256k", "1m"),
    hop_bytes=256 * KIB * KIB,
    hop_rounds=9,
    latency_s=5.0,
    log_rows=4_000_000,
    nodes=43_602,
    queries=1_000,
    cold_rounds=5,
    most_queries=1_000,
)


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """All figures, with progress on the terminal's error stream."""
    with Progress(transient=True) as progress:
        steps = progress.add_task("network", total=len(HOPS) + 2 * len(sizes.batches) + 2)

        def step(what: str) -> None:
            progress.update(steps, description=what, advance=1)

        hops = hop_figures(sizes, step)
        latency = latency_figures(sizes, step)
        log = log_figures(sizes)
        step("into the log")
        placement, curves = placement_figures(sizes)
        step("placement")
    checks = [
        check("hop_vs_pyzmq_64k", hops["64k"]["ratio"], 0.6),
        check("hop_vs_pyzmq_64k_curve", hops["64k with keys"]["ratio"], 0.6),
        check("hop1_p50_ms", latency["1 hop"]["p50_ms"], 1, at_least=False),
        check("hop5_p50_ms", latency["5 hops"]["p50_ms"], 5, at_least=False),
        check("place_43602_ms", placement["one query, ms"], 50, at_least=False),
        check("place_1000_queries_s", placement["1,000 queries, s"], 10, at_least=False),
    ]
    curves["p50 latency, ms, against hops"] = {
        "1,000 batches/s": dict(zip(HOPS, (row["p50_ms"] for row in latency.values()), strict=True))
    }
    figures = {"hop": hops, "latency": latency, "into_the_log": log, "placement": placement, "curves": curves}
    return {"bench": "network", "checks": checks, "figures": figures, "paper": {}}


def hop_figures(sizes: Sizes, step: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """By size and with keys or without: both rates, and the median of the ratios taken turn by turn."""
    found: dict[str, dict[str, float]] = {}
    for keyed in (False, True):
        for name in sizes.batches:
            size = BATCH_BYTES[name]
            count = sizes.hop_bytes // size // (2 if keyed else 1)
            ours, bare = [], []
            for _ in range(sizes.hop_rounds):
                bare.append(bare_seconds(size, count, keyed))
                ours.append(hop_seconds(size, count, keyed))
            found[name + (" with keys" if keyed else "")] = {
                "ratio": median(b / o for b, o in zip(bare, ours, strict=True)),
                "rove MB/s": size * count / min(ours) / 1e6,
                "pyzmq MB/s": size * count / min(bare) / 1e6,
                "rove µs": min(ours) / count * 1e6,
                "pyzmq µs": min(bare) / count * 1e6,
            }
            step(f"one hop, {name}")
    return found


def latency_figures(sizes: Sizes, step: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Over one, three and five hops."""
    found: dict[str, dict[str, float]] = {}
    for hops in HOPS:
        # Six processes share the cores of this machine with other work, so the better round counts.
        rounds = latencies_us(hops, RATE, sizes.latency_s, rounds=2)
        micros = min((sorted(each) for each in rounds), key=lambda each: each[len(each) // 2])
        found[f"{hops} hop{'s' if hops > 1 else ''}"] = {
            "p50_ms": micros[len(micros) // 2] / 1e3,
            "p95_ms": micros[len(micros) * 95 // 100] / 1e3,
            "p99_ms": micros[len(micros) * 99 // 100] / 1e3,
        }
        step(f"latency over {hops} hops")
    return found


def log_figures(sizes: Sizes) -> dict[str, dict[str, float]]:
    """Rows a second from a device through an edge into the log, by rows of a batch; and the share of the device's CPU
    that generating them would take."""
    found: dict[str, dict[str, float]] = {}
    for rows in LOG_BATCH_ROWS:
        count = max(1, min(sizes.log_rows // rows, LOG_BATCHES_MAX))
        logged, made_us = into_log(rows, count), made_up_us(rows, count)
        found[f"{rows:,} rows a batch"] = {
            "rows/s": logged.rows_a_second,
            "batches/s": logged.rows_a_second / rows,
            "device µs": logged.device_us,
            "generate: µs": made_us,
            "generate: share": made_us / (made_us + logged.device_us),
        }
    return found


def placement_figures(sizes: Sizes) -> tuple[dict[str, Any], dict[str, dict[str, dict[int, float]]]]:
    """The time to place one query in a topology that has just changed, to place a thousand queries, and how it
    grows."""
    plan = stages()
    topology, devices = city(sizes.nodes)
    first = []
    for n in range(sizes.cold_rounds):
        cold, _ = (topology, devices) if n == 0 else city(sizes.nodes)
        first.append(timed(lambda c=cold, n=n: bottom_up(request(plan, devices, n, SOURCES), c, Load())))
    load = Load()
    start = time.perf_counter()
    for n in range(sizes.queries):
        load.add(bottom_up(request(plan, devices, n, SOURCES), topology, load))
    thousand_s = time.perf_counter() - start
    asked = request(plan, devices, 0, SOURCES)
    placed = bottom_up(asked, topology, Load())
    figures = {
        "one query, ms": median(first) * 1e3,
        "1,000 queries, s": thousand_s,
        "its fragments, ms": timed(lambda: deployed(asked, placed)) * 1e3,
        "every device of the topology, ms": timed(
            lambda: bottom_up(request(plan, devices, 0, sizes.nodes), topology, Load())
        )
        * 1e3,
    }
    lengths = (2, 5, 10, 20, 50)
    counts = [n for n in (1, 10, 100, 1_000) if n <= sizes.most_queries]
    cities = {n: city(n) for n in (100, 1_000, 10_000) if n < sizes.nodes} | {sizes.nodes: (topology, devices)}
    curves = {
        "ms a query, against nodes": {"16 devices": {n: _one_ms(plan, *found) for n, found in cities.items()}},
        "ms a query, against hops": {"1 device": {n: _one_ms(plan, *line(n)) for n in lengths}},
        "ms in all, against queries": {
            "16 devices each": {
                n: 1e3 * timed(lambda n=n: [_place(plan, topology, devices, q) for q in range(n)]) for n in counts
            }
        },
        "ms a query, against its devices": {
            f"{sizes.nodes:,} nodes": {
                n: timed(lambda n=n: bottom_up(request(plan, devices, 0, n), topology, Load())) * 1e3 for n in counts
            }
        },
    }
    return figures, curves


def _place(plan: Any, topology: Any, devices: Any, query: int) -> Any:
    return bottom_up(request(plan, devices, query, SOURCES), topology, Load())


def _one_ms(plan: Any, topology: Any, devices: Any) -> float:
    """A query in a topology whose routes are known; the best of five."""
    asked = request(plan, devices, 0, SOURCES)
    bottom_up(asked, topology, Load())
    return min(timed(lambda: bottom_up(asked, topology, Load())) for _ in range(5)) * 1e3


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
