"""`rove explain FILE`: draws the plan of a query file, and where each step can run, or would run in a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import Coordinator, Keys, session
from rove.cli.query_file import sink_of, stream_in
from rove.cli.submit import On, Strategy, Variable, Where


def explain(
    file: Annotated[
        Path, typer.Argument(help="A query.py that assigns a stream to a variable, or a query.sql with one SELECT.")
    ],
    variable: Variable = "",
    sink: Where = "log",
    on: On = "",
    strategy: Strategy = "bottom_up",
    coordinator: Coordinator = "",
    keys: Keys = None,
) -> None:
    """Draw the plan of a query: where each operator can run, and why.

    With --coordinator: where each operator would run in that network, and how much each link would carry. Nothing is
    started.
    """
    from rove.api.writer import submit

    if not coordinator:
        stream_in(file, variable, None).explain()
        return
    with session(coordinator, keys) as asked:
        stream = stream_in(file, variable, asked)
        writer = stream.writeStream.option("strategy", strategy)
        query = writer.asked(file.stem, *sink_of(sink, on, file.stem, writer), explain=True)
        print(submit(asked, query).text)
