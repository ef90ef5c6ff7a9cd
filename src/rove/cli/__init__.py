"""The `rove` command. Each subcommand has its own file."""

from __future__ import annotations

import sys

MORE = "pip install 'rove[coordinator]'"


def main() -> None:
    """The entry point. Every error that Rove raises on purpose is printed as one line, with a non-zero exit code."""
    try:
        import typer
    except ModuleNotFoundError:
        sys.exit(_without_typer(sys.argv[1:]))
    from rove.cli import (
        advise,
        bench,
        cloud,
        coordinator,
        demo,
        device,
        explain,
        gateway,
        join,
        keys,
        queries,
        sim,
        status,
        stop,
        streams,
        submit,
        topology,
        worker,
    )
    from rove.model.errors import RoveError
    from rove.runtime.broken import EXIT_CODE, Broken

    app = typer.Typer(
        name="rove",
        help="Stream processing for things that move: one query from the device through the edge into Spark.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    panels = {
        "Nodes": (coordinator.coordinator, gateway.gateway, worker.worker, device.device, cloud.cloud),
        "Queries": (submit.submit, queries.queries, status.status, explain.explain, stop.stop, streams.streams),
        "Who belongs to it": (join.join,),
        "Try and prove": (demo.demo, sim.sim, bench.bench),
    }
    for panel, commands in panels.items():
        for command in commands:
            app.command(rich_help_panel=panel)(command)
    for name, group in (("topology", topology.app), ("keys", keys.app)):
        app.add_typer(group, name=name, rich_help_panel="Who belongs to it")
    app.add_typer(advise.app, name="advise", rich_help_panel="Try and prove")
    app.command("version", help="Print the version.")(_version)
    try:
        app()
    except RoveError as error:
        sys.exit(f"rove: {error}")
    except Broken as broken:
        print(f"rove: {broken}", file=sys.stderr)
        sys.exit(EXIT_CODE)


def _version() -> None:
    from rove import __version__

    print(__version__)


def _without_typer(args: list[str]) -> str:
    """What to type on a device that has only the core packages."""
    if args[:1] in (["device"], ["worker"], ["gateway"]):
        return f"with flags, rove {args[0]} needs: {MORE}. Without: python -m rove.runtime.process SETTINGS.toml"
    return f"the rove command needs its extra packages. Type: {MORE}"
