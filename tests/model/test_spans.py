"""Sets of numbers as ranges, compared with plain sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.model.spans import Coverage, Spans, both, bounded, check_spans, minus, size, text_of, union

RANGE = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda r: (r[0], r[0] + r[1]))
RANGES = st.lists(RANGE, max_size=12)


def spans(ranges: list[tuple[int, int]]) -> Spans:
    coverage = Coverage()
    for first, through in ranges:
        coverage.add(first, through)
    return coverage.spans()


def numbers(ranges: list[tuple[int, int]]) -> set[int]:
    return {n for first, through in ranges for n in range(first, through + 1)}


def members(found: Spans) -> set[int]:
    assert check_spans(found), found
    assert all(a < b for a, b in zip(found[1::2], found[2::2], strict=False)), "ranges that touch are one range"
    return {n for start, end in zip(found[::2], found[1::2], strict=True) for n in range(start, end)}


@given(RANGES, st.data())
def test_a_coverage_holds_what_was_added_and_not_taken_away(ranges: list[tuple[int, int]], data: st.DataObject) -> None:
    coverage = Coverage()
    for first, through in ranges:
        coverage.add(first, through)
    assert members(coverage.spans()) == numbers(ranges)
    stay = list(ranges)
    for gone in data.draw(st.lists(st.sampled_from(ranges), max_size=len(ranges))) if ranges else ():
        if gone in stay:
            stay.remove(gone)
            coverage.add(*gone, times=-1)
    assert members(coverage.spans()) == numbers(stay)
    assert bool(coverage) == bool(stay)


@given(st.lists(RANGES, max_size=4))
def test_a_union_has_the_numbers_of_all_sets(sets: list[list[tuple[int, int]]]) -> None:
    assert members(union(map(spans, sets))) == set().union(*map(numbers, sets))


@given(RANGES, RANGES)
def test_differences_and_common_numbers_are_those_of_plain_sets(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    assert members(minus(spans(a), spans(b))) == numbers(a) - numbers(b)
    assert members(both(spans(a), spans(b))) == numbers(a) & numbers(b)
    assert size(spans(a)) == len(numbers(a))


@given(RANGES, st.integers(1, 4))
def test_a_bounded_set_holds_all_its_numbers_in_few_ranges(ranges: list[tuple[int, int]], most: int) -> None:
    whole = spans(ranges)
    found = bounded(whole, 2 * most)
    assert members(found) >= numbers(ranges)
    assert len(found) <= 2 * most
    assert found == whole or len(found) == 2 * most
    assert found[:1] + found[-1:] == whole[:1] + whole[-1:]


def test_small_gaps_are_filled_before_large_ones() -> None:
    assert bounded((0, 1, 3, 4, 100, 101), 4) == (0, 4, 100, 101)


def test_a_long_run_of_batches_takes_two_bounds() -> None:
    coverage = Coverage()
    for n in range(10_000):
        coverage.add(n, n)
    for n in range(9_000):
        coverage.add(n, n, times=-1)
    assert coverage.spans() == (9_000, 10_000)
    assert len(coverage._rises) == 2


def test_the_text_names_the_first_ranges() -> None:
    assert text_of((0, 1, 4, 8, 10, 12, 20, 21, 30, 31)) == "0, 4 to 7, 10 to 11, 2 more ranges"


def test_bounds_that_are_no_set_are_seen() -> None:
    assert not any(map(check_spans, [(1,), (-1, 2), (3, 3), (4, 2), (0, 2, 2, 3)]))


def test_ranges_of_two_sets_that_touch_are_one_range() -> None:
    assert union([(0, 3, 7, 9), (3, 5)]) == (0, 5, 7, 9)


@given(RANGES, RANGES)
def test_a_coverage_of_a_set_can_be_included_and_taken_away(
    ranges: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    coverage, other = Coverage.of(spans(ranges)), Coverage.of(spans(others))
    assert coverage.spans() == spans(ranges)
    coverage.include(other)
    assert members(coverage.spans()) == numbers([*ranges, *others])
    coverage.include(other, -1)
    assert coverage.spans() == spans(ranges)


def test_bounds_of_others_that_are_no_set_are_refused() -> None:
    for wrong in ((1,), (3, 2), (-1, 4), (0, 4, 2, 6)):
        with pytest.raises(ValueError, match="not bounds"):
            Coverage.of(wrong)
