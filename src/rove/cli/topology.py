"""`rove topology`: who is there; `import` draws a network before it is there, `remove` forgets a node that is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, ask
from rove.cli.listing import print_json, print_table

app = typer.Typer(help="List the nodes, import a topology from a file, or remove a node.", add_completion=False)


@app.callback(invoke_without_command=True)
def topology(context: typer.Context, coordinator: Coordinator = "", keys: Keys = None, as_json: AsJson = False) -> None:
    """List the nodes: up, away, or expected (known from a file, not heard yet); their links, streams and room.

    With `import FILE`, take a topology from a file instead; with `remove NODE`, forget a node.
    """
    from rove.control.asks.requests import NodeLine

    if context.invoked_subcommand is not None:
        context.obj = (coordinator, keys)
        return
    lines = ask(coordinator, keys, "topology", None, list[NodeLine])
    if as_json:
        print_json(lines)
    elif not lines:
        print("No nodes yet. Type: rove gateway --data DIR")
    else:
        print_table(
            ("node", "kind", "state", "address", "links", "streams", "queries", "slots", "used", "refused"),
            [
                (n.node, n.kind, n.state, n.address, n.links, n.streams, n.queries, n.slots, n.slots_used, n.refused)
                for n in lines
            ],
        )


@app.command("import")
def import_topology(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="TOML or JSON of ours, or NebulaStream's fixed_topology.json.")],
    updates: Annotated[Path | None, typer.Option(help="NebulaStream's topology_updates.json beside it.")] = None,
    through_ms: Annotated[
        int | None, typer.Option(help="Apply the updates up to this moment; none if left out.", min=0)
    ] = None,
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Tell the coordinator of nodes and links that will be there.

    Our own form has `nodes` (id, kind, slots, memory_bytes) and `links` (a, b, latency_us, bytes_per_s).
    """
    from rove.control.asks.requests import Import, Named

    above: tuple[str, Path | None] = context.obj
    asked = Import(text=_text(file), updates="" if updates is None else _text(updates), through_ms=through_ms)
    answer = ask(coordinator or above[0], keys or above[1], "import", asked, Named)
    print(f"{file}: {answer.name}")


@app.command("remove")
def remove(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="The node, as `rove topology` lists it.")],
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Forget a node that will not come back: nobody waits for its rows any more. One that still runs joins again.

    What it counted stays in `rove status`.
    """
    from rove.control.asks.requests import Named

    above: tuple[str, Path | None] = context.obj
    removed = ask(coordinator or above[0], keys or above[1], "remove", Named(name=node), Named)
    print(f"node `{removed.name}` is forgotten")


def _text(file: Path) -> str:
    from rove.model.errors import SetupError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{file} cannot be read as text: {error}") from error
