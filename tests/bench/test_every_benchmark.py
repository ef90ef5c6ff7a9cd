"""Every benchmark has tests of its own, and nothing else can be run as one."""

from __future__ import annotations

from pathlib import Path

from rove.cli.bench import benchmarks

FILE = Path(__file__)
HERE = FILE.parent


def test_every_benchmark_has_a_test_of_its_smoke_form() -> None:
    others = [path for path in HERE.glob("test_*.py") if path != FILE]
    tested = {path.stem.removeprefix("test_") for path in others if "smoke(" in path.read_text()}
    assert set(benchmarks(HERE.parents[1] / "bench")) == tested
