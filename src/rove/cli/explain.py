"""`rove explain FILE`: draws the plan of a query file, and where each step can run, or would run in a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import Keys, session
from rove.cli.flags import Flag
from rove.cli.query_file import sink_of, stream_in
from rove.cli.starting import DEFAULT_URL, stream_columns
from rove.cli.submit import On, Strategy, Variable, Where


def explain(
    file: Annotated[
        Path, typer.Argument(help="A query.py that assigns a stream to a variable, or a query.sql with one SELECT.")
    ],
    variable: Variable = "",
    sink: Where = "log",
    on: On = "",
    strategy: Strategy = "bottom_up",
    columns: Annotated[
        list[str] | None,
        Flag(
            "The columns of a stream that a .sql file reads: 'stream: a int, ts timestamp'. Then no coordinator is "
            "asked. Can be repeated.",
            metavar="COLUMNS",
        ),
    ] = None,
    coordinator: Annotated[
        str,
        Flag(
            "Show where each operator would run in the network of this coordinator. A .sql file without --columns is "
            f"explained by the coordinator at {DEFAULT_URL}, if you name no other.",
            metavar="URL",
        ),
    ] = "",
    keys: Keys = None,
) -> None:
    """Draw the plan of a query: where each operator can run, and why.

    With --coordinator: where each operator would run in that network, and how much each link would carry. Nothing is
    started.
    """
    from rove.api.session import Session
    from rove.api.writer import submit

    if not coordinator and (file.suffix != ".sql" or columns):
        declared = Session.local()
        for name, schema in map(stream_columns, columns or ()):
            declared.stream(name, schema)
        stream_in(file, variable, declared).explain()
        return
    with session(coordinator, keys) as asked:
        stream = stream_in(file, variable, asked)
        writer = stream.writeStream.option("strategy", strategy)
        query = writer.asked(file.stem, *sink_of(sink, on, file.stem, writer), explain=True)
        print(submit(asked, query).text)
