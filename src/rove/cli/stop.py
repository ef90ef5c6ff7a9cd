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
    """Stop a query. What has arrived stays where it is."""
    from rove.control.requests import Named

    stopped = ask(coordinator, keys, "stop", Named(name=name), Named)
    print(f"query `{stopped.name}` is stopped; its nodes hear of it with their next report")
