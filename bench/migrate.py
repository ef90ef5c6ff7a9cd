"""How long it takes to move the state of a join to another node: Figures 11 and 12 of ISQD.

The state leaves an edge and goes over intermediates to another one while rows flow (`bench/chain`). Compared are:

- ours: pieces that every relay passes on at once; the new node takes rows from the beginning.
- ST, state transfer: every node on the way takes the whole state before it passes it on, and takes rows when the whole
  state is there. So results come between two hops as well, which the paper's ST does not do.
- SR, state recreation: the devices send all rows again, over as many intermediates. Best: no window closes meanwhile.
  Average and worst: half of the batches, or every batch, close a window, whose result is computed again.
- raw: the rows as they are, over the same links, with nothing to do at the end.

Pause is the longest time that a result took while the state was moving: from the moment when the batch was due that
closes the window until the result is at the sink. Whole is the time until the whole state is at the new node. Every
node has a core of its own, links carry 1 Gbit/s, and the CPU time is real.

While a large state moves, many results are due. A state that has moved before the next batch is due would hold none of
them up, and its pause would be that of a calm result. So it is moved several times, and each time the next batch is due
at another moment of the move. The longest pause counts, as with a large state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.progress import Progress

from bench.chain import GATEWAY, MOVED_S, NEW, OLD, SIDES, Chain, ChainSizes, built, pairs, plain
from bench.report import check
from rove.model.ids import NodeId, Origin

MB = 2**20
TWO_HOPS = 2  # intermediates, as in the paper's Figure 11
CALM_S = 1.0
DUE_AT = (0.4, 0.6, 0.8)  # the shares of a short move after which the next batch is due
TOO_LONG_MS = MOVED_S * 1e3
PAPER = {
    "state size, two intermediates": "ISQD 2.6 to 6.2 times faster than ST; SR-A and SR-W time out beyond 32 MB, SR-B "
    "beyond 128 MB, and is up to 50 times slower",
    "intermediates, 32 MB": "ISQD 2 to 5 times faster than ST, 112 to 290 times faster than SR-W; ST 397 ms to 3 s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The states that are moved, in MB, over two intermediates, and the intermediates over which 32 MB are moved."""

    window_bytes: int
    states_mb: tuple[int, ...]
    small_mb: int
    large_mb: int
    between: tuple[int, ...]
    between_mb: int
    recreated_mb: tuple[int, ...]


