"""Measures what a device loses while it is away, with the two queries, the rates and the 50 MB of NebulaStream-MSS,
Figures 5 and 7.

The device is a worker as in production, on a route where nobody answers. Time is virtual, so a minute away takes only
as long as its work. Each query gets one batch a second, as in the paper. Query 1 keeps the rows of football sensors
with vx > 0. Query 2 passes on random numbers, which cannot be compressed. Loss is the bytes evicted over the bytes that
came out of the operators. Vanilla NebulaStream keeps nothing; here that is a device without room. With a disk, real
files are written and synced, and the written bytes are compared with the bytes that came out.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from rich.progress import Progress

import rove
from bench import football
from bench.report import check
from rove.data.events import DiskWork, Event, OnDisk, Pack, Produced
from rove.data.log.segments.commands import Write
from rove.data.settings import WorkerSettings
from rove.data.store.packing import Packer, pack
from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Fragment, Orders, Peer, plan_digest
from rove.plan import codec
from rove.plan.operators import Operator
from rove.plan.stages import Stages
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.network.bell import Bell

Codec = Literal["zstd", "lz4", "off"]
MB = 1_000_000
MEMORY_BYTES = 50 * MB
RATE_BYTES, RATE_BYTES_2 = 3_330_000, 488_000
AWAY_S, AWAY_S_MAX = 30, 60
MADE_S = 5  # seconds of rows that are made and then repeated
SAMPLE_ROWS = 2_067  # real rows, which take 20.9 bytes each when packed
SAMPLE_ROW_BYTES = 20.9
SECOND_US = 1_000_000
EDGE = NodeId("edge")
DISK_BYTES = 200 * MB


class Sizes(NamedTuple):
    """The buffers that are compared, and the factor by which rates and room are smaller than in the paper."""

    buffers_mb: tuple[int, ...]
    scale: int = 1


SMOKE = Sizes(buffers_mb=(50,), scale=100)
QUICK = Sizes(buffers_mb=(25, 50))
FULL = Sizes(buffers_mb=(25, 50, 75, 100, 125))


class Way(NamedTuple):
    """How a device handles rows that it cannot send."""

    evict: str
    compress: Codec
    memory_bytes: int = MEMORY_BYTES
    disk_bytes: int = 0

    def smaller(self, scale: int) -> Way:
        return self._replace(memory_bytes=self.memory_bytes // scale, disk_bytes=self.disk_bytes // scale)


WAYS = {
    "drop_all": Way("fifo", "off", memory_bytes=0),
    "fifo": Way("fifo", "off"),
    "query_aware": Way("query_aware", "off"),
    "lz4": Way("query_aware", "lz4"),
    "compressed": Way("query_aware", "zstd"),
    "with disk": Way("query_aware", "zstd", disk_bytes=DISK_BYTES),
}
PAPER = {"query_aware_30s": 0.37, "full_after_s": 15}  # "buffering reduces data loss by 63% over 30 seconds"


@dataclass(frozen=True)
class Query:
    """One of the two queries: its plan, and its source's batch for each second."""

    name: str
    columns: str
    plan: Operator
    seconds: list[pa.RecordBatch]
    row_bytes: float  # bytes out for each row in

    @property
    def origin(self) -> Origin:
        return Origin(self.name, "device")

    def stages(self) -> Stages:
        return Stages.of({"out": self.plan})

    def fragment(self) -> Fragment:
        """The whole query on the device. Its output goes to the edge."""
        stages = self.stages()
        return Fragment(
            query=QueryId(self.name),
            version=Version(1),
            plan=plan_digest(codec.encode(stages)),
            runs=tuple(Stage(n) for n in range(1, len(stages.operators))),
            makes={},
            waits={},
            next=EDGE,
            sinks={},
            feeds=(self.origin,),
        )


def queries(scale: int) -> tuple[Query, Query]:
    session = rove.Session.local()
    numbers = np.random.default_rng(2)
    per_second, per_second_2 = RATE_BYTES // football.ROW_BYTES // scale, RATE_BYTES_2 // 8 // scale
    sensed = [football.rows(per_second, seed) for seed in range(MADE_S)]
    by_chance = [pa.record_batch({"n": numbers.integers(-(2**63), 2**63, per_second_2)}) for _ in range(MADE_S)]
    match = session.stream("match", schema=football.COLUMNS).where("vx > 0")
    drawn = session.stream("drawn", schema="n bigint")
    return (
        Query("match", football.COLUMNS, match.plan, sensed, football.ROW_BYTES * football.selected(sensed)),
        Query("drawn", "n bigint", drawn.plan, by_chance, 8),
    )


