"""The open segment, which takes entries until its bytes are handed to the disk.

Law: once bytes are handed to the disk they never change, so writing them again after a failure is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from rove.data.log.segments.carrier import Carrier
from rove.data.log.segments.commands import Bytes, Command, Delete, Position, Sync, SyncFolder, Truncate, Write
from rove.data.log.segments.expiry import Sealed
from rove.data.log.segments.format import (
    END_OF_STREAM,
    Entry,
    Head,
    Line,
    Manifest,
    data_file,
    frame,
    index_file,
    preamble,
)
from rove.model.batch import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What one segment adds in a group: the bytes of its rows and of its index, and their places."""

    segment: int
    created: bool
    data_from: int
    data: tuple[Bytes, ...]
    index_from: int
    index: tuple[bytes, ...]
    entries: tuple[Entry, ...]

    def repair(self) -> list[Command]:
        """Undo a failed attempt: restore the earlier lengths.

        A new segment shows that the one before it is complete, so it is removed before that one is cut.
        """
        data, index = data_file(self.segment), index_file(self.segment)
        if self.created:
            return [Delete(index), Delete(data), SyncFolder()]
        rows: list[Command] = [Truncate(data, self.data_from)] if self.data else []
        return [*rows, Truncate(index, self.index_from)] if self.index else rows

    def write_rows(self) -> list[Command]:
        """Sync the name of a new segment before the next one is written, so that no segment is missing in between."""
        file = data_file(self.segment)
        commands: list[Command] = [Write(file, self.data_from, self.data), Sync(file)] if self.data else []
        return [*commands, SyncFolder()] if self.created else commands

    def write_index(self) -> list[Command]:
        """Sync the name of a new index as well, so that no index is missing before the next one."""
        file = index_file(self.segment)
        commands: list[Command] = [Write(file, self.index_from, self.index), Sync(file)] if self.index else []
        return [*commands, SyncFolder()] if self.created else commands


class Segment:
    """An open segment: what it holds on the disk, and what waits to be written."""

    __slots__ = (
        "_carrier", "_head", "_waiting", "bytes", "count", "damaged", "data_end", "first", "index_end", "newest_us",
        "number", "oldest_us", "position", "sealed",
    )  # fmt: skip

    def __init__(self, number: int, first: Position, carrier: Carrier) -> None:
        self.number, self.first, self._carrier = number, first, carrier
        self.oldest_us = self.newest_us = 0  # when entries were handed out
        self._head: tuple[bytes, bytes] | None = None  # the start of both files, until it is written
        self._waiting: list[tuple[Header, memoryview | None, int]] = []
        self.bytes = 0  # of rows, including waiting ones
        self.count = 0  # of entries, including waiting ones
        self.position, self.data_end, self.index_end = first, 0, 0  # handed out
        self.sealed = self.damaged = False

    def create(self, schema: bytes, head: Head) -> None:
        """Give a new segment its first bytes."""
        record = frame(head)
        self._head = schema + self._carrier.pack(record), preamble(head.segment, head.position) + record
        self.bytes = len(self._head[0])

    def add(self, header: Header, rows: memoryview | None, low: int) -> None:
        self._waiting.append((header, rows, low))
        self.count += 1
        if rows is not None:
            self.bytes += rows.nbytes

    def resume(self, entry: Entry, index_end: int) -> None:
        """Add an entry that was found in the files."""
        self.oldest_us, self.newest_us = self.oldest_us or entry.at_us, entry.at_us
        self.resume_at(Position(entry.position + 1), entry.offset + entry.length, index_end)

    def resume_at(self, position: Position, data_end: int, index_end: int) -> None:
        """Go on from an entry and the lengths of the two files."""
        self.position, self.count = position, position - self.first
        self.bytes, self.data_end, self.index_end = data_end, data_end, index_end

    def hand_out(self, group: Position, now_us: int) -> Handed | None:
        """All waiting entries with their CRCs, as the bytes of two files."""
        if not (self._waiting or self._head or self.sealed):
            return None
        data_from, index_from, created = self.data_end, self.index_end, self._head is not None
        data: list[Bytes] = []
        index: list[bytes] = []
        entries: list[Entry] = []
        if self._head is not None:
            data, index = [self._head[0]], [self._head[1]]
            self.data_end, self._head = len(self._head[0]), None
        if self._waiting:
            manifest = self._manifest(group, now_us)
            packed = self._carrier.pack(frame(manifest))
            entries += manifest.entries(self.data_end + len(packed))
            data += [packed, *(rows for _, rows, _ in self._waiting if rows is not None)]
            index += map(frame, entries)
            self.position = Position(self.position + len(entries))
            self.data_end = entries[-1].offset + entries[-1].length
            self.bytes += len(packed)
            self.oldest_us, self.newest_us, self._waiting = self.oldest_us or now_us, now_us, []
        if self.sealed and not self.damaged:
            data.append(END_OF_STREAM)
            self.data_end += len(END_OF_STREAM)
        self.index_end += sum(map(len, index))
        return Handed(
            segment=self.number,
            created=created,
            data_from=data_from,
            data=tuple(data),
            index_from=index_from,
            index=tuple(index),
            entries=tuple(entries),
        )

    def as_sealed(self) -> Sealed:
        size = self.data_end + self.index_end
        return Sealed(number=self.number, first=self.first, end=self.position, bytes=size, newest_us=self.newest_us)

    def _manifest(self, group: Position, now_us: int) -> Manifest:
        lines = [
            Line(header, 0, 0, low) if rows is None else Line(header, rows.nbytes, crc32(rows), low)
            for header, rows, low in self._waiting
        ]
        return Manifest(
            segment=self.number, at=self.data_end, position=self.position, group=group, at_us=now_us, lines=lines
        )
