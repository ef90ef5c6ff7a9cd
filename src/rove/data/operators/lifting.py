"""Takes the rows of an origin batch by batch: a partial aggregate without memory.

Law: each batch becomes the states of its own rows, one for each pane and key, and keeps its name. The final half merges
them like the states of any other origin, so the results are those of a window. Names go out without gaps from number 0
on: numbers that others have taken go out as a header.
"""

from __future__ import annotations

import pyarrow as pa

from rove.data.operators.folded import Fold
from rove.data.operators.logic import NOTHING, MovesAtOnce, Output, stepped
from rove.data.operators.panes import PaneClock
from rove.data.operators.watermark import extent
from rove.model.batch import Batch, empty
from rove.model.clock import MICROS_MAX, MICROS_MIN
from rove.model.ids import NOBODY, Origin
from rove.model.state import Snapshot
from rove.plan.operators import PANE, Aggregate


class LiftLogic(MovesAtOnce):
    """One hash aggregation for each batch. O(origins) of state: the next number of each."""

    def __init__(self, plan: Aggregate) -> None:
        self._plan, self._fold = plan, Fold(plan, count=False)
        self._clock = PaneClock(plan.window.panes, NOBODY)
        self._next: dict[Origin, int] = {}

    def probe(self, data: pa.RecordBatch) -> None:
        """Compute what can fail for single rows, and change nothing."""
        self._fold(data)

    def process(self, batch: Batch) -> Output:
        header, data = batch.header, batch.data
        if data is not None:
            data = data.select(self._plan.schema.names) if header.folded else self._fold(data)
        oldest, newest = (None, None) if data is None or not data.num_rows else extent(data.column(PANE))
        lifted = stepped(
            header,
            data,
            watermark=self._promise(header.watermark),
            event_min=oldest,
            event_max=newest,
            folded=False,
            # The rows are counted where they are lifted. Who takes the states counts no rows.
            born=0,
            evicted=0,
            lost=0,
            faulted=0,
            belated=0,
        )
        following = self._next.get(header.origin, 0)
        self._next[header.origin] = max(following, header.through + 1)
        if header.seq <= following:
            return Output((lifted,))
        return Output((empty(header.origin, following, header.seq - 1, MICROS_MIN), lifted))

    def watermark(self, time_us: int) -> Output:
        return NOTHING

    def snapshot(self) -> Snapshot:
        return Snapshot("lifted")

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("lifted")

    def _promise(self, mark: int) -> int:
        """The watermark of panes: the start of the pane that a watermark of rows is in."""
        if not MICROS_MIN < mark <= MICROS_MAX:
            return mark
        return self._clock.base_us + self._clock.pane_of(mark) * self._clock.pane_us
