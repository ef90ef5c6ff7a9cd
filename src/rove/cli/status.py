"""`rove status`: what became of every row, and whether it adds up."""

from __future__ import annotations

from typing import Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table


def status(
    query: Annotated[str, typer.Argument(help="One query; all of them if left out.")] = "",
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Account for every row, by query and origin: delivered, on its way, or counted as evicted, late or lost.

    Buffered rows are on their way as well, and a row may be buffered on two nodes at once. Lag is how far an origin's
    watermark is behind the clock.
    """
    from rove.api.accounts import COUNTS, excess, total, verdict
    from rove.control.requests import AccountLine, Named

    lines = ask(coordinator, keys, "status", Named(name=query), list[AccountLine])
    whole = total(lines, query)
    if as_json:
        print_json({"accounts": lines, "total": whole, "adds_up": not any(map(excess, lines))})
        return
    if lines:

        def row(line: AccountLine) -> tuple[str | int | None, ...]:
            return (line.query, line.origin, *(getattr(line, what) for what in COUNTS), line.watermark_lag_ms)

        heads = ("query", "origin", *(what.replace("_", " ") for what in COUNTS), "lag ms")
        print_table(heads, map(row, lines), ("total", "", *row(whole)[2:]))
    print(verdict(lines))
