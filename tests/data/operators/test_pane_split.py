"""Rows of a batch by pane, against a list."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rove.data.operators.panes import PaneClock
from rove.model.ids import Origin
from rove.plan.windows import Window

PANE_US = 10


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=40),
    st.integers(0, 5),
    st.booleans(),
    st.sampled_from([PANE_US, 1, 7]),
)
def test_every_row_is_in_its_pane_or_late_in_the_order_it_had(
    micros: list[int], complete: int, bounded: bool, pane_us: int
) -> None:
    clock = PaneClock(Window(pane_us, pane_us), Origin("stream", "node"))
    zero = clock.pane_of(0)
    clock.complete = zero + complete
    column = pa.array(micros, pa.int64())
    bounds = (min(micros), max(micros)) if bounded else (None, None)
    split = clock.split(column, bounds)
    rows = pa.record_batch({"micros": column, "place": pa.array(range(len(micros)))})

    expected: dict[int, list[int]] = {}
    late = [clock.pane_of(each) < clock.complete for each in micros]
    for place, each in enumerate(micros):
        if not late[place]:
            expected.setdefault(clock.pane_of(each), []).append(place)
    assert {n: part["place"].to_pylist() for n, part in split.by_pane(rows)} == dict(sorted(expected.items()))
    assert split.numbers == sorted(expected)
    assert [part.to_pylist() for part in split.of(rows["place"], but_last=True)] == [
        expected[n] for n in split.numbers[:-1]
    ]
    assert (split.late.to_pylist() if split.late is not None else [False] * len(micros)) == late


def test_the_starts_of_panes_are_found_wherever_they_are_asked_for() -> None:
    for pane_us in (1, 1_000_000, 4_000 * 365 * 86_400_000_000):
        clock = PaneClock(Window(pane_us, pane_us), Origin("stream", "node"))
        now = clock.pane_of(0)
        for number in (now, now + 1, now - 1, now + 2):
            assert clock.moment(number).value == clock.window.start_us(number)
