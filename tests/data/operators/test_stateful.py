"""Stateful operators can be moved at any moment, and do not care how their origins interleave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.data.operators import runs
from tests.data.streams import QUERIES, Feed, Run, feeds, hopping, partials, plan_of, shuffled, tumbling
from tests.depth import examples
from tests.portable.rows import assert_same_rows

pytestmark = pytest.mark.deep
EXAMPLES = settings(max_examples=examples(30), deadline=None, derandomize=True)
CASES = [(q, "whole") for q in QUERIES] + [(q, mode) for q in (tumbling, hopping) for mode in ("partial", "final")]


@pytest.fixture(
    params=[
        pytest.param(3, id="folding often"),
        pytest.param(runs.FOLD_ROWS, id="folding rarely", marks=pytest.mark.slow),
    ]
)
def fold_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small runs take few rows through every level of folding."""
    monkeypatch.setattr(runs, "FOLD_ROWS", request.param)
    monkeypatch.setattr(runs, "FAN_IN", 2)


@pytest.mark.usefixtures("fold_rows")
@pytest.mark.parametrize(("query", "mode"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_an_operator_restored_from_a_snapshot_goes_on_as_if_nothing_had_happened(
    query: Callable[[Any, Any], Any], mode: str
) -> None:
    plan = plan_of(query, mode)

    @EXAMPLES
    @given(feeds(), st.integers(0, 40))
    def check(feed: Feed, at: int) -> None:
        feed = partials(query, feed) if mode == "final" else feed
        at = at % (len(feed) + 1)
        undisturbed = Run(plan, feed).feed(feed).finish()
        moved = Run(plan, feed).feed(feed[:at]).moved().feed(feed[at:]).finish()
        assert moved.output() == undisturbed.output()
        assert moved.late() == undisturbed.late()

    check()


@pytest.mark.usefixtures("fold_rows")
@pytest.mark.parametrize(("query", "mode"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_output_does_not_depend_on_how_origins_interleave(query: Callable[[Any, Any], Any], mode: str) -> None:
    plan = plan_of(query, mode)

    @EXAMPLES
    @given(feeds(), st.lists(st.integers(0, 5), max_size=40))
    def check(feed: Feed, order: list[int]) -> None:
        feed = partials(query, feed) if mode == "final" else feed
        first = Run(plan, feed).feed(feed).finish()
        other = Run(plan, feed).feed(shuffled(feed, order)).finish()
        assert other.output() == first.output()
        assert other.late() == first.late()

    check()


@pytest.mark.parametrize("query", [tumbling, hopping], ids=lambda q: q.__name__)
def test_partial_results_of_several_nodes_make_the_whole(query: Callable[[Any, Any], Any]) -> None:
    whole, final = plan_of(query), plan_of(query, "final")

    @EXAMPLES
    @given(feeds())
    def check(feed: Feed) -> None:
        expected = Run(whole, feed).feed(feed).finish().rows()
        halves = partials(query, feed)
        actual = Run(final, halves).feed(halves).finish().rows()
        exact = ["window", "key", "n", "amounts", "low", "last"]  # sums of fractions depend on who added them
        assert_same_rows(actual.select(exact), expected.select(exact), query.__name__)

    check()


@pytest.mark.parametrize("query", [tumbling, hopping], ids=lambda q: q.__name__)
def test_numbers_have_no_gaps_and_start_at_nought(query: Callable[[Any, Any], Any]) -> None:
    plan = plan_of(query)

    @EXAMPLES
    @given(feeds())
    def check(feed: Feed) -> None:
        expected = 0
        for seq, through, _ in Run(plan, feed).feed(feed).finish().output():
            assert seq == expected
            expected = through + 1

    check()
