"""How deep tests look: deeper with `--slow` than in every other run.

A property test that asks for `examples` carries the mark `deep`, so that a run with `--slow` takes it again, with four
times as many of them. Of many seeds, all but the first carry the mark `slow`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

SHARES = {False: 5, True: 1.25}  # the share of the examples that a test asks for; both suites fit into half an hour
slow = False  # set by the tests' conftest before any test is collected


def examples(most: int) -> int:
    return max(1, int(most / SHARES[slow]))


def some_slow(seeds: Iterable[Any], always: int) -> list[Any]:
    """So many of the seeds (or tuples) for every run, and the others for those with `--slow`."""
    return [seed if n < always else _slow(seed) for n, seed in enumerate(seeds)]


def _slow(seed: Any) -> Any:
    return pytest.param(*(seed if isinstance(seed, tuple) else (seed,)), marks=pytest.mark.slow)
