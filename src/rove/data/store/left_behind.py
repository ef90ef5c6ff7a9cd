"""Finds the batches that earlier starts of a node left on its disk: they waited and were not sent.

Law: each is found once, in the order of its number. A batch whose rows are damaged is found without them: its name goes
on, and its header says that they are lost. Damage is counted, and named for its query. If the disk does not answer in
time, the node goes on without the batches; the next start finds them.

    ListFolders ─► Open each ─► ReadLog, part by part ─► all is known
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from rove.data.events import Listed, ListFolders, LogRead, Note, ReadLog
from rove.data.log.folders import Folders
from rove.data.log.segments.commands import START, Position
from rove.data.log.segments.stored import Stored
from rove.data.log.settings import LogSettings
from rove.model.batch import Header, HeaderKind
from rove.model.disk_folders import RETENTION, WaitingFolder, read_folder
from rove.model.errors import BrokenInvariant
from rove.model.ids import QueryId

NO_COLUMNS = pa.schema([])
PATIENCE_US = 30_000_000  # how long to wait for the disk, from the first request on
PAUSE_US = 200_000  # between two attempts to list or to read


class Found(NamedTuple):
    """A batch that an earlier start left, without rows if they are damaged."""

    header: Header
    rows: Stored | None
    folder: str
    position: Position


@dataclass(slots=True)
class _Reading:
    """A folder that is being opened, or read."""

    position: Position = START
    asked: bool = False
    due_us: int = 0
    unread: int = 0


class LeftBehind:
    """For one store. `damaged` counts batches that could not be read, `damage` names the first of each query; `folders`
    are the folders found."""

    def __init__(self, folders: Folders, settings: LogSettings, start: int) -> None:
        self._disk, self._settings, self._start = folders, settings, start
        self._found: dict[QueryId, list[Found]] = {}
        self._reading: dict[str, _Reading] = {}
        self.folders: list[str] = []  # folders that were opened
        self.known = False
        self.damaged = 0
        self.damage: dict[QueryId, str] = {}
        self._asked, self._due_us, self._began_us = False, 0, -1
        self._listed = False
        self._unwanted: set[QueryId] = set()  # queries that ended before everything was known
        self._notes: list[Note] = []

    def ask(self, now: int) -> list[ListFolders | ReadLog | Note]:
        """The requests to the disk that are due. O(1) once everything is known."""
        said: list[ListFolders | ReadLog | Note] = [*self._notes]
        self._notes.clear()
        if self.known:
            return said
        self._began_us = now if self._began_us < 0 else self._began_us
        if now - self._began_us > PATIENCE_US:
            self._give_up()
        elif not self._listed and not self._asked and now >= self._due_us:
            self._asked = True
            said.append(ListFolders(RETENTION))
        for folder, reading in self._reading.items():
            if self._disk.get(folder) is not None and not reading.asked and now >= reading.due_us:
                reading.asked = True
                said.append(ReadLog(folder, reading.position, self._disk.upto(folder), rows=False))
        return said

    def listed(self, event: Listed, now: int) -> None:
        """Take the list of folders, or plan to list them again."""
        self._asked, self._due_us = False, now + PAUSE_US
        if event.trouble or self.known:
            return
        self._listed = True
        for folder in sorted(event.folders):
            found = read_folder(folder)
            if isinstance(found, WaitingFolder) and found.start != self._start:
                self._reading[folder] = _Reading()
                self._disk.want(folder, NO_COLUMNS, self._settings)
        self._settle()

    def read(self, event: LogRead, now: int) -> bool:
        """Take a part of a folder. Returns whether it was one of these."""
        reading = self._reading.get(event.folder)
        if reading is None or reading.position != event.position:
            return isinstance(read_folder(event.folder), WaitingFolder)
        reading.asked = False
        if event.trouble:
            reading.due_us = now + PAUSE_US
            return True
        query = _waiting(event.folder).query
        for entry in event.entries:
            header = replace(entry.header, kind=HeaderKind.BATCH)
            found = Found(header, entry.rows if header.rows else None, event.folder, entry.position)
            self._found.setdefault(query, []).append(found)
        for why in event.unread:
            self._notes.append(Note(f"a batch in {event.folder} cannot be read: {why}"))
            self.damage.setdefault(query, why)
        reading.unread += len(event.unread)
        reading.position = event.next
        if event.over:
            self._over(event.folder, reading)
        return True

    def _over(self, folder: str, reading: _Reading) -> None:
        partition = self._disk.get(folder)
        # The partition found the same damage when it was opened, but did not check all rows.
        self.damaged += max(reading.unread, 0 if partition is None else partition.damaged)
        if partition is not None and partition.damage:
            self.damage.setdefault(_waiting(folder).query, f"{folder}/{partition.damage}")
        del self._reading[folder]
        self.folders.append(folder)
        self._settle()

    def _give_up(self) -> None:
        """Go on without the batches that could not be read in time."""
        for folder in list(self._reading):
            self.damaged += 1
            why = self._disk.trouble(folder) or "the disk does not answer"
            self._notes.append(Note(f"what {folder} holds cannot be read, it is left for the next start: {why}"))
            self._disk.forget(folder)
            query = _waiting(folder).query
            self._found[query] = [each for each in self._found.get(query, ()) if each.folder != folder]
        if not self._listed:
            self.damaged += 1
            self._notes.append(Note(f"what earlier starts left in {RETENTION} cannot be listed; it is left there"))
        self._reading.clear()
        self._listed = True
        self._settle()

    def _settle(self) -> None:
        if self._listed and not self._reading and not self.known:
            self.known = True
            self._found = {q: found for q, found in self._found.items() if found and q not in self._unwanted}
            for found in self._found.values():
                found.sort(key=lambda each: (_waiting(each.folder).start, each.header.seq))

    def take(self, query: QueryId) -> list[Found]:
        """The batches of a query in the order of their numbers, each once, when everything is known."""
        return self._found.pop(query, []) if self.known else []

    def forget(self, query: QueryId) -> None:
        """Drop the batches of a query that has ended."""
        self._found.pop(query, None)
        self.damage.pop(query, None)
        if not self.known:
            self._unwanted.add(query)

    def wants(self, folder: str) -> bool:
        """Whether a folder may hold batches that no query has taken yet."""
        return not self.known or _waiting(folder).query in self._found

    def headers(self) -> Iterator[Header]:
        """The headers that no query has taken yet."""
        return (found.header for left in self._found.values() for found in left)


def _waiting(path: str) -> WaitingFolder:
    """The folder of a path that was listed or made here."""
    found = read_folder(path)
    if not isinstance(found, WaitingFolder):
        raise BrokenInvariant(f"`{path}` is no folder of waiting batches")
    return found


def is_of(path: str, start: int) -> bool:
    """Whether a folder belongs to a start."""
    return _waiting(path).start == start
