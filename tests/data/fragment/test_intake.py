"""Batches of an origin are let in once and in order, whatever order and however often they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rove.data.fragment.intake import Intake
from rove.model.batch import Batch, empty, named
from rove.model.errors import UnknownOrigin
from rove.model.ids import Origin
from rove.model.spans import both

FIRST, OTHER = Origin("s", "o"), Origin("s", "p")


def let_in(intake: Intake, batches: list[Batch]) -> list[int]:
    return [b.header.seq for batch in batches for b in intake.offer(FIRST, batch)]


@given(st.lists(st.integers(0, 12), max_size=60))
def test_every_seq_comes_out_once_in_order_up_to_the_first_gap(seqs: list[int]) -> None:
    intake = Intake([FIRST])
    out = let_in(intake, [named(FIRST, seq, None) for seq in seqs])
    through = next(n for n in range(14) if n not in set(seqs))
    assert out == list(range(through))
    held = {b.header.seq for b in intake.held()}
    assert held == {s for s in seqs if s > through}
    assert intake.duplicates == len(seqs) - len(set(seqs))


def test_a_header_that_overlaps_what_is_known_is_let_in_for_its_rest() -> None:
    intake = Intake([FIRST])
    assert let_in(intake, [empty(FIRST, 0, 4, 0), empty(FIRST, 2, 7, 0), named(FIRST, 8, None)]) == [
        0,
        2,
        8,
    ]
    assert intake.table() == {FIRST: 9}


def test_where_the_past_is_forgotten_the_first_to_come_is_the_beginning() -> None:
    intake = Intake([FIRST], forgets=True)
    assert let_in(
        intake,
        [
            named(FIRST, 5, None),
            named(FIRST, 6, None),
            named(FIRST, 4, None),
            named(FIRST, 8, None),
        ],
    ) == [
        5,
        6,
    ]
    assert intake.duplicates == 1


def test_a_batch_of_somebody_nobody_waits_for_is_refused() -> None:
    intake = Intake([FIRST])
    with pytest.raises(UnknownOrigin, match="no operator here waits for origin `s/p`"):
        intake.offer(OTHER, named(OTHER, 0, None))
    intake.expect([OTHER])
    assert [b.header.seq for b in intake.offer(OTHER, named(OTHER, 0, None))] == [0]


@given(st.lists(st.integers(0, 12), max_size=30), st.lists(st.integers(0, 12), max_size=30))
def test_gaps_of_one_who_is_gone_hold_nobody_up(before: list[int], after: list[int]) -> None:
    intake = Intake([FIRST])
    out = let_in(intake, [named(FIRST, seq, None) for seq in before])
    out += let_in(intake, intake.leave(FIRST))
    assert out == sorted(set(before)), "what was held goes in, in order"
    out += let_in(intake, [named(FIRST, seq, None) for seq in after])
    assert sorted(out) == sorted({*before, *after}), "what comes later goes in too, once, also into gaps"
    assert intake.duplicates == len(before) + len(after) - len(out)
    assert {seq for _, spans in intake.spans() for seq in range(13) if both(spans, (seq, seq + 1))} == set(out)
    assert {seq for seq in range(14) if intake.took(FIRST, seq)} == set(out)
    assert list(intake.held()) == []
    assert intake.leave("nobody") == []
    intake.validate()


@given(st.lists(st.integers(0, 12), max_size=30), st.lists(st.integers(0, 12), max_size=30))
def test_gaps_that_were_skipped_move_with_the_state(before: list[int], after: list[int]) -> None:
    intake, other = Intake([FIRST]), Intake([FIRST])
    intake.leave(FIRST)
    out = let_in(intake, [named(FIRST, seq, None) for seq in before])
    other.take_over(intake.everything())
    other.validate()
    assert let_in(other, [named(FIRST, seq, None) for seq in after]) == list(
        dict.fromkeys(s for s in after if s not in out)
    )


@pytest.mark.parametrize("skipped", [(3,), (4, 2), (-1, 2), (2, 9)])
def test_gaps_that_no_intake_can_have_are_refused(skipped: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="not bounds of gaps below 8"):
        Intake([FIRST]).take_over([(FIRST, 0, 8, True, False, skipped)])


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(0, 14))
def test_gaps_are_what_was_neither_taken_nor_is_held(seqs: list[int], upto: int) -> None:
    intake = Intake([FIRST])
    let_in(intake, [named(FIRST, seq, None) for seq in seqs])
    gaps = {seq for first, last in intake.gaps(FIRST, upto) for seq in range(first, last + 1)}
    assert gaps == set(range(upto)) - set(seqs)
    let_in(intake, [empty(FIRST, first, last, 0) for first, last in intake.gaps(FIRST, upto)])
    assert list(intake.gaps(FIRST, upto)) == []


def test_there_are_no_gaps_where_it_is_not_known_where_an_origin_begins() -> None:
    forgets, waits = Intake([FIRST], forgets=True), Intake([FIRST])
    waits.closed = True
    assert list(forgets.gaps(FIRST, 5)) == list(waits.gaps(FIRST, 5)) == []
    let_in(forgets, [named(FIRST, 3, None)])
    assert list(forgets.gaps(FIRST, 6)) == [(4, 5)]


def test_an_origin_goes_on_anywhere_after_an_earlier_start_has_taken_its_next_batches() -> None:
    """The state holds batches up to 2. An earlier start took 3 to 5, and lost them; 4 came early on the old node."""
    intake = Intake([FIRST, OTHER])
    intake.take_over([(FIRST, 0, 3, False, False, ()), (OTHER, 0, 3, False, False, ())])
    intake.go_on_anywhere()
    assert intake.offer_early(FIRST, named(FIRST, 4, None)) == []
    assert let_in(intake, [named(FIRST, 1, None)]) == [], "a batch that the state holds says nothing new"
    assert let_in(intake, [named(FIRST, 6, None)]) == [4, 6]
    assert [intake.took(FIRST, seq) for seq in range(7)] == [True, True, True, False, True, False, True]
    assert let_in(intake, [named(FIRST, 8, None)]) == [], "after that it is let in without gaps"
    assert let_in(intake, [named(FIRST, 7, None), named(FIRST, 5, None)]) == [7, 8, 5]
    intake.validate()


def test_batches_that_were_held_until_the_frontier_came_go_on_anywhere_too() -> None:
    intake = Intake([FIRST], forgets=True)
    intake.closed = True
    assert let_in(intake, [named(FIRST, 5, None), named(FIRST, 6, None)]) == []
    intake.take_over([(FIRST, 0, 3, False, False, ())])
    intake.go_on_anywhere()
    assert [batch.header.seq for _, batch in intake.open()] == [5, 6]
    assert list(intake.gaps(FIRST, 9)) == [(7, 8)]
    intake.validate()


def test_a_batch_that_is_counted_elsewhere_is_let_in_without_its_rows() -> None:
    intake = Intake([FIRST])
    intake.elsewhere = {(FIRST, ()): (1, 3)}
    batches = [Batch(replace(named(FIRST, seq, None).header, rows=2, born=2)) for seq in range(4)]
    assert [intake.once(FIRST, batch).header.born for batch in batches] == [2, 0, 0, 2]
    assert intake.duplicates == 2
    header = replace(batches[2].header, through=3)
    assert intake.once(FIRST, Batch(header)).header == header, "a part of it is not counted elsewhere"