SMOKE = Sizes(window_bytes=64 * 1024, states_mb=(), small_mb=1, large_mb=4, between=(), between_mb=1, recreated_mb=(1,))
QUICK = Sizes(
    window_bytes=256 * 1024, states_mb=(), small_mb=1, large_mb=256, between=(), between_mb=32, recreated_mb=(16,)
)
FULL = Sizes(
    window_bytes=256 * 1024,
    states_mb=(16, 32, 64, 128, 512, 1024),
    small_mb=1,
    large_mb=256,
    between=(0, 1, 4, 8, 16),
    between_mb=32,
    recreated_mb=(16, 32, 64, 128, 256),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one move measured. Times are in ms; a move that took too long has the time after which it was given up."""

    pause_ms: float
    whole_ms: float
    wire_mb: float  # over the first link
    calm_ms: float = 0.0

    def shown(self) -> dict[str, float]:
        return {
            "pause, ms": self.pause_ms,
            "whole, ms": self.whole_ms,
            "wire, MB": self.wire_mb,
            "calm, ms": self.calm_ms,
        }


def chain_sizes(sizes: Sizes, state_mb: int, between: int) -> ChainSizes:
    windows = state_mb * MB // sizes.window_bytes
    return ChainSizes(windows=windows, window_bytes=sizes.window_bytes, between=between)


def moved(sizes: ChainSizes, hop_by_hop: bool = False) -> Run:
    """Move a state while rows flow, so that a result is due while it moves."""
    first = moved_once(sizes, hop_by_hop)
    if first.whole_ms >= sizes.every_s * 1e3:
        return first
    others = (moved_once(sizes, hop_by_hop, due_in_s=share * first.whole_ms / 1e3) for share in DUE_AT)
    return replace(first, pause_ms=max(first.pause_ms, *(each.pause_ms for each in others)))


def moved_once(sizes: ChainSizes, hop_by_hop: bool = False, due_in_s: float = 0.0) -> Run:
    """Move a state. The next batch is due so long after the move has begun."""
    with built(sizes, pairs(sizes.windows, "edge"), hop_by_hop) as chain:
        chain.fill()
        chain.start()
        chain.net.run_for(CALM_S + sizes.every_s - due_in_s)
        calm_us, begun_us = max(chain.latencies_us(0)), chain.now_us()
        chain.links.carried.clear()
        whole_us = chain.move()
        wire = _wire_mb(chain)
        chain.net.run_for(CALM_S)
        if whole_us is None:
            return Run(pause_ms=TOO_LONG_MS, whole_ms=TOO_LONG_MS, wire_mb=wire, calm_ms=calm_us / 1e3)
        pause_us = max(chain.latencies_us(begun_us - int(sizes.every_s * 1e6)))
        return Run(pause_ms=pause_us / 1e3, whole_ms=whole_us / 1e3, wire_mb=wire, calm_ms=calm_us / 1e3)


def recreated(sizes: ChainSizes, closing: float) -> Run:
    """Make a state again from all its rows. This share of the batches closes a window."""
    open_windows = sizes.windows - int(closing * sizes.windows)
    with built(sizes, pairs(open_windows, NEW)) as chain:
        begun_us = chain.replay()
        done = chain.net.run_until(lambda: chain.has_taken(NEW, sizes.windows - 1), MOVED_S)
        took_ms = (chain.now_us() - begun_us) / 1e3 if done else TOO_LONG_MS
        return Run(pause_ms=took_ms, whole_ms=took_ms, wire_mb=_wire_mb(chain))


def raw_mb_per_s(sizes: ChainSizes) -> float:
    """How fast rows go over the links if nothing is done with them."""
    with built(sizes, plain()) as chain:
        output = chain.net.worker(GATEWAY).worker.output
        begun_us = chain.replay()
        last = [Origin(side, NodeId(side)) for side in SIDES]
        chain.net.run_until(lambda: all(output.took("pairs", each, sizes.windows - 1) for each in last), MOVED_S)
        return _wire_mb(chain) / ((chain.now_us() - begun_us) / 1e6)


def _wire_mb(chain: Chain) -> float:
    first = NodeId("relay1") if chain.sizes.between else NEW
    return chain.links.carried[OLD, first] / MB


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """All points of both figures."""
    points = sorted({*sizes.states_mb, sizes.small_mb, sizes.large_mb})
    found: dict[tuple[str, float], dict[str, Run]] = {}
    with Progress(transient=True) as progress:
        task = progress.add_task(
            "states", total=2 * (len(points) + len(sizes.between)) + 3 * len(sizes.recreated_mb) + 1
        )

        def step(figure: str, at: int, way: str, result: Run) -> None:
            found.setdefault((figure, at), {})[way] = result
            progress.update(task, description=f"{figure} {at}, {way}", advance=1)

        for mb in points:
            chain = chain_sizes(sizes, mb, TWO_HOPS)
            step("size", mb, "ours", moved(chain))
            step("size", mb, "ST", moved(chain, hop_by_hop=True))
        for mb in sizes.recreated_mb:
            for way, closing in (("SR-B", 0.0), ("SR-A", 0.5), ("SR-W", 1.0)):
                step("size", mb, way, recreated(chain_sizes(sizes, mb, TWO_HOPS), closing))
        for between in sizes.between:
            chain = chain_sizes(sizes, sizes.between_mb, between)
            step("between", between, "ours", moved(chain))
            step("between", between, "ST", moved(chain, hop_by_hop=True))
        raw = raw_mb_per_s(chain_sizes(sizes, sizes.between_mb, TWO_HOPS))
    small, large = found["size", sizes.small_mb]["ours"], found["size", sizes.large_mb]["ours"]
    transferred = found["size", sizes.large_mb]["ST"]
    checks = [
        check("pause_256mb_vs_1mb", large.pause_ms / small.pause_ms, 1.5, at_least=False),
        check("pause_vs_st_two_hops", transferred.pause_ms / large.pause_ms, 20),
        check("whole_vs_st_two_hops", transferred.whole_ms / large.whole_ms, 2),
        check("vs_raw_transport", large.wire_mb / (large.whole_ms / 1e3) / raw, 0.6),
    ]
    figures = {
        f"by_{figure}": {
            f"{at}, {way}": each.shown()
            for (name, at), runs in sorted(found.items())
            if name == figure
            for way, each in runs.items()
        }
        for figure in dict.fromkeys(name for name, _ in found)
    }
    return {
        "bench": "migrate",
        "checks": checks,
        "figures": {**figures, "raw": {"MB/s": raw}, "curves": _curves(found)},
        "paper": PAPER,
    }


def _curves(found: dict[tuple[str, float], dict[str, Run]]) -> dict[str, dict[str, dict[float, float]]]:
    """Pause and whole time against what is varied."""
    curves: dict[str, dict[str, dict[float, float]]] = {}
    for (figure, at), runs in sorted(found.items()):
        for way, each in runs.items():
            for what, value in (("pause, ms", each.pause_ms), ("whole, ms", each.whole_ms)):
                curves.setdefault(f"{what}, against {figure}", {}).setdefault(way, {})[float(at)] = value
    return curves
