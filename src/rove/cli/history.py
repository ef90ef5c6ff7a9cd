"""`rove history`: lists the changes of queries, with their causes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table

if TYPE_CHECKING:
    from rove.control.asks.requests import HistoryLine


def history(
    query: Annotated[str, typer.Argument(help="The query's name; without it, all queries.")] = "",
    last: Annotated[int, typer.Option(help="How many changes to list.", min=1)] = 20,
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """List the last changes of queries: what caused each, which nodes got a part (+), a new version of it (~) or lost
    it (-), how long it took until all nodes were told and until all ran it, and how it ended. A change is overtaken if
    a newer one of the same query came before all nodes ran it."""
    from rove.control.asks.requests import AskHistory, HistoryLine

    lines = ask(coordinator, keys, "history", AskHistory(query=query, last=last), list[HistoryLine])
    if as_json:
        print_json(lines)
    elif not lines:
        print("No changes yet. Type: rove submit query.py")
    else:
        print_table(
            ("at", "query", "version", "because", "nodes", "told", "took", "outcome"),
            [_row(line) for line in lines],
        )


def _row(line: HistoryLine) -> tuple[object, ...]:
    causes, took = "; ".join(line.causes), (_ms(line.told_ms), _ms(line.took_ms))
    return _at(line), line.query, line.version, causes, _nodes(line), *took, line.outcome


def _at(line: HistoryLine) -> str:
    return datetime.fromtimestamp(line.began_us / 1_000_000).strftime("%Y-%m-%d %H:%M:%S")


def _nodes(line: HistoryLine) -> str:
    signs = (("+", line.deploy), ("~", line.update), ("-", line.undeploy))
    named = [f"{sign}{node}" for sign, nodes in signs for node in nodes]
    more = line.nodes - len(named)
    return " ".join(named) + (f" and {more:,} more" if more > 0 else "")


def _ms(ms: int | None) -> str:
    return "" if ms is None else f"{ms:,} ms"
