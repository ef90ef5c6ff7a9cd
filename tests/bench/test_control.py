"""The benchmark of what the coordinator costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.smoke import smoke


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("control", tmp_path)
    assert set(values) == {
        "move_ms",
        "move_growth_devices",
        "move_growth_queries",
        "move_kept_kb",
        "rollout_growth",
        "report_us",
        "tick_ms",
    }
    # What is kept does not depend on this machine.
    assert 0 < values["move_kept_kb"] < 10
