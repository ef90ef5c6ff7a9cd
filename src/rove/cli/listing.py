"""Prints answers as a table for people, or as JSON for programs."""

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

PIPE_WIDTH = 240  # the width of a table that is not printed to a terminal


def console() -> Console:
    """Standard output, as wide as the terminal, or `PIPE_WIDTH` without a terminal."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False) if known else Console(highlight=False, width=PIPE_WIDTH)


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]], footer: Sequence[Any] = ()) -> None:
    """Print a table. Numbers are aligned right. Cells are printed as they are, without colour markup."""
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
