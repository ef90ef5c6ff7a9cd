"""Lines of answers as people or programs read them: a table, or JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 240  # a pipe has no edge at which lines would have to break


def console() -> Console:
    """Standard output; as wide as the terminal, or wide where there is none."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False) if known else Console(highlight=False, width=PIPE_WIDTH)


def print_json(value: Any) -> None:
    """A value as JSON, for programs and for eyes."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]], footer: Sequence[Any] = ()) -> None:
    """A table; numbers stand right. What others named is printed as it is, not read as colours."""
    shown = list(rows)
    table = Table(box=SIMPLE_HEAD, show_footer=bool(footer), pad_edge=False)
    for n, head in enumerate(heads):
        numbers = all(isinstance(row[n], int | None) for row in shown)
        table.add_column(
            head, Text(_cell(footer[n])) if footer else "", justify="right" if numbers else "left", overflow="fold"
        )
    for row in shown:
        table.add_row(*(Text(_cell(value)) for value in row))
    console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str):
        return value
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else ", ".join(map(str, value))
