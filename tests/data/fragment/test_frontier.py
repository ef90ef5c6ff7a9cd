"""A frontier equals one set of numbers for each origin."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rove.data.fragment.frontier import Frontier
from rove.model.errors import DataError, StateError

ORIGINS = ("train-1", "train-2")
SEQS = 24


class FrontierAgainstSets(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.frontier = Frontier()
        self.sets: dict[str, set[int]] = {origin: set() for origin in ORIGINS}

    @rule(origin=st.sampled_from(ORIGINS), first=st.integers(0, SEQS), more=st.integers(0, 6))
    def take(self, origin: str, first: int, more: int) -> None:
        wanted = set(range(first, first + more + 1))
        new = self.frontier.take(origin, first, first + more)
        assert [s for a, b in new for s in range(a, b + 1)] == sorted(wanted - self.sets[origin])
        assert all(b + 1 < c for (_, b), (c, _) in pairwise(new))
        self.sets[origin] |= wanted

    @rule(origin=st.sampled_from(ORIGINS), more=st.integers(0, 3))
    def take_in_order(self, origin: str, more: int) -> None:
        self.take(origin, self.frontier.next(origin), more)

    @rule()
    def snapshot_and_restore(self) -> None:
        table = self.frontier.table()
        self.frontier = Frontier()
        self.frontier.load(table)
        assert self.frontier.table() == table

    @invariant()
    def agree(self) -> None:
        for origin, taken in self.sets.items():
            top = max(taken, default=-1)
            missing = [s for s in range(top + 1) if s not in taken]
            assert self.frontier.next(origin) == (missing[0] if missing else top + 1)
            assert [s for a, b in self.frontier.gaps(origin) for s in range(a, b + 1)] == missing
            assert all(self.frontier.has(origin, s) == (s in taken) for s in range(-1, top + 3))


FrontierAgainstSets.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestFrontierAgainstSets = FrontierAgainstSets.TestCase


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    frontier = Frontier()
    for first, through in ((0, -1), (3, 2), (-1, 4)):
        with pytest.raises(DataError, match="train-1"):
            frontier.take("train-1", first, through)
    assert frontier.table() == {}


def test_a_table_that_no_frontier_wrote_is_refused() -> None:
    for edges in ([], [3, 4], [3, 3, 5], [-1], [4, 9, 8]):
        with pytest.raises(StateError, match="train-1"):
            Frontier().load({"train-1": edges})
