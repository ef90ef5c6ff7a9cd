"""`rove stop NAME`: end a query on all nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from rove.cli.asking import Coordinator, Keys, ask


def stop(
    name: Annotated[str, typer.Argument(help="The query, as `rove queries` lists it.")],
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Stop a query. What has arrived stays where it is; what has not is given up, and counted as lost."""
    from rove.api.accounts import total
    from rove.control.asks.requests import AccountLine, Named

    before = total(ask(coordinator, keys, "status", Named(name=name), list[AccountLine]), name)
    stopped = ask(coordinator, keys, "stop", Named(name=name), Named)
    print(f"query `{stopped.name}` is stopped; its nodes hear of it with their next report")
    if before.in_flight:
        print(f"{before.in_flight:,} rows had not arrived; those that do not now are given up: rove status {name}")
