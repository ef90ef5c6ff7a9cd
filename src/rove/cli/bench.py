"""`rove bench NAME`: runs a benchmark, which is a module of the clone's `bench` folder."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rove.model.errors import SetupError, nearest


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark, for example: engine.")],
    quick: Annotated[bool, typer.Option("--quick", help="End within 50 seconds on two cores.")] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="End within seconds; compute all checks, judge none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of real traces. Without it, data is generated.")] = None,
) -> None:
    """Run a benchmark. It prints its figures and whether they meet the promised values."""
    from rove.runtime.memory import look_for_cycles_seldom

    folder = _folder()
    known = benchmarks(folder)
    if name not in known:
        raise SetupError(f"no benchmark `{name}`; {nearest(name, known)}")
    sys.path.insert(0, str(folder.parent))
    look_for_cycles_seldom()  # as the processes that are measured
    module, report = importlib.import_module(f"bench.{name}"), importlib.import_module("bench.report")
    result: dict[str, Any] = module.run(module.SMOKE if smoke else module.QUICK if quick else module.FULL, data)
    if smoke:
        result = report.unjudged(result)
    if as_json:
        print(json.dumps(result))
    else:
        report.show(result, folder / "out")
    raise typer.Exit(1 if any(c["holds"] is False for c in result["checks"]) else 0)


def benchmarks(folder: Path) -> list[str]:
    """The names of the benchmarks: modules with three sizes, of which `SMOKE` is one. The others help them."""
    return sorted(path.stem for path in folder.glob("*.py") if "\nSMOKE = " in path.read_text())


def _folder() -> Path:
    for root in (Path.cwd(), *Path(__file__).resolve().parents):
        if (root / "bench" / "report.py").is_file():
            return root / "bench"
    raise SetupError("the benchmarks are part of a clone of the repository; run this inside one")
