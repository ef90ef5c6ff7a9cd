"""The benchmark of what lies between the log and Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.smoke import smoke

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it


def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("cloud", tmp_path)
    assert set(values) == {
        "source_vs_parquet",
        "source_vs_parquet_strings",
        "latency_vs_rate",
        "bytes_into_spark_saved",
    }
    assert all(value > 0 for value in values.values())
