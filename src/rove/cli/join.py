"""`rove join`: uses a token once, and makes the keys of this node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def join(
    token: Annotated[str, typer.Option(help="The token that `rove keys invite` printed.", envvar="ROVE_TOKEN")],
    keys: Annotated[Path, typer.Option("--keys", metavar="DIR", help="Where to keep the new key.")] = Path("keys"),
) -> None:
    """Make this machine the node that a token is for. Its secret key never leaves the folder."""
    from rove.runtime.network.keys import join as use
    from rove.runtime.network.keys import read_token

    kind = {"edge": "worker"}.get(found := read_token(token).kind, found)
    joined = use(token, keys)
    print(f"this machine is now node `{joined.node}`; start it with: rove {kind} --keys {keys}")
