"""Panes of event time: how every windowed operator sorts rows into panes and closes windows.

Law: a pane takes rows until the low watermark passes its end. Then it is complete, and further rows for it are late.
Windows close in the order of their numbers, each exactly once, empty ones as headers. So the output has no gaps and
does not depend on when watermarks arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rove.data.operators.logic import NOTHING, Output
from rove.model.batch import Batch, empty, named
from rove.model.clock import MICROS_MIN
from rove.model.errors import DataError
from rove.model.ids import Origin
from rove.model.schema import BIGINT
from rove.plan.windows import Window

ROWS_PER_FILTER = 2_048  # with fewer rows in a pane, one sort is cheaper than a filter for each pane


def micros_of(moments: pa.Array) -> pa.Array:
    """The instants of a timestamp column in microseconds. Nothing is copied."""
    return moments.view(BIGINT)


class PaneClock:
    """Which panes are complete and which window is next, for one operator's output."""

    def __init__(self, window: Window, origin: Origin) -> None:
        self.window, self.origin = window, origin
        self.base_us, self.pane_us = window.origin_us, window.pane_us
        self.panes_per_window, self.panes_per_slide = window.panes_per_window, window.panes_per_slide
        self.next_window = 0
        self.complete = 0  # panes below this number take no more rows
        self.heard_us = MICROS_MIN

    def pane_of(self, micros: int) -> int:
        return (micros - self.base_us) // self.pane_us

    def split(
        self, data: pa.RecordBatch, micros: pa.Array, bounds: tuple[int | None, int | None]
    ) -> tuple[list[tuple[int, pa.RecordBatch]], pa.Array | None]:
        """The rows by pane, and which are late. O(1) if all rows are in one open pane, the common case.

        `bounds` are the oldest and newest time if they are known; they may be too wide.
        """
        first, last = self._range(micros, bounds, data.num_rows)
        late = None
        if first < self.complete:
            late = pc.less(micros, pa.scalar(self._start_us(self.complete), BIGINT))
            in_time = pc.invert(late)
            data, micros = data.filter(in_time), micros.filter(in_time)
            if not data.num_rows:
                return [], late
            first = self.complete
        if first == last:
            return [(first, data)], late
        if last - first < _few(data.num_rows):
            return list(self._filtered(data, micros, first, last)), late
        return list(self._sorted(data, micros)), late

    def _range(self, micros: pa.Array, bounds: tuple[int | None, int | None], rows: int) -> tuple[int, int]:
        """The first and last pane. Known bounds will do if no row can be late and there are few panes between them."""
        oldest, newest = bounds
        if oldest is not None and newest is not None:
            first, last = self.pane_of(oldest), self.pane_of(newest)
            if first == last or (first >= self.complete and last - first < _few(rows)):
                return first, last
        found = pc.min_max(micros)
        return self.pane_of(found["min"].as_py()), self.pane_of(found["max"].as_py())

    def _start_us(self, number: int) -> int:
        return self.base_us + number * self.pane_us

    def _filtered(
        self, data: pa.RecordBatch, micros: pa.Array, first: int, last: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows by pane, their order kept: one comparison and one filter for each pane."""
        before: pa.Array | None = None  # the rows of earlier panes
        for number in range(first, last):
            until = pc.less(micros, pa.scalar(self._start_us(number + 1), BIGINT))
            part = data.filter(until if before is None else pc.and_not(until, before))
            if part.num_rows:
                yield number, part
            before = until
        part = data.filter(pc.invert(before))
        if part.num_rows:
            yield last, part

    def _sorted(self, data: pa.RecordBatch, micros: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows by pane, their order kept: one sort for all panes."""
        numbers = pc.divide(pc.subtract(micros, pa.scalar(self.base_us, BIGINT)), pa.scalar(self.pane_us, BIGINT))
        order = pc.sort_indices(numbers)
        data, runs = data.take(order), pc.run_end_encode(numbers.take(order), pa.int64())
        start = 0
        for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield number, data.slice(start, end - start)
            start = end

    def close(
        self, time_us: int, occupied: Callable[[], list[int]], emit: Callable[[int], pa.RecordBatch | None]
    ) -> Output:
        """Close every window that ends by `time_us`. O(windows with rows), however long the silence before them.

        A window that cannot be computed is a fault under its own number. Other windows are emitted.
        """
        if time_us <= self.heard_us:
            return NOTHING
        self.heard_us = time_us
        self.complete = max(self.complete, self.pane_of(time_us))
        last = self.window.last_closed(time_us)
        if last < self.next_window:
            return NOTHING
        batches: list[Batch] = []
        faults: list[tuple[Batch, DataError]] = []
        for number in self._windows_with_rows(occupied(), last):
            if number > self.next_window:
                batches.append(self._nothing_until(number - 1))
            try:
                batches.append(named(self.origin, number, emit(number), self._promise(number)))
                self.next_window = number + 1
            except DataError as fault:
                faults.append((self._nothing_until(number), fault))
        if self.next_window <= last:
            batches.append(self._nothing_until(last))
        return Output(tuple(batches), faults=tuple(faults))

    @property
    def first_needed_pane(self) -> int:
        """Panes below this number are in no future window."""
        return self.next_window * self.panes_per_slide

    def facts(self) -> dict[str, int]:
        return {"next_window": self.next_window, "complete": self.complete, "heard_us": self.heard_us}

    def resume(self, facts: dict[str, int]) -> None:
        self.next_window, self.complete, self.heard_us = (facts[n] for n in ("next_window", "complete", "heard_us"))

    def _windows_with_rows(self, occupied: list[int], last: int) -> Iterator[int]:
        """The numbers of the windows up to `last` that hold at least one of the panes, in order, each once."""
        following = self.next_window
        for pane in occupied:
            lowest = max(following, -(-(pane - self.panes_per_window + 1) // self.panes_per_slide))
            highest = min(last, pane // self.panes_per_slide)
            if lowest > last:
                return
            yield from range(lowest, highest + 1)
            following = max(following, highest + 1)

    def _nothing_until(self, number: int) -> Batch:
        header = empty(self.origin, self.next_window, number, self._promise(number))
        self.next_window = number + 1
        return header

    def _promise(self, number: int) -> int:
        """The watermark after window `number`: the start of the next window."""
        return self.window.start_us(number) + self.window.slide_us


def _few(rows: int) -> int:
    """Up to how many panes a filter for each of them is cheaper than one sort."""
    return max(3, rows // ROWS_PER_FILTER)
