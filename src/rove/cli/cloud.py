"""`rove cloud`: starts Spark for the queries that end in the cloud. It reads a gateway's log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.starting import DEFAULT_URL, Coordinator, Keys, SettingsFile, TrustFunctions, key_file, loaded
from rove.model.errors import SetupError


def cloud(
    logs: Annotated[Path | None, typer.Option(metavar="DIR", help="The gateway's folder: its --data.")] = None,
    tables: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder for tables. Default: rove-tables.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder for checkpoints. Default: rove-cloud.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master: local[*], or spark://HOST:PORT.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of Spark's driver, such as 2g.")] = None,
    trust_functions: TrustFunctions = None,
    coordinator: Coordinator = None,
    keys: Keys = None,
    settings: SettingsFile = None,
) -> None:
    """Start Spark. It reads the gateway's log and runs the upper part of every query that ends in the cloud.

    With keys it has one of its own: rove keys invite NAME --kind cloud, then rove join. The key lets it ask what to
    run, and nothing else. Stop it with Ctrl-C. The next start continues where this one ended.
    """
    from msgspec.structs import replace

    flags = {
        "logs": None if logs is None else str(logs),
        "tables": None if tables is None else str(tables),
        "state": None if state is None else str(state),
        "master": master,
        "memory": memory,
        "trust_functions": trust_functions,
        "coordinator": coordinator,
        "keys": None if keys is None else str(key_file(keys)),
    }
    section = loaded(settings, "cloud", flags).cloud
    if section is None:
        raise SetupError("Spark needs the folder of the gateway's log; give it with --logs DIR")
    if not section.coordinator and not section.keys:
        section = replace(section, coordinator=DEFAULT_URL)
    from rich.console import Console

    from rove.cloud.process import run_cloud

    run_cloud(section, Console(stderr=True).status)
