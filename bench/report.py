"""Shows a benchmark's result: tables on the terminal, a plot in `bench/out`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HOLDS = {True: "yes", False: "[bold red]no", None: "not judged"}


def check(name: str, value: float, goal: float | None, at_least: bool = True) -> dict[str, Any]:
    """Compare one figure with its goal. Without a goal it always holds."""
    holds = goal is None or (value >= goal if at_least else value <= goal)
    return {"name": name, "value": round(value, 4), "goal": goal, "holds": holds}


def unjudged(result: dict[str, Any]) -> dict[str, Any]:
    """The result of a smoke run, in which no check is judged."""
    return {**result, "checks": [{**each, "holds": None} for each in result["checks"]]}


def show(result: dict[str, Any], out: Path) -> None:
    """Print the result, and plot its curves."""
    console = Console()
    checks = Table(title=f"rove bench {result['bench']}", title_justify="left")
    for head in ("check", "value", "goal", "holds"):
        checks.add_column(head, justify="left" if head == "check" else "right")
    for each in result["checks"]:
        goal = "" if each["goal"] is None else f"{each['goal']:g}"
        checks.add_row(each["name"], f"{each['value']:.3g}", goal, HOLDS[each["holds"]])
    console.print(checks)
    for title, rows in result["figures"].items():
        if isinstance(rows, dict) and title != "curves":
            console.print(_figure(title, rows))
    if path := _plot(result, out):
        console.print(f"plot: {path}")


def _figure(title: str, rows: dict[str, Any]) -> Table:
    table = Table(title=title.replace("_", " "), title_justify="left")
    table.add_column("")
    inner = [r for r in rows.values() if isinstance(r, dict)]
    heads = list(dict.fromkeys(k for r in inner for k in r)) or ["value"]
    for head in heads:
        table.add_column(str(head), justify="right" if inner else "left")
    for name, row in rows.items():
        cells = [row.get(h, "") for h in heads] if isinstance(row, dict) else [row]
        table.add_row(name, *(f"{c:,.3g}" if isinstance(c, float) else str(c) for c in cells))
    return table


def _plot(result: dict[str, Any], out: Path) -> Path | None:
    curves = result["figures"].get("curves")
    if not curves:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    out.mkdir(parents=True, exist_ok=True)
    columns = min(3, len(curves))
    rows = -(-len(curves) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(4.5 * columns, 3.2 * rows), squeeze=False)
    for axis, (title, lines) in zip(axes.flat, curves.items(), strict=False):
        for label, points in lines.items():
            axis.plot([float(x) for x in points], list(points.values()), marker="o", label=label)
        scale = "log" if all(float(n) > 0 for p in lines.values() for n in (*p, *p.values())) else "linear"
        axis.set(title=title, xscale=scale, yscale=scale)
        axis.legend(fontsize=7)
    figure.tight_layout()
    path = out / f"{result['bench']}.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
