"""The streams and queries of the soak, and what their rows must be.

Law: a row's event time names it. It tells the device, the stream, the start of the device and the number of the row, so
every row in a log can be compared with the row that its source made, and no two rows have the same event time.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest

import pyarrow as pa

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.model.schema import parse_schema
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize
from rove.runtime.adapters.generated import Maker
from rove.runtime.adapters.sources import SourceSpec, read_spec

STREAMS = {"readings": "ts timestamp, level int, value int", "events": "ts timestamp, level int, weight int"}
ROWS, RATE = 5, 1.0  # rows in a batch, batches a second
SLOTS = 64  # the event time of a source modulo SLOTS is its slot
STEP_US = 200_000  # from row to row: a multiple of SLOTS, and as much as the clock goes on
WINDOW_US = 2_000_000
KEPT = (
    "plain",
    "windows",
    "edged",
    "joined",
    "counted",
)  # their files at the gateway are not damaged, so they must be complete
HURT = "hurt_plain", "hurt_windows"  # their files at the gateway are damaged; what that costs must be named


WINDOWS = {"windows": "readings", "hurt_windows": "readings", "edged": "events"}  # by query, what it counts


def plans() -> dict[str, Operator]:
    """All queries."""
    session = rove.Session.local()
    raw = session.stream("readings", schema=STREAMS["readings"])
    readings = raw.withWatermark("ts", "2 seconds")
    events = session.stream("events", schema=STREAMS["events"]).withWatermark("ts", "2 seconds")
    plain = raw.selectExpr("ts", "level", "value * 2 AS twice")
    span = F.window("ts", "2 seconds")
    left = readings.select(span.alias("w"), "level", F.col("ts").alias("l"))
    right = events.select(span.alias("w"), "level", F.col("ts").alias("r"))
    found = {
        "plain": plain,
        "windows": _windows(readings, "device", "value"),  # partial results on the devices
        "edged": _windows(events, "edge", "weight"),  # on edges, which a device leaves and comes back to
        "joined": left.join(right, ["w", "level"]).at("gateway"),
        "counted": readings.select("ts", "level").scan(F.count("*").alias("n"), by="level").at("gateway"),
        "hurt_plain": plain,
        "hurt_windows": _windows(readings, "device", "value"),
    }
    return {query: optimize(stream.plan) for query, stream in found.items()}


def _windows(stream: Stream, where: str, summed: str) -> Stream:
    grouped = stream.at(where).groupBy(F.window("ts", "2 seconds"), "level")
    return grouped.agg(F.count("*").alias("n"), F.sum(summed).alias("total")).at("gateway")


@dataclass(frozen=True, slots=True)
class Made:
    """One row as its source made it."""

    stream: str
    device: str
    begun_us: int  # the event time of the first row of this start
    number: int  # of the row, in this start
    level: int
    value: int  # or weight


@dataclass(slots=True)
class Origins:
    """All sources of all starts of all devices."""

    devices: tuple[str, ...]
    seed: int
    begun: dict[int, list[SourceSpec]] = field(default_factory=dict)  # by slot, in order

    def begin(self, device: str, streams: tuple[str, ...], seconds: float, when: str) -> list[str]:
        """The texts of a device's sources for a start that produces for so many seconds."""
        texts = []
        for stream in streams:
            slot = 2 * self.devices.index(device) + list(STREAMS).index(stream)
            first = time.time_ns() // 1_000 // SLOTS * SLOTS + slot
            text = (
                f"{stream}=generate:rows={ROWS},rate={RATE},batches={max(1, round(seconds * RATE))},seed={self.seed},"
                f"start_us={first},step_us={STEP_US},when={when}"
            )
            self.begun.setdefault(slot, []).append(read_spec(text, STREAMS[stream], device))
            texts.append(text)
        return texts

    def made(self, ts_us: int) -> Made | None:
        """The row with this event time; None if no source makes it."""
        specs = self.begun.get(ts_us % SLOTS, [])
        at = bisect_right([spec.start_us for spec in specs], ts_us) - 1
        if at < 0:
            return None
        spec = specs[at]
        number, rest = divmod(ts_us - spec.start_us, STEP_US)
        if rest or number >= spec.batches * ROWS:
            return None
        batch = _batch(spec, number // ROWS)
        level, value = (batch.column(n)[number % ROWS].as_py() for n in (1, 2))
        return Made(spec.stream, spec.node, spec.start_us, number, level, value)

    def all(self) -> Iterator[tuple[str, int, int]]:
        """Stream, event time and level of every row that a source may have made."""
        for specs in self.begun.values():
            for spec, then in zip_longest(specs, specs[1:]):
                seconds = spec.batches / RATE if then is None else (then.start_us - spec.start_us) / 1e6
                for number in range(min(spec.batches, round(seconds * RATE) + 1)):
                    batch = _batch(spec, number)
                    moments, levels = batch.column(0).cast(pa.int64()).to_pylist(), batch.column(1).to_pylist()
                    yield from ((spec.stream, ts, level) for ts, level in zip(moments, levels, strict=True))


@cache
def _maker(spec: SourceSpec) -> Maker:
    schema = parse_schema(spec.columns)
    return Maker(schema, spec.rows, f"{spec.seed} {spec.origin}", spec.start_us, spec.step_us)


@cache
def _batch(spec: SourceSpec, number: int) -> pa.RecordBatch:
    return _maker(spec).batch(number)
