"""The `rove` command, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = (
    *("coordinator", "gateway", "worker", "device", "submit", "queries", "status", "explain", "stop", "streams"),
    *("drain", "history"),
    *("join", "topology", "keys", "demo", "sim", "bench", "version"),
)


def rove(*args: str) -> subprocess.CompletedProcess[str]:
    code = "from rove.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )


def test_help_names_the_commands() -> None:
    said = rove("--help")
    assert said.returncode == 0
    assert all(f" {command} " in said.stdout for command in COMMANDS)


def test_explain_draws_the_plan_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "query.py"
    file.write_text(
        "import rove\n"
        "trains = rove.Session.local().stream('trains', schema='train string, boarding int')\n"
        "busy = trains.where('boarding > 30')\n"
    )
    assert rove("explain", str(file)).stdout.splitlines() == [
        "edge or Spark   Filter boarding > 30",
        "edge or Spark   └─ Source trains: train string, boarding int",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("bench", "engin"), "did you mean `engine`?"),
        (("explain", "pyproject.toml"), "pyproject.toml is neither Python (.py) nor a SQL statement (.sql)"),
        (("explain", "bench/__init__.py"), "assigns no stream to a variable"),
    ],
)
def test_a_mistake_is_one_line_and_a_non_zero_exit(arguments: tuple[str, ...], complaint: str) -> None:
    said = rove(*arguments)
    assert said.returncode == 1
    assert complaint in said.stderr
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.slow
def test_the_demo_proves_its_answers_against_spark() -> None:
    said = rove("demo", "--trains", "3", "--minutes", "10", "--seconds", "6")
    assert said.returncode == 0, said.stderr
    assert "Every row that a train counted has arrived exactly once" in " ".join(said.stdout.split())


def test_a_benchmarks_json_has_the_promised_shape() -> None:
    from bench.engine import Measured, report

    measured = Measured({"bare": 1.0, "rove": 1.0, "polars": 1.0}, 1.0)
    found = {q: dict.fromkeys((100, 1_000, 8_192, 65_536), measured) for q in QUERIES}
    result = json.loads(json.dumps(report(found, dict.fromkeys(QUERIES, 0.5))))
    assert set(result) == {"bench", "checks", "figures", "paper"}
    assert [c["name"] for c in result["checks"]] == [
        *(f"{q}_vs_bare_8192" for q in QUERIES),
        "q2_vs_bare_100",
        *(f"{q}_vs_polars" for q in QUERIES),
        "min_vs_spark",
    ]
    assert all(set(c) == {"name", "value", "goal", "holds"} for c in result["checks"])


QUERIES = ("q0", "q1", "q2", "w", "h", "q8")
