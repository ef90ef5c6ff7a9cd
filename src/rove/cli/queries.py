"""`rove queries`: lists all queries, and what prevents them from running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table

if TYPE_CHECKING:
    from rove.control.asks.requests import Progress


def queries(coordinator: Coordinator = "", keys: Keys = None, as_json: AsJson = False) -> None:
    """List the queries: running, deploying, waiting for sources, or stopped."""
    from rove.control.asks.requests import QueryLine

    lines = ask(coordinator, keys, "queries", None, list[QueryLine])
    if as_json:
        print_json(lines)
    elif not lines:
        print("No queries yet. Type: rove submit query.py")
    else:
        print_table(
            ("query", "state", "version", "strategy", "sink", "nodes", "not yet on", "Spark", "trouble"),
            [
                (q.query, q.state, q.version, q.strategy, q.sink, q.nodes, q.missing, _spark(q.spark), q.trouble)
                for q in lines
            ],
        )


def _spark(said: Progress | None) -> str:
    if said is None:
        return ""
    return said.trouble or f"{said.state}, batch {said.batch}, {said.lag_entries} behind"
