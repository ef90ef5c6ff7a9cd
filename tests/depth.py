"""How deep tests look: with `--slow` as deep as they can, less deep in every other run.

A property test that asks for `examples` carries the mark `deep`, so that a run with `--slow` takes it again, with all
of them. Of many seeds, all but the first carry the mark `slow`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

SHARE = 5
slow = False  # set by the tests' conftest before any test is collected


def examples(most: int) -> int:
    return most if slow else max(1, most // SHARE)


def some_slow(seeds: Iterable[Any], always: int) -> list[Any]:
    """So many of the seeds (or tuples) for every run, and the others for those with `--slow`."""
    return [seed if n < always else _slow(seed) for n, seed in enumerate(seeds)]


def _slow(seed: Any) -> Any:
    return pytest.param(*(seed if isinstance(seed, tuple) else (seed,)), marks=pytest.mark.slow)
