"""A benchmark's smoke form, run as a user runs it: in a process of its own, which may start a Spark of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from math import isfinite
from pathlib import Path
from typing import Any

from bench import report

ROOT = Path(__file__).resolve().parents[2]


def smoke(name: str, out: Path) -> dict[str, float]:
    """The values of all checks, none of them judged. The result can be printed and drawn, too."""
    code = "from rove.cli import main; main()"
    command = [sys.executable, "-c", code, "bench", name, "--smoke", "--json"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert said.returncode == 0, said.stderr
    result: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    assert set(result) == {"bench", "checks", "figures", "paper"}
    assert result["bench"] == name
    assert all(check["holds"] is None for check in result["checks"])
    assert all(isfinite(check["value"]) for check in result["checks"])
    report.show(result, out)
    assert bool(result["figures"].get("curves")) == (out / f"{name}.png").is_file()
    return {check["name"]: check["value"] for check in result["checks"]}
