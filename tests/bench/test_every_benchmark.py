"""Every benchmark has tests of its own, and nothing else can be run as one."""

from __future__ import annotations

from pathlib import Path

from rove.cli.bench import benchmarks

HERE = Path(__file__).parent


def test_every_benchmark_has_a_test_of_its_smoke_form() -> None:
    tested = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py") if "smoke(" in path.read_text()}
    assert set(benchmarks(HERE.parents[1] / "bench")) == tested
