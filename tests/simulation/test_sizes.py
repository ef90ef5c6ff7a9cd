"""How large the worlds of many seeds are."""

from __future__ import annotations

from collections import Counter

from rove.sim.sizes import SHARES, size_of


def test_most_worlds_are_small_and_some_are_as_large_as_asked_for() -> None:
    found = Counter(size_of(seed, 60) for seed in range(2_000))
    for nodes, share in (*SHARES, (60, 5)):
        assert 0.7 * share < found[nodes] / 20 < 1.3 * share


def test_no_world_is_larger_than_asked_for() -> None:
    assert {size_of(seed, 8) for seed in range(100)} == {6, 8}
    assert {size_of(seed, 3) for seed in range(100)} == {3}
