"""The sources of a device: rows generated from a seed, or read from a file.

Law: the text of a source determines what it produces, so a test can tell afterwards what should have arrived; only
the event time of generated rows begins now, unless the text says when. A source that is told to wait produces no rows,
and does not catch up later. A file on a node with a folder is read on after a restart (`places`).

    trains=generate:rows=50,rate=20,batches=200,seed=7
    trains=file:/data/x.parquet,rows=500,rate=10
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from rove.data.events import Produced
from rove.data.sources.positions import SourceAt
from rove.model.errors import RoveError, SetupError, nearest
from rove.model.ids import Origin, checked_name
from rove.model.schema import parse_schema, schema_text
from rove.runtime.adapters.files import replayed
from rove.runtime.adapters.generated import Maker, columns_made_up
from rove.runtime.clock import wall_us

log = logging.getLogger("rove")

BATCHES_A_ROUND = 16  # of one source, so that a fast source leaves time for messages
SILENCE_US = 500_000  # how often a silent source reports that time goes on
GATE_US = 50_000  # how often a source checks whether it may begin


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A source as its text describes it. `rate` is in batches a second; 0 means as fast as they are taken."""

    stream: str
    columns: str
    node: str
    file: str = ""  # if empty, rows are generated
    rows: int = 100
    rate: float = 10.0
    batches: int = 0  # 0 means no end, or the end of the file
    seed: int = 0
    start_us: int = 0  # the event time of the first row; 0 means the moment when it is generated
    step_us: int = 1_000  # event time from one row to the next
    start_after: float = 0.0  # seconds after the process has started
    when: str = ""  # the source begins when this file exists
    stays: int = 0  # if not 0, the source does not end after its last batch, like a silent sensor
    idle: float = 0.0  # event time is the present time: after this many silent seconds, the watermark goes on

    @property
    def origin(self) -> Origin:
        """The source, without the start of its process."""
        return Origin(self.stream, self.node)


_OPTIONS: dict[str, type[int] | type[float] | type[str]] = {
    "rows": int,
    "rate": float,
    "batches": int,
    "seed": int,
    "start_us": int,
    "step_us": int,
    "start_after": float,
    "when": str,
    "stays": int,
    "idle": float,
}


def stream_of(text: str) -> str:
    """The stream that the text of a producer begins with."""
    return checked_name(text.partition("=")[0].strip(), "a stream")


def read_spec(text: str, columns: str, node: str) -> SourceSpec:
    """A source from its text, such as `trains=generate:rows=50,rate=20`."""
    stream, _, how = text.partition("=")
    kind, _, rest = how.partition(":")
    if not stream.strip() or kind not in ("generate", "file"):
        raise SetupError(
            f"`{text}` is not a source; write stream=generate:rows=50,rate=20 or stream=file:/data/x.parquet,rows=500"
        )
    stream = stream_of(text)
    parts = [p.strip() for p in rest.split(",") if p.strip()]
    file = ""
    if kind == "file":
        if not parts or parts[0].partition("=")[0] in _OPTIONS:
            raise SetupError(f"source `{text}` names no file; write {stream}=file:/data/x.parquet")
        file = parts.pop(0)
        path, colon, option = file.rpartition(":")
        if colon and option.partition("=")[0] in _OPTIONS:
            raise SetupError(f"source `{text}`: options follow after a comma; write {stream}=file:{path},{option}")
    options: dict[str, Any] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if key not in _OPTIONS or not equals:
            raise SetupError(f"source `{text}` has no option `{key}`; {nearest(key, list(_OPTIONS))}")
        try:
            options[key] = _OPTIONS[key](value)
        except ValueError as error:
            raise SetupError(f"source `{text}`: {key} is a number, not `{value}`") from error
    if options.get("rows", 1) < 1 or options.get("rate", 0) < 0 or options.get("batches", 0) < 0:
        raise SetupError(f"source `{text}`: rows is at least 1, rate and batches at least 0")
    checked_name(node, "a node")
    columns = schema_text(parse_schema(columns))
    if not file:
        columns_made_up(parse_schema(columns))
    return SourceSpec(stream=stream, columns=columns, node=node, file=file, **options)


