"""Reads back what a node has written, for the shells that execute a machine's disk commands.

Law: the rows returned are those that were written. A log is read in order, in parts of bounded size. Rows that are gone
for good are distinguished from rows that cannot be read now.
"""

from __future__ import annotations

from collections import deque
from zlib import crc32

from rove.data.events import Load, Loaded, LogRead, ReadLog
from rove.data.log.segments.commands import Disk, Position
from rove.data.log.segments.damage import EntriesGone
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import Entry, Mark
from rove.data.log.segments.stored import ReadEntry, Stored, stored
from rove.model.batch import without_rows

ENTRIES_MAX = 256  # entries that one command reads
BYTES_MAX = 4 * 1024 * 1024  # bytes of their rows; the last entry may exceed it


class RowsGone(OSError):
    """The rows at an address are gone or have changed."""


def load(disk: Disk, rows: Stored) -> bytes:
    """The rows at an address. RowsGone if they are not what was written, another OSError if they cannot be read now."""
    try:
        found = disk.read(rows.file, rows.offset, rows.length)
    except FileNotFoundError as error:
        raise RowsGone(f"{rows.folder}/{rows.file} is gone") from error
    if len(found) != rows.length or crc32(found) != rows.crc:
        raise RowsGone(f"the rows at byte {rows.offset} of {rows.folder}/{rows.file} are not what was written")
    return found


def loaded(disk: Disk, order: Load) -> Loaded:
    """The answer to a request for the rows at an address."""
    try:
        return Loaded(order.peer, order.order, load(disk, order.rows))
    except OSError as error:
        return Loaded(order.peer, order.order, None, str(error), gone=isinstance(error, RowsGone))


class LogCursor:
    """A position in a partition that is read back in parts, up to its end when it was opened."""

    def __init__(self, disk: Disk, upto: Mark) -> None:
        self._disk, self._upto = disk, upto
        self._next = Position(-1)  # the position at which the next part begins, if it continues here
        self._reader = Reader(disk, upto=upto)
        self._entries: deque[Entry] = deque()

    def answer(self, order: ReadLog) -> LogRead:
        """Read a part. Trouble may be over the next time; what is gone is named, and the rest is read."""
        try:
            return self._part(order)
        except OSError as error:
            self._next = Position(-1)
            return LogRead(order.folder, order.position, trouble=str(error))

    def _part(self, order: ReadLog) -> LogRead:
        if order.position != self._next:
            self._reader, self._entries = Reader(self._disk, order.position, upto=self._upto), deque()
        found: list[ReadEntry] = []
        unread: list[str] = []
        read_bytes, position, over = 0, order.position, False
        while len(found) < ENTRIES_MAX and read_bytes < BYTES_MAX:
            if not self._entries and not self._more(unread if order.rows else []):
                over = True
                break
            entry = self._entries.popleft()
            position = Position(entry.position + 1)
            try:
                payload = load(self._disk, stored(order.folder, entry)) if entry.length else None
            except RowsGone as gone:
                unread.append(str(gone))  # its name goes on, so that nobody waits for it
                found.append(ReadEntry(entry.position, without_rows(entry.header), stored(order.folder, entry)))
                continue
            read_bytes += entry.length
            rows = payload if order.rows else None
            found.append(ReadEntry(entry.position, entry.header, stored(order.folder, entry), rows))
        self._next = position
        return LogRead(order.folder, order.position, tuple(found), position, over, tuple(unread))

    def _more(self, unread: list[str]) -> bool:
        """Whether there are more entries. Those that are gone are skipped, and named in `unread`."""
        while True:
            try:
                self._entries += self._reader.entries(ENTRIES_MAX)
                return bool(self._entries)
            except EntriesGone as gone:
                unread.append(f"entries {gone.position} to {gone.first - 1} are gone")
                self._reader.position = Position(gone.first)
