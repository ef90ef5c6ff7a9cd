"""`rove submit FILE`: hand a query to the coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, session
from rove.cli.listing import print_json
from rove.cli.query_file import options_in, sink_of, stream_in

Variable = Annotated[str, typer.Option(help="Which variable of a Python file; by default the last stream it makes.")]
Where = Annotated[
    str,
    typer.Option(
        "--sink",
        metavar="SINK",
        help="Where rows end: table[:NAME], postgres[:TABLE], console or foreachBatch:MODULE:FUNCTION in Spark, log at "
        "the gateway, file:PATH on a node with a disk.",
    ),
]
On = Annotated[str, typer.Option("--on", metavar="NODE", help="The node of the sink; the gateway if left out.")]
Strategy = Annotated[
    str, typer.Option(metavar="NAME", help="Who decides the places: bottom_up, shortest_path, cloud_only or ilp.")
]
Mode = Annotated[str, typer.Option(metavar="MODE", help="In Spark: append, or update for early results, corrected.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="What writeStream.option takes. May be given again."),
]


def submit(
    file: Annotated[Path, typer.Argument(help="query.py leaves a stream in a variable; query.sql is one SELECT.")],
    name: Annotated[str, typer.Option(help="The query's name; the file's if left out.")] = "",
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
    """Run a query from now on, and print where everything runs and why.

    A Python file whose session has a coordinator is submitted there, unless --coordinator says otherwise. The same
    file under the same name may be submitted again: nothing changes.
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
    print(f"query `{answer.query}`, version {answer.version}\n\n{answer.text}")