def generated(spec: SourceSpec, first: int = 0) -> Iterator[pa.RecordBatch]:
    """All batches that a source will produce, from number `first` on."""
    if spec.file:
        yield from replayed(spec.file, parse_schema(spec.columns), spec.rows, spec.batches, first)
        return
    schema = parse_schema(spec.columns)
    maker = Maker(schema, spec.rows, f"{spec.seed} {spec.origin}", spec.start_us or wall_us(), spec.step_us)
    for number in range(first, spec.batches) if spec.batches else count(first):
        yield maker.batch(number)


@dataclass(slots=True)
class Producer:
    """A running source: when its next batch is due, and whether it may produce it. One that goes on `at` a position
    waits until it is told to go on, and makes again at full speed what an earlier start has made."""

    spec: SourceSpec
    origin: Origin
    due_us: int
    at: SourceAt | None = None
    batches: Iterator[pa.RecordBatch] = field(init=False)
    begun: bool = False
    waits: bool = False
    ended: bool = False
    made: int = 0  # rows
    quiet_us: int = 0  # when it last produced rows or reported silence
    number: int = field(init=False)  # of the next batch

    def __post_init__(self) -> None:
        self.number = 0 if self.at is None else self.at.next
        self.waits = self.at is not None
        self.batches = generated(self.spec, self.number)
        self.due_us += round(self.spec.start_after * 1_000_000)

    def make(self, now: int) -> Iterator[Produced]:
        """The batches that are due, at most `BATCHES_A_ROUND`."""
        for _ in range(BATCHES_A_ROUND):
            if self.ended or self.waits or now < self.due_us or not self._may_begin(now):
                return
            data = self._next()
            if data is None and self.spec.stays:
                yield from self._silence(now)
                return
            self.ended = data is None
            self.quiet_us = now
            self.made += 0 if data is None else data.num_rows
            if self.ended:
                log.info("source %s has ended after %d rows of this start", self.spec.stream, self.made)
            yield Produced(self.origin, data, wall_us(), ended=self.ended)
            self.number += 1
            if self.spec.rate and (self.at is None or self.number >= self.at.reached):
                # More than a second late means that the source waited, or that the computer slept.
                self.due_us = max(self.due_us + round(1_000_000 / self.spec.rate), now - 1_000_000)

    def _silence(self, now: int) -> Iterator[Produced]:
        """Report silence, and after enough silence that event time goes on."""
        self.due_us = now + SILENCE_US
        idle_us = round(self.spec.idle * 1_000_000)
        if idle_us and now - self.quiet_us >= idle_us:
            yield Produced(self.origin, None, wall_us(), promise=wall_us() - idle_us)

    def _next(self) -> pa.RecordBatch | None:
        try:
            return next(self.batches, None)
        except RoveError as error:
            log.error("source %s ends here: %s", self.origin.shown, error)
            return None

    def _may_begin(self, now: int) -> bool:
        if not self.begun and self.spec.when and not os.path.exists(self.spec.when):
            self.due_us = now + GATE_US
            return False
        self.begun = True
        return True


class Producers:
    """The sources of one node. An origin's name includes the start of its process in which it began, because its
    numbers begin at 0 then. `at` are the positions of those that go on, by stream."""

    def __init__(
        self, specs: tuple[SourceSpec, ...], start: int, now: int, at: Mapping[str, SourceAt] | None = None
    ) -> None:
        at = at or {}
        made = [Producer(s, _named(s, at.get(s.stream), start), now, at.get(s.stream)) for s in specs]
        self.all = {producer.origin: producer for producer in made}

    def make(self, now: int) -> Iterator[Produced]:
        for producer in self.all.values():
            yield from producer.make(now)

    def hold(self, origin: Origin, waits: bool, now: int) -> None:
        """Make a source wait, or go on from now."""
        producer = self.all.get(origin)
        if producer is not None:
            producer.waits, producer.due_us = waits, max(producer.due_us, now)

    def due(self) -> int | None:
        """When the next batch is due; None if there is none."""
        return min((p.due_us for p in self.all.values() if not p.ended and not p.waits), default=None)


def _named(spec: SourceSpec, at: SourceAt | None, start: int) -> Origin:
    return replace(spec.origin, start=start) if at is None else at.origin
