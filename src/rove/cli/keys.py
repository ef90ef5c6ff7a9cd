"""`rove keys new | invite | revoke`: decides who may connect and who may give commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rove.cli.asking import AsJson, Coordinator, Yes, confirm_node, session
from rove.cli.listing import print_json
from rove.cli.starting import DEFAULT_URL

app = typer.Typer(
    help="Make the keys of a coordinator, invite nodes and `rove cloud`, and revoke them.",
    no_args_is_help=True,
    add_completion=False,
)

Folder = Annotated[Path, typer.Option("--keys", metavar="DIR", help="The folder that `rove keys new` made.")]
Node = Annotated[str, typer.Argument(help="The node's name.")]


@app.command("new")
def new(
    keys: Annotated[Path, typer.Option("--keys", metavar="DIR", help="The folder for the keys.")] = Path("keys"),
    coordinator: Annotated[
        str, typer.Option("--coordinator", metavar="URL", help="The coordinator's address, as nodes reach it.")
    ] = DEFAULT_URL,
) -> None:
    """Make two key pairs: one for the coordinator, and one for giving it commands."""
    from rove.model.errors import SetupError
    from rove.runtime.network.keys import coordinator_keys

    _, operator = coordinator_keys(keys, coordinator)
    if operator.url != coordinator:
        raise SetupError(f"{keys} holds the keys of a coordinator at {operator.url}; choose another folder with --keys")
    print(f"{keys}/ has the keys of the coordinator at {coordinator}, and the keys for giving it commands")
    print(f"start it:        rove coordinator --keys {keys}\ninvite a node:   rove keys invite NAME --keys {keys}")


@app.command("invite")
def invite(
    node: Node,
    kind: Annotated[
        Literal["device", "edge", "gateway", "cloud"],
        typer.Option(help="What it will be: a node, or `cloud` for the process that runs Spark."),
    ] = "device",
    hours: Annotated[float, typer.Option(help="How many hours the token is valid.", min=0.01, max=24 * 365)] = 24,
    keys: Folder = Path("keys"),
    coordinator: Coordinator = "",
    as_json: AsJson = False,
) -> None:
    """Print a token that lets one node, or one `rove cloud`, join once. Whoever has the token can join under that name,
    so keep it safe."""
    from msgspec.structs import replace

    from rove.api.session import OPERATOR_FILE
    from rove.control.asks.requests import Named
    from rove.runtime.network.keys import load_keys, new_token, token_text

    operator = load_keys(keys / OPERATOR_FILE)
    if coordinator:
        operator = replace(operator, url=coordinator)
    token, asked = new_token(operator, node, kind, hours)
    with session(coordinator, keys) as there:
        there.ask("invite", asked, Named)
    if as_json:
        print_json({"node": node, "kind": kind, "token": token_text(token), "expires_us": token.expires_us})
    else:
        print(f"the coordinator at {there.url} has invited `{node}`")
        print(f"On `{node}`, within {hours:g} hours:\nrove join --keys keys --token {token_text(token)}")


@app.command("revoke")
def revoke(node: Node, yes: Yes = False, keys: Folder = Path("keys"), coordinator: Coordinator = "") -> None:
    """Revoke the keys of a node. It cannot connect until it is invited again. If the node runs, you are asked first."""
    from rove.control.asks.requests import Named

    with session(coordinator, keys) as there:
        if not yes:
            confirm_node(there, node, "it is cut off, and rows that only it has wait there", "Revoke its keys?")
        there.ask("revoke", Named(name=node), Named)
    print(f"the coordinator at {there.url} has revoked the keys of `{node}`")
    print(f"to let it back in: rove keys invite {node}")
