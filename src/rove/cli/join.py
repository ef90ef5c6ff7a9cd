"""`rove join`: uses a token once, and makes the keys of this node or of `rove cloud`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rove.cli.flags import Flag


def join(
    token: Annotated[str, Flag("The token that `rove keys invite` printed.", environment="ROVE_TOKEN")],
    keys: Annotated[Path, Flag("Where to keep the new key.", metavar="DIR")] = Path("keys"),
) -> None:
    """Make this machine the node, or the `rove cloud`, that a token is for. Its secret key never leaves the folder."""
    from rove.runtime.network.keys import join as use
    from rove.runtime.network.keys import read_token

    kind = read_token(token).kind
    joined = use(token, keys)
    if kind == "cloud":
        print(f"this machine may run Spark as `{joined.node}`; start it with: rove cloud --keys {keys} --logs DIR")
    else:
        command = "worker" if kind == "edge" else kind
        print(f"this machine is now node `{joined.node}`; start it with: rove {command} --keys {keys}")
