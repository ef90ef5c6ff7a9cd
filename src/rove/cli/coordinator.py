"""`rove coordinator`: start the one who knows the topology and the queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.starting import SettingsFile, loaded
from rove.model.errors import SetupError


def coordinator(
    listen: Annotated[
        str | None, typer.Option(metavar="URL", help="Where it listens; tcp://127.0.0.1:4700 if left out.")
    ] = None,
    advertise: Annotated[
        str | None, typer.Option(metavar="URL", help="How others reach it, if by another address.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder of its catalog.")] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of its keys; without it nothing leaves this computer."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve metrics to Prometheus there, such as 127.0.0.1:9470.")
    ] = None,
    settings: SettingsFile = None,
) -> None:
    """Start the coordinator: it knows nodes and queries and says who runs what. Rows flow without it."""
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
