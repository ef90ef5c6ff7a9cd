"""`rove stop NAME`: stops a query on all nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from rove.cli.asking import Coordinator, Keys, session


def stop(
    name: Annotated[str, typer.Argument(help="The query's name, as in `rove queries`.")],
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Stop a query. Rows that have arrived stay where they are. Rows in flight are dropped and counted as lost."""
    from rove.api.accounts import total
    from rove.control.asks.requests import AccountLine, Named

    with session(coordinator, keys) as there:
        before = total(there.ask("status", Named(name=name), list[AccountLine]), name)
        stopped = there.ask("stop", Named(name=name), Named)
    print(f"the coordinator at {there.url} has stopped query `{stopped.name}`")
    print("its nodes are told with their next report")
    if before.in_flight:
        print(
            f"{before.in_flight:,} rows were in flight; those that do not arrive now are lost. See: rove status {name}"
        )
