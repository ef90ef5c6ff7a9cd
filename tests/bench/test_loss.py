"""The benchmark of what a device loses while it is away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.smoke import smoke


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("loss", tmp_path)
    assert set(values) == {
        "drop_all_30s",
        "fifo_30s",
        "query_aware_30s",
        "compressed_30s",
        "longest_s_without_loss",
        "with_disk_60s",
        "generated_vs_sample_bytes",
    }
    # Time is virtual there, so what is lost does not depend on this machine.
    assert values["drop_all_30s"] == 1
    assert values["with_disk_60s"] == 0
