"""`rove topology`: lists the nodes. `import` adds expected nodes from a file, `replay` plays changes of links over
time, `remove` forgets a node that is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, Yes, ask, confirm, confirm_node, session
from rove.cli.listing import print_json, print_table

app = typer.Typer(
    help="List the nodes, import a topology from a file, play its changes, or remove a node.", add_completion=False
)


@app.callback(invoke_without_command=True)
def topology(context: typer.Context, coordinator: Coordinator = "", keys: Keys = None, as_json: AsJson = False) -> None:
    """List the nodes (up, away, or expected: known from a file but never seen), with their links, streams and free
    room.

    With `import FILE`, read a topology from a file instead. With `replay FILE`, play its changes over time. With
    `remove NODE`, forget a node.
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
    file: Annotated[
        Path, typer.Argument(help="A topology in our TOML or JSON, or NebulaStream's fixed_topology.json.")
    ],
    updates: Annotated[Path | None, typer.Option(help="NebulaStream's topology_updates.json for it.")] = None,
    through_ms: Annotated[
        int | None, typer.Option(help="Apply the updates up to this time. Default: none.", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before nodes are added to those of others.")] = False,
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Tell the coordinator which nodes and links to expect.

    Our own format has `nodes` (id, kind, slots, memory_bytes) and `links` (a, b, latency_us, bytes_per_s).
    """
    from rove.control.asks.requests import Import, Named, NodeLine

    above: tuple[str, Path | None] = context.obj
    asked = Import(text=_text(file), updates="" if updates is None else _text(updates), through_ms=through_ms)
    with session(coordinator or above[0], keys or above[1]) as there:
        others = there.ask("topology", None, list[NodeLine])
        if others and not yes:
            what = f"the coordinator at {there.url} has {len(others)} nodes already, `{others[0].node}` first"
            confirm(what, "Add to them?", "to add to them")
        answer = there.ask("import", asked, Named)
    print(f"{there.url} has taken {file}: {answer.name}")


@app.command("replay")
def replay(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="NebulaStream's fixed_topology.json.")],
    updates: Annotated[Path, typer.Option(help="NebulaStream's topology_updates.json for it.")],
    speed: Annotated[float, typer.Option(help="How many times as fast as in the file.", min=0.001)] = 1.0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before links of other nodes are changed.")] = False,
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Play the changes of a topology over time against the nodes that run.

    A node has the name that its number in the file is, and names every parent that the file gives it (--parent). First
    both files are checked, and the nodes get the links that they have at the beginning. Then each batch of changes is
    made at its time. A link that the file removes stays away, until it is added or its node is removed.
    """
    from rove.cli.replaying import play
    from rove.control.asks.requests import NodeLine, Replay, Replayed

    above: tuple[str, Path | None] = context.obj
    asked = Replay(text=_text(file), updates=_text(updates))
    with session(coordinator or above[0], keys or above[1]) as there:
        others = there.ask("topology", None, list[NodeLine])
        if others and not yes:
            what = f"the coordinator at {there.url} has {len(others)} nodes, `{others[0].node}` first"
            confirm(what, "Change them?", "to change them")
        summary = play(there, there.ask("replay", asked, Replayed), speed, quiet=as_json)
    if as_json:
        print_json(summary)
    else:
        print(f"at the coordinator at {there.url}: {summary.text()}")


@app.command("remove")
def remove(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="The node's name, as in `rove topology`.")],
    yes: Yes = False,
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Forget a node that will not come back. Queries no longer wait for its rows. A node that still runs joins again,
    so you are asked first.

    The rows that it counted stay in `rove status`.
    """
    from rove.control.asks.requests import Named

    above: tuple[str, Path | None] = context.obj
    with session(coordinator or above[0], keys or above[1]) as there:
        if not yes:
            confirm_node(there, node, "it will join again while it runs; stop it first", "Forget it?")
        removed = there.ask("remove", Named(name=node), Named)
    print(f"the coordinator at {there.url} has forgotten node `{removed.name}`")


def _text(file: Path) -> str:
    from rove.model.errors import SetupError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{file} cannot be read as text: {error}") from error
