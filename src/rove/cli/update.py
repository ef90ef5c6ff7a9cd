"""`rove update NAME FILE`: gives a running query another text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.cli.asking import AsJson, Coordinator, Keys, session
from rove.cli.listing import print_json
from rove.cli.query_file import stream_in
from rove.cli.submit import Variable


def update(
    name: Annotated[str, typer.Argument(help="The query's name, as in `rove queries`.")],
    file: Annotated[Path, typer.Argument(help="The new text: a query.py or a query.sql, as for `rove submit`.")],
    variable: Variable = "",
    coordinator: Coordinator = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Give a running query another text while rows flow. Conditions and computed columns may change; windows, joins and
    all other operators keep their state. Every row is computed once, with the old text or with the new one.

    A change that cannot keep state is refused. Then stop the query, and submit the new text under another name.
    """
    from rove.api.session import LOCAL
    from rove.api.writer import update as hand_over

    with session(coordinator, keys) as asked:
        stream = stream_in(file, variable, asked)
        to = asked if coordinator or stream.session.url == LOCAL else stream.session
        answer = hand_over(to, name, stream)
    if as_json:
        print_json(answer)
        return
    print(f"query `{answer.query}`, version {answer.version}, at the coordinator at {to.url}")
    print("its nodes are told with their next report")
    print(f"\n{answer.text}")
