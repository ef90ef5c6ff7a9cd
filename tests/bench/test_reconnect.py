"""The benchmark of devices that come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.smoke import smoke


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("reconnect", tmp_path)
    assert set(values) == {
        "runtime_ratio_same_parent",
        "runtime_ratio_all_redeployed",
        "recovery_vs_forwarding_queries",
    }
    assert all(value > 0 for value in values.values())
