"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "rove.api.column",
    "rove.api.functions",
    "rove.api.session",
    "rove.api.stream",
    "rove.plan.codec",
    "rove.plan.explain",
    "bench.nexmark",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