class Away:
    """A device that is away."""

    def __init__(self, made: tuple[Query, ...], way: Way, shelf: DiskShelf | None = None) -> None:
        settings = WorkerSettings(
            node=NodeId("device"),
            kind="device",
            parents=(EDGE,),
            memory_bytes=way.memory_bytes,
            disk_bytes=way.disk_bytes,
            evict=way.evict,
            compress=way.compress,
            report_us=10**15,
        )
        self.worker, self._queries, self._shelf = Worker(settings, 1, shelf is not None), made, shelf
        self.written_bytes = self.made_bytes = 0.0
        self._packer = Packer(way.compress)
        self._now = self._packed_rows = 0
        self._packing_s = 0.0
        self._row_bytes = {query.name: query.row_bytes for query in made}
        for query in made:
            self.worker.add_source(query.name, query.origin, query.columns)
        parts, peers = tuple(query.fragment() for query in made), (Peer(node=EDGE, address="nowhere"),)
        plans = {plan_digest(plan): plan for query in made for plan in (codec.encode(query.stages()),)}
        self._handle(Arrived(COORDINATOR, Orders(PROTOCOL, parts, (), peers, plans=plans)))

    def second(self) -> None:
        """Run one more second: one batch for each query, then the timers."""
        number = self._now // SECOND_US
        self._now += SECOND_US
        for query in self._queries:
            rows = query.seconds[number % MADE_S]
            self.made_bytes += query.row_bytes * rows.num_rows
            self._handle(Produced(query.origin, rows, self._now))
        self._handle(Tick())
        if self._shelf is not None:
            self._shelf.settle()
            for done in list(self._shelf.done()):
                self._handle(done)

    def _handle(self, event: Event) -> None:
        events = deque([event])
        while events:
            for command in self.worker.handle(events.popleft(), self._now):
                if isinstance(command, OnDisk):
                    writes = (part for c in command.group.commands if isinstance(c, Write) for part in c.parts)
                    self.written_bytes += sum(map(len, writes))
                if isinstance(command, DiskWork) and self._shelf is not None:
                    self._shelf.ask(command)
                if isinstance(command, Pack):
                    begun = time.process_time()
                    events.append(self._packer.answer(command))
                    self._packing_s += time.process_time() - begun
                    self._packed_rows += pa.ipc.read_record_batch(
                        pa.py_buffer(command.payload), command.schema
                    ).num_rows

    @property
    def packing_us_a_row(self) -> float:
        return self._packing_s * 1e6 / self._packed_rows if self._packed_rows else 0.0

    @property
    def bytes_a_row(self) -> float:
        """The bytes of Query 1's kept rows."""
        kept = [e for e in self.worker.store if e.header.query == "match" and e.payload is not None]
        return sum(e.bytes for e in kept) / max(1, sum(e.header.rows for e in kept))

    @property
    def loss(self) -> float:
        """The share of bytes that were evicted."""
        evicted = kept = 0.0
        for entry in self.worker.store:
            evicted += entry.header.evicted * self._row_bytes[entry.header.query]
            kept += entry.header.born * self._row_bytes[entry.header.query]
        return evicted / (evicted + kept) if evicted else 0.0


def run(sizes: Sizes, data: Path | None = None) -> dict[str, Any]:
    """Measure loss by the seconds away and by the size of the buffer."""
    made = queries(sizes.scale)
    curves: dict[str, dict[int, float]] = {}
    by_mb: dict[str, dict[int, float]] = {}
    longest, cost = 0, {}
    with Progress(transient=True) as progress:
        for name, way in progress.track(WAYS.items(), description="devices away"):
            folder = tempfile.TemporaryDirectory()
            shelf = DiskShelf(folder.name, Bell()) if way.disk_bytes else None
            device = Away(made, way.smaller(sizes.scale), shelf)
            curves[name] = {0: 0.0}
            for second in range(1, AWAY_S_MAX + 1):
                device.second()
                longest = second if name == "compressed" and not device.loss else longest
                if second % 5 == 0:
                    curves[name][second] = device.loss
            cost[name] = {"packing_us_a_row": device.packing_us_a_row, "bytes_a_row": device.bytes_a_row}
            if shelf is not None:
                cost[name]["bytes_written_a_byte"] = device.written_bytes / device.made_bytes
                shelf.close()
            elif way.memory_bytes:
                ways = {mb: way._replace(memory_bytes=mb * MB).smaller(sizes.scale) for mb in sizes.buffers_mb}
                by_mb[name] = {mb: _loss(made, smaller) for mb, smaller in ways.items()}
            folder.cleanup()
    entropy = _entropy(data)
    checks = [
        check("drop_all_30s", curves["drop_all"][AWAY_S], None),
        check("fifo_30s", curves["fifo"][AWAY_S], None),
        check("query_aware_30s", curves["query_aware"][AWAY_S], 0.4, at_least=False),
        check("compressed_30s", curves["compressed"][AWAY_S], 0.0, at_least=False),
        check("longest_s_without_loss", longest, AWAY_S),
        check("with_disk_60s", curves["with disk"][AWAY_S_MAX], 0.0, at_least=False),
        check("generated_vs_sample_bytes", entropy["generated"] / entropy["sample"], 1.0),
    ]
    figures = {
        "curves": {"loss by seconds away": curves, "loss after 30 s by MB": by_mb},
        "cost": cost,
        "packed_bytes_a_row": entropy,
    }
    return {"bench": "loss", "checks": checks, "figures": figures, "paper": PAPER}


def _loss(made: tuple[Query, ...], way: Way) -> float:
    """The loss of a device that is away for 30 seconds."""
    device = Away(made, way)
    for _ in range(AWAY_S):
        device.second()
    return device.loss


def _entropy(data: Path | None) -> dict[str, float]:
    """The packed bytes of generated and of real rows, for each row. Without real rows, the values measured earlier."""
    real = football.sample(data)
    made = football.rows(SAMPLE_ROWS)
    return {
        "generated": len(pack(made, 0)) / made.num_rows,
        "sample": len(pack(real, 0)) / real.num_rows if real is not None else SAMPLE_ROW_BYTES,
    }
