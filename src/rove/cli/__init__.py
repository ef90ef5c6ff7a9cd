"""The `rove` command. Each subcommand has its own file."""

from __future__ import annotations

import sys
from importlib.util import find_spec

MORE = "All others: pip install 'rove[coordinator]'"
# Commands that need more packages than a device has.
OTHERS = (
    "advise",
    "bench",
    "cloud",
    "compact",
    "coordinator",
    "demo",
    "drain",
    "explain",
    "history",
    "keys",
    "queries",
    "sim",
    "status",
    "stop",
    "streams",
    "submit",
    "topology",
    "update",
)


def main() -> None:
    """The entry point. Every error that Rove raises on purpose is printed as one line, with a non-zero exit code."""
    from rove.model.errors import RoveError
    from rove.runtime.broken import EXIT_CODE, Broken

    run = _everything if find_spec("typer") else _on_a_device
    try:
        run()
    except RoveError as error:
        sys.exit(f"rove: {error}")
    except Broken as broken:
        print(f"rove: {broken}", file=sys.stderr)
        sys.exit(EXIT_CODE)


def _on_a_device() -> None:
    """The commands that need no package beyond those of a device."""
    from rove.cli import device, doctor, gateway, join, worker
    from rove.cli.flags import run_plain
    from rove.model.errors import nearest

    listed = (device.device, worker.worker, gateway.gateway, join.join, doctor.doctor, version)
    commands = {command.__name__: command for command in listed}
    args = sys.argv[1:] or ["--help"]
    if args[0] not in (*commands, *OTHERS) and not args[0].startswith("-"):
        sys.exit(f"rove: no command `{args[0]}`; {nearest(args[0], [*commands, *OTHERS])}")
    if args[0] in OTHERS:
        sys.exit(f"rove: `{args[0]}` is not a command of a device, which has: {', '.join(commands)}. {MORE}")
    run_plain(commands, args, MORE)


def _everything() -> None:
    import typer

    from rove.cli import (
        advise,
        bench,
        cloud,
        compact,
        coordinator,
        demo,
        device,
        doctor,
        drain,
        explain,
        gateway,
        history,
        join,
        keys,
        queries,
        sim,
        status,
        stop,
        streams,
        submit,
        topology,
        update,
        worker,
    )
    from rove.cli.flags import for_typer

    app = typer.Typer(
        name="rove",
        help="Stream processing for things that move: one query from the device through the edge into Spark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    panels = {
        "Nodes": (coordinator.coordinator, gateway.gateway, worker.worker, device.device, cloud.cloud),
        "Tables": (compact.compact,),
        "Queries": (
            submit.submit,
            update.update,
            queries.queries,
            status.status,
            history.history,
            explain.explain,
            stop.stop,
            streams.streams,
        ),
        "Who belongs to it": (join.join, drain.drain, doctor.doctor),
        "Try and prove": (demo.demo, sim.sim, bench.bench),
    }
    for panel, commands in panels.items():
        for command in commands:
            app.command(rich_help_panel=panel)(for_typer(command))
    for name, group in (("topology", topology.app), ("keys", keys.app)):
        app.add_typer(group, name=name, rich_help_panel="Who belongs to it")
    app.add_typer(advise.app, name="advise", rich_help_panel="Try and prove")
    app.command()(version)

    def shown(asked: bool) -> None:
        if asked:
            version()
            raise typer.Exit

    @app.callback()
    def rove(
        version: bool = typer.Option(False, "--version", help="Print the version.", callback=shown, is_eager=True),
    ) -> None:
        pass

    app()


def version() -> None:
    """Print the version."""
    from rove import __version__

    print(__version__)
