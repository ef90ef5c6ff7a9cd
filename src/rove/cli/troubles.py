"""The table of what holds queries up, as `rove queries` and `rove status` print it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rove.cli.listing import print_table

if TYPE_CHECKING:
    from rove.control.asks.requests import QueryLine


def print_troubles(lines: Iterable[QueryLine]) -> None:
    """Print one row for each trouble of these queries; nothing if there is none."""
    from rove.api.troubles import since

    rows = [
        (line.query, trouble.who, since(trouble), "yes" if trouble.holds else "", trouble.reason)
        for line in lines
        for trouble in line.troubles
    ]
    if rows:
        print_table(("query", "who", "since", "holds it up", "trouble"), rows)
