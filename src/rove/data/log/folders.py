"""The partitions of a node: those that are open, and those that are being opened.

Law: a partition is open when the answer to its request has arrived, and not before. If it cannot be opened, it is
tried again after a pause that grows, and the trouble is reported meanwhile. Answers to an earlier request are ignored.

    want ─► Open … Opened ─► open          Open … OpenFailed ─ pause ─► Open …
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rove.data.events import Open, Opened, OpenFailed
from rove.data.log.segments.format import Mark
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings

PAUSE_US_MIN = 100_000  # between two attempts to open a partition; each pause is twice as long as the last
PAUSE_US_MAX = 10_000_000


@dataclass(slots=True)
class _Wanted:
    """A partition that is not open yet."""

    schema: pa.Schema
    settings: LogSettings | None
    number: int = 0  # the number of the pending request; 0 if there is none
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
        """The partition if it is open. If not, it will be opened."""
        found = self._open.get(folder)
        if found is None:
            self._wanted.setdefault(folder, _Wanted(schema, settings))
            return None
        return found.partition

    def get(self, folder: str) -> Partition | None:
        found = self._open.get(folder)
        return None if found is None else found.partition

    def upto(self, folder: str) -> Mark:
        """The end of an open partition when it was opened."""
        return self._open[folder].upto

    def forget(self, folder: str) -> None:
        """A partition is no longer needed."""
        self._open.pop(folder, None)
        self._wanted.pop(folder, None)

    def ask(self, now: int) -> list[Open]:
        """The requests that are due. O(folders that are not open)."""
        asked = []
        for folder, wanted in self._wanted.items():
            if not wanted.number and now >= wanted.due_us:
                self._numbers += 1
                wanted.number = self._numbers
                asked.append(Open(folder, wanted.number, wanted.schema, wanted.settings))
        return asked

    def answered(self, event: Opened | OpenFailed, now: int) -> bool:
        """Take an answer. Returns whether a partition has been opened by it."""
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

    def damage(self) -> dict[str, str]:
        """The damage in each open folder. O(folders)."""
        return {folder: text for folder, each in self._open.items() if (text := each.partition.damage)}

    def trouble(self, folder: str) -> str:
        """Why a folder could not be opened yet; empty if there was no trouble."""
        wanted = self._wanted.get(folder)
        return "" if wanted is None else wanted.trouble

    def troubles(self) -> dict[str, str]:
        """The trouble of each folder. O(folders)."""
        found = {folder: each.partition.trouble for folder, each in self._open.items() if each.partition.trouble}
        return found | {folder: wanted.trouble for folder, wanted in self._wanted.items() if wanted.trouble}
