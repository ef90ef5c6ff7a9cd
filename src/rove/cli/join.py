"""`rove join`: use a token, once, and have keys of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def join(
    token: Annotated[str, typer.Option(help="The word that `rove keys invite` printed.", envvar="ROVE_TOKEN")],
    keys: Annotated[Path, typer.Option("--keys", metavar="DIR", help="Where to keep the new key.")] = Path("keys"),
) -> None:
    """Make this machine the node that a token is for. The secret half of its key never leaves the folder."""
    from rove.runtime.network.keys import join as use
    from rove.runtime.network.keys import read_token

    kind = {"edge": "worker"}.get(found := read_token(token).kind, found)
    joined = use(token, keys)
    print(f"this machine is `{joined.node}` now; start it: rove {kind} --keys {keys}")
