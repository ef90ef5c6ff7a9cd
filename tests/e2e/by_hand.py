"""What a user writes for `foreachBatch`, in a module that `rove cloud` imports by its name.

Law: a batch that comes again replaces itself. A result that came in two batches would be there twice.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

PLACE = "BY_HAND"  # the file, in the environment
TABLE = """CREATE TABLE IF NOT EXISTS results (
    batch INTEGER, start INTEGER, "end" INTEGER, train TEXT, "on" INTEGER, rows INTEGER,
    PRIMARY KEY (batch, start, train)
)"""


def store(rows: Any, batch: int) -> None:
    """Upsert windows of a batch by its number and their keys."""
    columns = ("unix_micros(window.start)", "unix_micros(window.end)", "train", "`on`", "rows")
    found = [(batch, *row) for row in rows.selectExpr(*columns).collect()]
    with closing(sqlite3.connect(os.environ[PLACE], timeout=30)) as connection, connection:
        connection.execute(TABLE)
        connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", found)


def stored(place: Path) -> list[tuple[Any, ...]]:
    """All results, without the batches they came in."""
    with closing(sqlite3.connect(place, timeout=30)) as connection:
        connection.execute(TABLE)
        return connection.execute('SELECT start, "end", train, "on", rows FROM results').fetchall()
