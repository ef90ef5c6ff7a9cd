"""Decides lateness at the origin, once, for each origin by itself.

Law: an origin's watermark is its greatest event time minus the delay, and never falls. A row older than its origin's
watermark before the batch is late, whatever other origins do. So lateness does not depend on interleaving. Late rows
are counted by the node that takes the other rows of the batch, once, however often this operator computes the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.data.operators.logic import NOTHING, MovesAtOnce, Output, late_rows, stepped
from rove.data.operators.panes import micros_of
from rove.model.batch import Batch, Header
from rove.model.clock import MICROS_MAX, MICROS_MIN
from rove.model.ids import Origin, read_origin
from rove.model.schema import BIGINT, STRING
from rove.model.state import Snapshot

_OPTIONS = pc.ScalarAggregateOptions(skip_nulls=True)
_MIN_MAX = pc.get_function("min_max")


@dataclass(frozen=True, slots=True)
class WatermarkConfig:
    column: str
    delay_us: int
    schema: pa.Schema
    replaces: bool = False

    def build(self) -> WatermarkLogic:
        return WatermarkLogic(self)


class WatermarkLogic(MovesAtOnce):
    """One min and max for each batch. Rows are compared one by one only if the oldest is late. O(origins) of state."""

    def __init__(self, config: WatermarkConfig) -> None:
        self._delay_us, self._replaces = config.delay_us, config.replaces
        self._index = config.schema.get_field_index(config.column)
        self._marks: dict[Origin, int] = {}

    def process(self, batch: Batch) -> Output:
        header = batch.header
        mark = self._marks.get(header.origin, MICROS_MIN)
        if batch.data is None:
            return Output((self._on_time(header, None, mark, None, None),))
        moments = batch.data.column(self._index)
        oldest, newest = extent(moments)
        if newest is None:
            return Output((self._on_time(header, batch.data, mark, None, None),))
        self._marks[header.origin] = after = max(mark, newest - self._delay_us)
        if oldest is None or oldest >= mark:
            return Output((self._on_time(header, batch.data, after, oldest, newest),))
        late = pc.fill_null(pc.less(micros_of(moments), pa.scalar(mark, BIGINT)), False)
        kept = batch.data.filter(pc.invert(late))
        outside = late_rows(header, batch.data, late)
        header = replace(header, born=header.born - outside.rows, belated=header.belated + outside.rows)
        return Output((self._on_time(header, kept, after, max(oldest, mark), newest),), (outside,))

    def mark(self, origin: Origin) -> int:
        """The watermark of an origin."""
        return self._marks.get(origin, MICROS_MIN)

    def begin_at(self, origin: Origin, mark: int) -> None:
        """An origin goes on with the watermark that it had on another node."""
        if mark > MICROS_MIN:
            self._marks[origin] = mark

    def watermark(self, time_us: int) -> Output:
        return NOTHING

    def snapshot(self) -> Snapshot:
        origins, marks = zip(*sorted(self._marks.items()), strict=True) if self._marks else ((), ())
        table = pa.table({"origin": pa.array(map(str, origins), STRING), "mark": pa.array(marks, BIGINT)})
        return Snapshot("watermark", tables={"marks": table})

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("watermark")
        marks = snapshot.tables["marks"]
        origins = map(read_origin, marks["origin"].to_pylist())
        self._marks = dict(zip(origins, marks["mark"].to_pylist(), strict=True))

    def _on_time(
        self, header: Header, data: pa.RecordBatch | None, mark: int, oldest: int | None, newest: int | None
    ) -> Batch:
        # The watermark of another column does not count, except for the end of the stream.
        other = self._replaces and header.watermark <= MICROS_MAX
        promise = mark if other else max(mark, header.watermark)
        return stepped(header, data, watermark=promise, event_min=oldest, event_max=newest)


def extent(moments: pa.Array) -> tuple[int | None, int | None]:
    """The oldest and newest instant of a timestamp column, in microseconds; None if it has none."""
    found = _MIN_MAX.call([micros_of(moments)], _OPTIONS)
    return found["min"].as_py(), found["max"].as_py()
