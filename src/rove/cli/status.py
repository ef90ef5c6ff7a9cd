"""`rove status`: the accounts of every row, and whether they add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table
from rove.cli.troubles import print_troubles

if TYPE_CHECKING:
    from rove.control.asks.requests import NodeLine


def status(
    query: Annotated[str, typer.Argument(help="One query. Default: all queries.")] = "",
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Account for every row, by query and origin: delivered, in flight, or counted as evicted, late, lost or faulted.
    Also list the nodes that are away or buffer rows, and what holds queries up, since when.

    An origin is a source, as stream/node, or an operator that remembers, as query#step/node. `started` is there
    if the node begins to count anew with each start.

    Rows in flight are buffered, in open windows, or just being passed on. A row may be buffered on two nodes at once.
    Rows are missing if no node has them and they did not arrive. Lag is how far an origin's
    watermark is behind the clock. `lasts` is how long a node's store can take rows in until it is full.
    """
    from rove.api.accounts import COUNTS, excess, total, verdict
    from rove.control.asks.requests import AccountLine, Named, NodeLine, QueryLine
    from rove.model.ids import read_origin

    lines = ask(coordinator, keys, "status", Named(name=query), list[AccountLine])
    nodes = ask(coordinator, keys, "topology", None, list[NodeLine])
    queries = ask(coordinator, keys, "queries", Named(name=query), list[QueryLine])
    waiting = [node for node in nodes if node.state in ("away", "expected") or node.held_bytes]
    whole = total(lines, query)
    if as_json:
        held = {"queries": [{"query": q.query, "state": q.state, "troubles": q.troubles} for q in queries]}
        print_json(
            {"accounts": lines, "total": whole, "adds_up": not any(map(excess, lines)), "waiting": waiting, **held}
        )
        return
    if lines:

        def row(line: AccountLine) -> tuple[str | int | None, ...]:
            origin = read_origin(line.origin).shown if line.origin else ""
            return (line.query, origin, *(getattr(line, what) for what in COUNTS), line.watermark_lag_ms)

        heads = ("query", "origin", *(what.replace("_", " ") for what in COUNTS), "lag ms")
        print_table(heads, map(row, lines), ("total", "", *row(whole)[2:]))
    if waiting:
        print_table(("node", "state", "silent s", "keeps", "of", "oldest s", "lasts s"), map(_buffer, waiting))
    print_troubles(queries)
    for node in nodes:
        if node.trouble:
            print(f"{node.node} {node.trouble}")
    print(verdict(lines))


def _buffer(node: NodeLine) -> tuple[str | int | None, ...]:
    """A node's buffer as a table row."""
    lasts = None if node.lasts_ms is None else node.lasts_ms // 1_000
    kept, room = f"{node.held_bytes / 1e6:,.1f} MB", f"{node.room_bytes / 1e6:,.0f} MB"
    return node.node, node.state, node.silent_ms // 1_000, kept, room, node.oldest_ms // 1_000, lasts
