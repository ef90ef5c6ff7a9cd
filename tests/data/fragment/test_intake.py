"""Batches of an origin are let in once and in order, whatever order and however often they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.data.fragment.intake import Intake
from rove.model.batch import Batch, empty, named
from rove.model.errors import UnknownOrigin


def let_in(intake: Intake, batches: list[Batch]) -> list[int]:
    return [b.header.seq for batch in batches for b in intake.offer("o", batch)]


@given(st.lists(st.integers(0, 12), max_size=60))
def test_every_seq_comes_out_once_in_order_up_to_the_first_gap(seqs: list[int]) -> None:
    intake = Intake(["o"])
    out = let_in(intake, [named("o", seq, None) for seq in seqs])
    through = next(n for n in range(14) if n not in set(seqs))
    assert out == list(range(through))
    held = {b.header.seq for b in intake.held()}
    assert held == {s for s in seqs if s > through}
    assert intake.duplicates == len(seqs) - len(set(seqs))


def test_a_header_that_overlaps_what_is_known_is_let_in_for_its_rest() -> None:
    intake = Intake(["o"])
    assert let_in(intake, [empty("o", 0, 4, 0), empty("o", 2, 7, 0), named("o", 8, None)]) == [0, 2, 8]
    assert intake.table() == {"o": 9}


def test_where_the_past_is_forgotten_the_first_to_come_is_the_beginning() -> None:
    intake = Intake(["o"], forgets=True)
    assert let_in(intake, [named("o", 5, None), named("o", 6, None), named("o", 4, None), named("o", 8, None)]) == [
        5,
        6,
    ]
    assert intake.duplicates == 1


def test_a_batch_of_somebody_nobody_waits_for_is_refused() -> None:
    intake = Intake(["o"])
    with pytest.raises(UnknownOrigin, match="nobody waits for origin `p`"):
        intake.offer("p", named("p", 0, None))
    intake.expect(["p"])
    assert [b.header.seq for b in intake.offer("p", named("p", 0, None))] == [0]


@given(st.lists(st.integers(0, 12), max_size=30), st.lists(st.integers(0, 12), max_size=30))
def test_gaps_of_one_who_is_gone_hold_nobody_up(before: list[int], after: list[int]) -> None:
    intake = Intake(["o"])
    out = let_in(intake, [named("o", seq, None) for seq in before])
    out += let_in(intake, intake.leave("o"))
    assert out == sorted(set(before)), "what was held goes in, in order"
    out += let_in(intake, [named("o", seq, None) for seq in sorted(after)])
    assert out == sorted(set(out)), "once, and in order"
    assert {seq for seq in after if seq > max(before, default=-1)} <= set(out)
    assert list(intake.held()) == []
    assert intake.leave("nobody") == []
