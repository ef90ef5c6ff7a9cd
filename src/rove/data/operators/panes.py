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
from rove.data.operators.pane_split import PaneSplit
from rove.data.operators.pieces import WHOLE
from rove.model.batch import Batch, empty, named
from rove.model.clock import END, MICROS_MIN
from rove.model.errors import DataError
from rove.model.ids import Origin
from rove.model.schema import BIGINT, TIMESTAMP
from rove.plan.windows import Window

ROWS_PER_FILTER = 2_048  # with fewer rows in a pane, one sort is cheaper than a filter for each pane
STARTS = 64
BIGINT_MAX = 2**63 - 1
_LESS = pc.get_function("less")


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
        self._made_from = 0  # the first pane whose start is kept
        self._micros = self._moments = pa.array([], BIGINT)

    def pane_of(self, micros: int) -> int:
        return (micros - self.base_us) // self.pane_us

    def split(self, micros: pa.Array, bounds: tuple[int | None, int | None]) -> PaneSplit:
        """Which rows are in which pane, and which are late. O(1) if all rows are in one open pane, the common case.

        `bounds` are the oldest and newest time if they are known; they may be too wide.
        """
        first, last = self._range(micros, bounds)
        late = kept = None
        if first < self.complete:
            late = _LESS.call([micros, self._start(self.complete)])
            kept = pc.invert(late)
            micros, first = micros.filter(kept), self.complete
            if not len(micros):
                return PaneSplit(numbers=[], late=late, kept=kept)
        if first == last:
            return PaneSplit(numbers=[first], late=late, kept=kept)
        if last - first < _few(len(micros)):
            masks = self._masks(micros, first, last)
            return PaneSplit(numbers=list(masks), masks=list(masks.values()), late=late, kept=kept)
        numbers = pc.divide(pc.subtract(micros, pa.scalar(self.base_us, BIGINT)), pa.scalar(self.pane_us, BIGINT))
        order = pc.sort_indices(numbers)
        runs = pc.run_end_encode(numbers.take(order), pa.int64())
        ends = tuple(runs.run_ends.to_pylist())
        return PaneSplit(numbers=runs.values.to_pylist(), order=order, ends=ends, late=late, kept=kept)

    def _range(self, micros: pa.Array, bounds: tuple[int | None, int | None]) -> tuple[int, int]:
        """The first and last pane. Known bounds will do if no row can be late and there are few panes between them."""
        oldest, newest = bounds
        if oldest is not None and newest is not None:
            first, last = self.pane_of(oldest), self.pane_of(newest)
            if first == last or (first >= self.complete and last - first < _few(len(micros))):
                return first, last
        found = pc.min_max(micros)
        return self.pane_of(found["min"].as_py()), self.pane_of(found["max"].as_py())

    def moment(self, number: int) -> pa.Scalar:
        """When a pane starts, as a timestamp."""
        place = self._place(number)
        return self._moments[place]

    def _start(self, number: int) -> pa.Scalar:
        """When a pane starts, in microseconds."""
        place = self._place(number)
        return self._micros[place]

    def _place(self, number: int) -> int:
        """Where the start of a pane is kept. Many are made at once: to make one costs as much as a small kernel."""
        place = number - self._made_from
        if 0 <= place < len(self._micros):
            return place
        first = self.base_us + number * self.pane_us
        count = min(STARTS, (BIGINT_MAX - first) // self.pane_us)
        self._micros = pa.arange(first, first + count * self.pane_us, self.pane_us)
        self._moments, self._made_from = self._micros.view(TIMESTAMP), number
        return 0

    def _masks(self, micros: pa.Array, first: int, last: int) -> dict[int, pa.Array]:
        """The rows of each pane that has any: one comparison for each."""
        found: dict[int, pa.Array] = {}
        before: pa.Array | None = None  # the rows of earlier panes
        for number in range(first, last):
            until = _LESS.call([micros, self._start(number + 1)])
            found[number] = until if before is None else pc.and_not(until, before)
            before = until
        found[last] = pc.invert(before)
        return {number: mask for number, mask in found.items() if mask.true_count}

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

    def rename(self, origin: Origin) -> Output:
        """Give the next windows another name. Its numbers begin at 0, so closed windows are empty under it."""
        if origin == self.origin:
            return NOTHING
        self.origin, last = origin, self.next_window - 1
        return NOTHING if last < 0 else Output((empty(origin, 0, last, self._promise(last)),))

    def open_until(self, panes: list[int]) -> int | None:
        """The watermark at which the last window that holds one of these panes closes; None if there are no panes."""
        if not panes:
            return None
        return self.window.start_us(panes[-1] // self.panes_per_slide) + self.window.size_us

    @property
    def first_needed_pane(self) -> int:
        """Panes below this number are in no future window."""
        return self.next_window * self.panes_per_slide

    def complete_until(self, pane: int) -> int:
        """The watermark up to which all windows can close if the panes below this one are known."""
        return END if pane == WHOLE else self.base_us + pane * self.pane_us

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
