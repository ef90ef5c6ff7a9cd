"""`rove submit FILE`: submits a query to the coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, session
from rove.cli.listing import print_json
from rove.cli.query_file import options_in, sink_of, stream_in

Variable = Annotated[
    str, typer.Option(help="The variable of a Python file that holds the stream. Default: the last stream.")
]
Where = Annotated[
    str,
    typer.Option(
        "--sink",
        metavar="SINK",
        help="Where rows end: table[:NAME], postgres[:TABLE], console or foreachBatch:MODULE:FUNCTION in Spark, log at "
        "the gateway, file:PATH on a node with a disk.",
    ),
]
On = Annotated[str, typer.Option("--on", metavar="NODE", help="The node of the sink. Default: the gateway.")]
Strategy = Annotated[
    str, typer.Option(metavar="NAME", help="The placement strategy: bottom_up, shortest_path, cloud_only or ilp.")
]
Mode = Annotated[
    str,
    typer.Option(
        metavar="MODE", help="Spark's output mode: append, or update for early results that are corrected later."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of writeStream.option. Can be repeated."),
]


def submit(
    file: Annotated[
        Path, typer.Argument(help="A query.py that assigns a stream to a variable, or a query.sql with one SELECT.")
    ],
    name: Annotated[str, typer.Option(help="The query's name. Default: the file's name.")] = "",
    sink: Where = "log",
    on: On = "",
    strategy: Strategy = "bottom_up",
    mode: Mode = "append",
    option: Options = None,
    variable: Variable = "",
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Start a query, and print where each operator runs and why.

    A Python file whose session has a coordinator is submitted there, unless --coordinator names another. Submitting the
    same file under the same name again changes nothing.
    """
    from rove.api.session import LOCAL
    from rove.api.writer import submit as hand_over

    name = name or file.stem
    with session(coordinator, keys) as asked:
        stream = stream_in(file, variable, asked)
        writer = stream.writeStream.option("strategy", strategy).options(**options_in(option or ())).outputMode(mode)
        query = writer.asked(name, *sink_of(sink, on, name, writer))
        to = asked if coordinator or stream.session.url == LOCAL else stream.session
        answer = hand_over(to, query)
    if as_json:
        print_json(answer)
        return
    print(f"query `{answer.query}`, version {answer.version}, at the coordinator at {to.url}\n\n{answer.text}")
