"""The partitions of a node: those that are open, and those that are asked for.

Law: a partition is open when its answer has come, and not before. One that cannot be opened is asked for again, after a
pause that grows, and what is wrong with it is said meanwhile. Answers to an earlier question change nothing.

    want ─► Open … Opened ─► open          Open … OpenFailed ─ pause ─► Open …
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rove.data.events import Open, Opened, OpenFailed
from rove.data.log.segments.format import Mark
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.settings import LogSettings

PAUSE_US_MIN = 100_000  # between two attempts to open a partition; each is twice as long as the one before
PAUSE_US_MAX = 10_000_000


@dataclass(slots=True)
class _Wanted:
    """A partition that is not open yet."""

    schema: pa.Schema
    settings: LogSettings | None
    number: int = 0  # of the question that is out; 0 if none is
    due_us: int = 0
    pause_us: int = PAUSE_US_MIN
    trouble: str = ""


class Folders:
    """Partitions by folder."""

    def __init__(self) -> None:
        self._open: dict[str, Opened] = {}
        self._wanted: dict[str, _Wanted] = {}
        self._numbers = 0

    def want(self, folder: str, schema: pa.Schema, settings: LogSettings | None = None) -> Partition | None:
        """A partition, if it is open. If not, it will be asked for."""
        found = self._open.get(folder)
        if found is None:
            self._wanted.setdefault(folder, _Wanted(schema, settings))
            return None
        return found.partition

    def get(self, folder: str) -> Partition | None:
        found = self._open.get(folder)
        return None if found is None else found.partition

    def upto(self, folder: str) -> Mark:
        """How far an open partition went when it was opened."""
        return self._open[folder].upto

    def forget(self, folder: str) -> None:
        """It is not needed any more."""
        self._open.pop(folder, None)
        self._wanted.pop(folder, None)

    def ask(self, now: int) -> list[Open]:
        """Questions that are due. O(folders that are not open)."""
        asked = []
        for folder, wanted in self._wanted.items():
            if not wanted.number and now >= wanted.due_us:
                self._numbers += 1
                wanted.number = self._numbers
                asked.append(Open(folder, wanted.number, wanted.schema, wanted.settings))
        return asked

    def answered(self, event: Opened | OpenFailed, now: int) -> bool:
        """Whether a partition is open now that was not."""
        wanted = self._wanted.get(event.folder)
        if wanted is None or wanted.number != event.number:
            return False
        if isinstance(event, Opened):
            del self._wanted[event.folder]
            self._open[event.folder] = event
            return True
        wanted.number, wanted.trouble = 0, event.trouble
        wanted.due_us, wanted.pause_us = now + wanted.pause_us, min(2 * wanted.pause_us, PAUSE_US_MAX)
        return False

    def trouble(self, folder: str) -> str:
        """Why a folder is not open yet, if it could not be opened."""
        wanted = self._wanted.get(folder)
        return "" if wanted is None else wanted.trouble

    def troubles(self) -> dict[str, str]:
        """What is wrong with which folder. O(folders)."""
        found = {folder: each.partition.trouble for folder, each in self._open.items() if each.partition.trouble}
        return found | {folder: wanted.trouble for folder, wanted in self._wanted.items() if wanted.trouble}
