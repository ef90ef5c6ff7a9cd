"""The `rove` command, one subcommand a file."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point: every error that Rove raises on purpose is one line, and a non-zero exit."""
    try:
        import typer
    except ModuleNotFoundError:
        sys.exit("the rove command needs its extra packages. Type: pip install 'rove[coordinator]'")
    from rove.cli import bench, demo, explain
    from rove.model.errors import RoveError

    app = typer.Typer(
        name="rove",
        help="Stream processing for things that move: one query from the device through the edge into Spark.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for command in (demo.demo, explain.explain, bench.bench):
        app.command()(command)
    app.command("version", help="Print the version.")(_version)
    try:
        app()
    except RoveError as error:
        sys.exit(f"rove: {error}")


def _version() -> None:
    from rove import __version__

    print(__version__)
