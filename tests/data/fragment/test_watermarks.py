"""The low watermark over the origins that are waited for, as they come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rove.data.fragment.watermarks import Watermarks
from rove.model.clock import END, MICROS_MIN

ORIGINS = ("a", "b", "c")
STEPS = st.tuples(st.sampled_from(["heard", "leave", "expect"]), st.sampled_from(ORIGINS), st.integers(0, 20))


@given(st.lists(STEPS, max_size=40))
def test_it_is_the_lowest_promise_of_all_who_are_waited_for_and_never_falls(steps: list[tuple[str, str, int]]) -> None:
    found = Watermarks(ORIGINS[:2])  # the third is heard before anybody waits for it
    promised, waited, low = dict.fromkeys(ORIGINS, MICROS_MIN), set(ORIGINS[:2]), MICROS_MIN
    for what, origin, mark in steps:
        before = found.low
        if what == "heard":
            promised[origin] = max(promised[origin], mark)
            rose = found.heard(origin, mark)
        elif what == "leave":
            waited.discard(origin)
            rose = found.leave(origin)
        else:
            waited.add(origin)
            rose = found.expect([origin])
        if waited:
            low = max(low, min(promised[each] for each in waited))
        assert found.low == low
        assert rose == (found.low > before)


def test_one_who_ended_while_nobody_waited_holds_nobody_up_when_it_is_back() -> None:
    found = Watermarks(["a"])
    found.heard("a", 5)
    found.leave("a")
    found.heard("a", END)
    assert found.expect(["a"])
    assert found.low == END
