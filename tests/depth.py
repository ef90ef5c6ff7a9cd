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


def some_slow(seeds: Iterable[int], always: int) -> list[Any]:
    """So many of the seeds for every run, and the others for those with `--slow`."""
    return [seed if n < always else pytest.param(seed, marks=pytest.mark.slow) for n, seed in enumerate(seeds)]
