"""Compacts tables by itself while their queries are idle, one table at a time, beside everything else.

Law: a table is compacted only if its query has read no rows for `IDLE_S`. A compaction that fails is logged, and tried
again after `PAUSE_S`; the table is as it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rove.cloud.compaction import compact, small_files, spark_rewrite
from rove.cloud.tables import ASIDE, METADATA, parts_of

log = logging.getLogger(__name__)

IDLE_S = 30.0  # without rows, before a table is compacted
PAUSE_S = 60.0  # between two looks at a table


class Compactor:
    """For the tables of one Spark session. With `files_min` 0 it does nothing."""

    def __init__(self, spark: Any, tables: Path, files_min: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._spark, self._tables, self._files_min, self._clock = spark, tables, files_min, clock
        self._seen: dict[str, tuple[int, float]] = {}  # by table: rows that its query has read, and since when
        self._due: dict[str, float] = {}
        self._thread: threading.Thread | None = None

    def look(self, rows: Mapping[str, int]) -> None:
        """Begin to compact a table that is idle. `rows` is how many rows the query of each table has read."""
        now = self._clock()
        self._seen = {t: self._seen[t] if self._seen.get(t, (-1, 0))[0] == n else (n, now) for t, n in rows.items()}
        if not self._files_min or (self._thread is not None and self._thread.is_alive()):
            return
        for table, (_, since) in self._seen.items():
            if now - since >= IDLE_S and now >= self._due.get(table, 0.0):
                self._due[table] = now + PAUSE_S
                self._thread = threading.Thread(target=self._compact, args=(table,), name="compaction", daemon=True)
                self._thread.start()
                return

    def close(self) -> None:
        """Wait for the compaction that is at work."""
        if self._thread is not None:
            self._thread.join()

    def _compact(self, table: str) -> None:
        for name in (table, *(f"{table}{suffix}" for suffix in ASIDE.values())):
            for part in parts_of(self._tables / name):
                try:
                    if (part / METADATA).is_dir() and small_files(part) >= self._files_min:
                        done = compact(part, spark_rewrite(self._spark), files_min=self._files_min)
                        if done.before:
                            log.info("%s: %d files became %d", part, done.before, done.after)
                except Exception as error:  # whatever Spark raises; the table is as it was
                    log.warning("%s could not be compacted: %s", part, error)
