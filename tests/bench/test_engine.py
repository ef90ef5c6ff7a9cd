"""The benchmark of the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.smoke import smoke

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it


def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("engine", tmp_path)
    queries = ("q0", "q1", "q2", "w", "h", "q8")
    assert set(values) == {
        *(f"{query}_vs_bare_8192" for query in queries),
        *(f"{query}_vs_polars" for query in queries),
        "q2_vs_bare_100",
        "min_vs_spark",
    }
    assert min(values.values()) > 0
