"""`rove queries`: lists all queries, and what prevents them from running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table
from rove.cli.troubles import print_troubles

if TYPE_CHECKING:
    from rove.control.asks.requests import Progress


def queries(coordinator: Coordinator = "", keys: Keys = None, as_json: AsJson = False) -> None:
    """List the queries: running (rows flow), held up, deploying, waiting for sources, or stopped. Then list what holds
    them up or costs them rows: who has the trouble, since when by the coordinator's clock, and what to do."""
    from rove.control.asks.requests import QueryLine

    lines = ask(coordinator, keys, "queries", None, list[QueryLine])
    if as_json:
        print_json(lines)
    elif not lines:
        print("No queries yet. Type: rove submit query.py")
    else:
        print_table(
            ("query", "state", "version", "strategy", "sink", "nodes", "not yet on", "Spark"),
            [(q.query, q.state, q.version, q.strategy, q.sink, q.nodes, q.missing, _spark(q.spark)) for q in lines],
        )
        print_troubles(lines)


def _spark(said: Progress | None) -> str:
    if said is None:
        return ""
    batch = f"batch {said.batch}" if said.batch >= 0 else "no batch yet"
    return f"{said.state}, {batch}, {said.lag_entries} behind"
