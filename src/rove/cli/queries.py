"""`rove queries`: all queries, and what keeps them from running."""

from __future__ import annotations

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table


def queries(coordinator: Coordinator = "", keys: Keys = None, as_json: AsJson = False) -> None:
    """List the queries: running, deploying, waiting for sources, or stopped."""
    from rove.control.requests import QueryLine

    lines = ask(coordinator, keys, "queries", None, list[QueryLine])
    if as_json:
        print_json(lines)
    elif not lines:
        print("No queries yet. Type: rove submit query.py")
    else:
        print_table(
            ("query", "state", "version", "strategy", "sink", "nodes", "not yet on", "trouble"),
            [(q.query, q.state, q.version, q.strategy, q.sink, q.nodes, q.missing, q.trouble) for q in lines],
        )
