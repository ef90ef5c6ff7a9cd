"""`rove coordinator`: starts the coordinator, which knows the topology and the queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.starting import SettingsFile, loaded
from rove.model.errors import SetupError


def coordinator(
    listen: Annotated[
        str | None, typer.Option(metavar="URL", help="Where it listens. Default: tcp://127.0.0.1:4700.")
    ] = None,
    advertise: Annotated[
        str | None, typer.Option(metavar="URL", help="The address at which others reach it, if it differs.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder for its catalog.")] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of its keys. Without keys nothing leaves this computer."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics at this address, such as 127.0.0.1:9470."),
    ] = None,
    settings: SettingsFile = None,
) -> None:
    """Start the coordinator. It knows the nodes and queries, and tells each node what to run. Rows do not pass it."""
    from rove.runtime.process import run_coordinator

    flags = {
        "listen": listen,
        "advertise": advertise,
        "folder": None if data is None else str(data),
        "keys": None if keys is None else str(keys),
        "metrics": metrics,
    }
    section = loaded(settings, "coordinator", flags).coordinator
    if section is None:
        raise SetupError("the settings describe no coordinator; give the flag --listen")
    run_coordinator(section)
