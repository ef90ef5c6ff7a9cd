"""`rove explain FILE`: the plan of a query file, and where each step can run."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Annotated

import typer

from rove.model.errors import PlanError, nearest


def explain(
    file: Annotated[Path, typer.Argument(help="A Python file that leaves a stream in a variable.", exists=True)],
    variable: Annotated[str, typer.Option(help="The variable; by default the last stream the file makes.")] = "",
) -> None:
    """Draw the plan of a query, where each operator can run, and why."""
    from rove.api.stream import Stream

    if file.suffix != ".py":
        raise PlanError(f"{file} is not a Python file; write the query in one and leave its stream in a variable")
    found = {k: v for k, v in runpy.run_path(str(file)).items() if isinstance(v, Stream)}
    if not found:
        raise PlanError(f"{file} leaves no stream in a variable; assign the query's last step to one")
    if variable and variable not in found:
        raise PlanError(f"{file} has no stream `{variable}`; {nearest(variable, list(found))}")
    (found[variable] if variable else list(found.values())[-1]).explain()
