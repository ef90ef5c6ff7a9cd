"""The flags of all commands that ask the coordinator: its address, the keys, and JSON output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rove.cli.starting import DEFAULT_URL

if TYPE_CHECKING:
    import msgspec

    from rove.api.session import Session

T = TypeVar("T")
RUNS = ("up", "draining", "stands by")  # the states of a node that reports

Coordinator = Annotated[
    str,
    typer.Option("--coordinator", metavar="URL", help=f"The coordinator's address. Default: {DEFAULT_URL}."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before something is done to a node that runs.")]
Keys = Annotated[
    Path | None, typer.Option("--keys", metavar="DIR", help="The folder of your keys, if the coordinator uses keys.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def session(coordinator: str = "", keys: Path | None = None) -> Session:
    """A session with a coordinator: the one of the flag, else the one of the keys, else the one on this machine."""
    from rove.api.session import OPERATOR_FILE, Session
    from rove.runtime.network.keys import load_keys

    if not coordinator and keys is not None:
        coordinator = load_keys(keys / OPERATOR_FILE if keys.is_dir() else keys).url
    return Session(coordinator or DEFAULT_URL, keys)


def confirm(what: str, question: str, otherwise: str) -> None:
    """Ask whether to go on. Where nobody can be asked, a flag has to say so."""
    from rove.model.errors import SetupError

    if not sys.stdin.isatty():
        raise SetupError(f"{what}; {otherwise}, give the flag --yes")
    typer.confirm(f"{what[0].upper()}{what[1:]}. {question}", abort=True)


def confirm_node(there: Session, node: str, then: str, question: str) -> None:
    """Ask before something is done to a node that runs. `then` says what happens to it."""
    from rove.control.asks.requests import NodeLine

    found = [line.state for line in there.ask("topology", None, list[NodeLine]) if line.node == node]
    if found and found[0] in RUNS:
        confirm(f"`{node}` runs at the coordinator at {there.url} ({found[0]}): {then}", question, "to do it anyway")


def ask(coordinator: str, keys: Path | None, verb: str, body: msgspec.Struct | None, kind: type[T]) -> T:
    """Ask the coordinator one question."""
    with session(coordinator, keys) as asking:
        return asking.ask(verb, body, kind)
