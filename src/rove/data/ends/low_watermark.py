"""The low watermark of one output: the lowest watermark of all origins that are waited for, also absent ones.

Law: it never falls, and never jumps past every event time. When all origins have ended, it advances just far enough to
close the windows that the newest row opened. So an origin that joins later with newer rows is in time.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rove.data.log.segments.ledger import Ledger
from rove.model.batch import Batch, Header
from rove.model.clock import END, MICROS_MAX, MICROS_MIN
from rove.model.ids import Origin
from rove.model.messages import Sink
from rove.model.schema import BIGINT

PAST_IT_US = 2_000  # Spark counts event time in milliseconds, and stays one millisecond behind us


class LowWatermark:
    """Kept beside a partition, whose ledger knows the watermark of every origin. An update costs O(1), or O(origins) if
    it comes from the slowest origin."""

    def __init__(self, sink: Sink, ledger: Ledger) -> None:
        self._sink, self._ledger = sink, ledger
        self._marks: dict[Origin, int] = {}
        self._lowest = MICROS_MIN
        self.low = ledger.low

    def wait(self, origins: Iterable[Origin]) -> None:
        """Wait for exactly these origins from now on."""
        self._marks = {origin: self._ledger.marks.get(origin, MICROS_MIN) for origin in origins}
        self._settle()

    def heard(self, origin: Origin) -> None:
        """A batch of an origin was taken. Its watermark counts only once all earlier batches are here."""
        before, mark = self._marks.get(origin), self._ledger.marks.get(origin, MICROS_MIN)
        if before is not None and mark > before:
            self._marks[origin] = mark
            if before <= self._lowest:
                self._settle()

    def late(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Which rows are late; None if none is."""
        below = self.low - self._sink.grain_us
        micros = rows.column(self._sink.time).cast(BIGINT)
        late = pc.fill_null(pc.less(micros, pa.scalar(below, BIGINT)), False)
        return late if late.true_count else None

    def may_be_late(self, header: Header) -> bool:
        """Whether the rows must be read to tell which are late."""
        if not self._sink.time or not header.rows:
            return False
        return header.event_min is None or header.event_min < self.low - self._sink.grain_us

    def _settle(self) -> None:
        self._lowest = min(self._marks.values(), default=END)
        low = self._lowest
        if low > MICROS_MAX:
            low = self._ledger.newest + self._sink.span_us + PAST_IT_US
        self.low = max(self.low, low)


def parted(header: Header, rows: pa.RecordBatch, late: pa.Array) -> tuple[Batch, Batch]:
    """Split a batch into rows that are in time and late rows, both under its name. Rows that were counted before they
    came (`data/operators/lifting`) are not counted again."""
    outside, kept = rows.filter(late), rows.filter(pc.invert(late))
    in_time = replace(header, rows=kept.num_rows, born=max(0, header.born - outside.num_rows))
    count = outside.num_rows
    too_late = replace(
        header, rows=count, born=count if header.born else 0, evicted=0, lost=0, faulted=0, belated=0, late=True
    )
    return Batch(in_time, kept if kept.num_rows else None), Batch(too_late, outside)
