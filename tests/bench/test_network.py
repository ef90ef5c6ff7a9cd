"""The benchmark of the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.smoke import smoke


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("network", tmp_path)
    assert set(values) == {
        "hop_vs_pyzmq_64k",
        "hop_vs_pyzmq_64k_curve",
        "hop1_p50_ms",
        "hop5_p50_ms",
        "place_43602_ms",
        "place_1000_queries_s",
    }
    assert all(value > 0 for value in values.values())
