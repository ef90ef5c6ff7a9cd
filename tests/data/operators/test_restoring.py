"""An operator that is restored knows what is late, what it has taken, and how far event time has come."""

from __future__ import annotations

import pyarrow as pa

from rove.data.fragment.intake import Intake
from rove.data.fragment.watermarks import Watermarks
from rove.data.operators.panes import PaneClock
from rove.data.operators.watermark import WatermarkConfig
from rove.model.batch import named
from rove.model.clock import MICROS_MIN
from rove.model.ids import Origin
from rove.model.schema import TIMESTAMP
from rove.plan.windows import Window

SCHEMA = pa.schema([("ts", TIMESTAMP)])
A, B = Origin("s", "a"), Origin("s", "b")
SECOND = 1_000_000


def rows(*seconds: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array([s * SECOND for s in seconds], pa.int64()).cast(TIMESTAMP)], schema=SCHEMA)


def test_rows_that_were_late_before_a_snapshot_are_late_after_it() -> None:
    config = WatermarkConfig("ts", SECOND, SCHEMA)
    before, after = config.build(), config.build()
    before.process(named(A, 0, rows(10, 20)))
    after.restore(before.snapshot())
    for logic in (before, after):
        output = logic.process(named(A, 1, rows(18, 19, 30)))
        assert [batch.rows for batch in output.late] == [1]
        assert output.batches[0].header.watermark == 29 * SECOND


def test_panes_that_were_complete_before_a_snapshot_take_no_rows_after_it() -> None:
    window = Window(10 * SECOND, 10 * SECOND)
    before, after = PaneClock(window, A), PaneClock(window, A)
    here = before.pane_of(21 * SECOND)
    before.close(25 * SECOND, lambda: [here - 1], lambda number: rows(1))
    after.resume(before.facts())
    for clock in (before, after):
        split = clock.split(pa.array([19 * SECOND, 21 * SECOND]), (None, None))
        assert (split.numbers, split.late.to_pylist()) == ([here], [True, False])  # type: ignore[union-attr]
        assert clock.close(25 * SECOND, lambda: [here], lambda number: rows(1)).batches == ()
        assert clock.next_window == here


def test_watermarks_of_origins_and_their_lowest_are_restored() -> None:
    before, after = Watermarks([A, B]), Watermarks([A, B])
    before.heard(A, 5)
    before.heard(B, 7)
    after.take_over(before.everything(), before.low)
    after.validate()
    assert (after.low, after.everything()) == (5, {A: 5, B: 7})
    assert not after.heard(B, 9)
    assert after.heard(A, 8)
    assert after.low == 8
    before.expect([joined := Origin("s", "joined")])
    after = Watermarks([A, B, joined])
    after.take_over(before.everything(), before.low)
    assert after.low == 5
    fresh = Watermarks([A])
    fresh.take_over({A: 3}, MICROS_MIN)
    assert fresh.expect([B]) is False


def test_batches_that_were_taken_before_a_snapshot_are_duplicates_after_it() -> None:
    before, after = Intake([A]), Intake([A])
    before.offer(A, named(A, 0, rows(1)))
    after.take_over(before.everything())
    assert after.offer(A, named(A, 0, rows(1))) == []
    assert after.duplicates == 1
    assert [batch.header.seq for batch in after.offer(A, named(A, 1, rows(2)))] == [1]
