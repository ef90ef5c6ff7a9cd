"""What the queries of `rove bench redeploy` do with their rows: a filter and a map, or a join of two streams.

Law: a workload knows by itself which results have to arrive, and when each of them could be there at the earliest. So
rows that are lost, or come twice, are found without the accounts of the nodes.

Where a join runs is what the product decides without a hint: on a node that no route of a moving device can avoid
(docs/decisions/0006-moves.md). In a tree that is the gateway, in a circle and a full graph the one edge that leads out.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa

import rove
from bench import football
from rove.model.batch import Header
from rove.model.schema import parse_schema
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

PAIRED = "ts timestamp, key bigint, v double"
PAIRED_SCHEMA = parse_schema(PAIRED)
SIDES = ("left", "right")


class Workload(Protocol):
    """The streams of each query, their rows, and what becomes of them. Devices are numbered within their query."""

    columns: str
    batch_us: int  # from one batch of a device to its next
    filled_us: int  # until as many windows are open as always

    def stream(self, query: int, device: int) -> str:
        """The stream that a device makes."""

    def plan(self, query: int) -> Stages: ...

    def batch(self, query: int, device: int, number: int, due_us: int) -> pa.RecordBatch:
        """The batch of a device that is due now. Batches are numbered from 0."""

    def last(self, number: int) -> pa.RecordBatch | None:
        """A batch after all others, without which their results would not come. It has no result itself."""

    def arrived(self, header: Header, now_us: int) -> int | None:
        """A batch of results is at the sink. Returns how long it took; None if nobody measures that."""

    def missing(self) -> int:
        """The rows of results that have not arrived. Negative if more have arrived than were to come."""

    @property
    def made(self) -> int:
        """The rows of results that were to come."""


class Filtered:
    """A filter and a map, as in the paper's stateless queries. The time of a batch begins when it is due at its
    source."""

    columns = football.COLUMNS
    filled_us = 0

    def __init__(self, batch_rows: int = 50, batch_s: float = 0.5) -> None:
        self.batch_us = int(batch_s * 1e6)
        self._batches = [football.rows(batch_rows, seed) for seed in range(5)]
        self._kept = [int(np.count_nonzero(batch["vx"].to_numpy() > 0)) for batch in self._batches]
        self._made = self._arrived = 0

    def stream(self, query: int, device: int) -> str:
        return f"s{query}"

    def plan(self, query: int) -> Stages:
        return _filtered(self.stream(query, 0))

    def batch(self, query: int, device: int, number: int, due_us: int) -> pa.RecordBatch:
        kind = number % len(self._batches)
        self._made += self._kept[kind]
        return self._batches[kind]

    def last(self, number: int) -> None:
        return None

    def arrived(self, header: Header, now_us: int) -> int:
        self._arrived += header.rows
        return now_us - header.produced_at

    def missing(self) -> int:
        return self._made - self._arrived

    @property
    def made(self) -> int:
        return self._made


class Joined:
    """A filter and a map on each of two streams, and a join of both within windows of event time.

    Devices with an even number make the left stream of their query, the others the right one. Devices 2n and 2n + 1
    have the same keys at the same event times, so every row has one match. A window is as long as a batch, and stays
    open for `late` batches more. The devices send one after the other, and the window closes when the batch that closes
    it has come from the last of them. The time of a result begins when that batch is due, so it holds no time in which
    a window has to be open.
    """

    columns = PAIRED

    def __init__(self, batch_rows: int = 50, batch_s: float = 0.5, late: int = 0, at: str = "") -> None:
        self.batch_us, self._rows, self._late, self._at = int(batch_s * 1e6), batch_rows, late, at
        self.filled_us = (late + 2) * self.batch_us
        self._begin_us: int | None = None  # the first event time, the beginning of a window
        self._closes_us: dict[tuple[int, int], int] = {}  # by query and end of a window
        self._made: dict[tuple[int, int], int] = {}  # batches by query and device
        self._arrived = 0
        self._offsets = np.arange(batch_rows) * self.batch_us // batch_rows
        self._values = pa.array(np.random.default_rng(1).uniform(0.1, 1, batch_rows))

    def stream(self, query: int, device: int) -> str:
        return f"{SIDES[device % 2]}{query}"

    def plan(self, query: int) -> Stages:
        return _joined(query, self.batch_us, self._late, self._at)

    def batch(self, query: int, device: int, number: int, due_us: int) -> pa.RecordBatch:
        if self._begin_us is None:
            self._begin_us = (due_us // self.batch_us - 1) * self.batch_us
        closes = query, self._begin_us + (number - self._late) * self.batch_us
        self._closes_us[closes] = max(due_us, self._closes_us.get(closes, 0))
        self._made[query, device] = number + 1
        return self._rows_of(device, number)

    def last(self, number: int) -> pa.RecordBatch:
        return self._rows_of(0, number + self._late + 2).slice(0, 1)

    def arrived(self, header: Header, now_us: int) -> int | None:
        self._arrived += header.rows
        due_us = self._closes_us.get((int(header.query[1:]), header.watermark))
        return None if due_us is None else now_us - due_us

    def missing(self) -> int:
        return self.made - self._arrived

    @property
    def made(self) -> int:
        pairs = ((query, device) for query, device in self._made if device % 2 == 0)
        both = (min(self._made[q, n], self._made.get((q, n + 1), 0)) for q, n in pairs)
        return self._rows * sum(both)

    def _rows_of(self, device: int, number: int) -> pa.RecordBatch:
        times = (self._begin_us or 0) + number * self.batch_us + self._offsets
        keys = np.arange(self._rows) + device // 2 * self._rows
        columns = [pa.array(times, pa.timestamp("us", "UTC")), pa.array(keys), self._values]
        return pa.RecordBatch.from_arrays(columns, schema=PAIRED_SCHEMA)


@cache
def _filtered(stream: str) -> Stages:
    rows = rove.Session.local().stream(stream, schema=football.COLUMNS)
    return Stages.of({"out": optimize(rows.where("vx > 0").selectExpr("sid", "ts", "v * 2 AS v2").plan)})


@cache
def _joined(query: int, window_us: int, late: int, at: str) -> Stages:
    session = rove.Session.local()
    left, right = (
        session.stream(f"{side}{query}", schema=PAIRED)
        .withWatermark("ts", f"{late * window_us} microseconds")
        .where("v > 0")
        .selectExpr(f"window(ts, '{window_us} microseconds') AS w", "key", f"v * 2 AS v_{side}")
        for side in SIDES
    )
    pairs = left.join(right, on=["w", "key"])
    return Stages.of({"out": optimize((pairs.at(at) if at else pairs).plan)})
