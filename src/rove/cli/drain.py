"""`rove drain NODE`: moves everything off a node, with its state, while rows flow."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Annotated

import typer

from rove.cli.asking import Coordinator, Keys, session
from rove.cli.listing import console, print_json

LOOK_S = 0.5


def drain(
    node: Annotated[str, typer.Argument(help="The node's name, as in `rove topology`.")],
    back: Annotated[bool, typer.Option("--back", help="Let the node take part again.")] = False,
    wait_s: Annotated[
        float, typer.Option("--wait", help="How many seconds to wait until everything has left.", min=0)
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Drain a node. Its operators move to nodes above it with their state, devices take other routes, and rows keep
    flowing. When nothing is left, the node can be switched off. What holds it up is shown."""
    from rove.control.asks.requests import Drain, Drained

    with session(coordinator, keys) as there:
        found = there.ask("drain", Drain(name=node, back=back), Drained)
        until = monotonic() + (0 if back else wait_s)
        with console().status(f"draining {node}"):
            while (found.left or found.held_bytes) and monotonic() < until:
                sleep(LOOK_S)
                found = there.ask("draining", Drain(name=node), Drained)
    where = f"at the coordinator at {there.url}"
    if back:
        if as_json:
            print_json(found)
        else:
            print(f"`{node}` takes part again {where}; new queries may use it")
        return
    done = not (found.left or found.held_bytes)
    if as_json:
        print_json(found)
    elif done:
        print(f"nothing is left on `{node}` {where}; it can be switched off")
    else:
        for query, why in sorted(found.left.items()):
            print(f"{query}: {why or 'rows of devices below it still pass it, and know no other way'}")
        if found.held_bytes:
            print(f"`{node}` still holds {found.held_bytes:,} bytes")
        print(f"`{node}` {where} is not empty after {wait_s:g} s; it goes on. Ask again with: rove topology")
    raise typer.Exit(0 if done else 1)
