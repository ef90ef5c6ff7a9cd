"""What lies in a partition, found by whoever wrote it: its rows are read when they are needed, and checked then.

Law: rows that are given are those that were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from rove.data.log.segments.commands import Disk, Position
from rove.data.log.segments.damage import Damaged
from rove.data.log.segments.format import Mark, data_file
from rove.data.log.segments.reader import Reader
from rove.model.batch import Header
from rove.model.events import Payload


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows in a file. It is opened when they are read: what waits for long holds no descriptor."""

    disk: Disk
    file: str
    offset: int
    length: int
    crc: int

    def __len__(self) -> int:
        return self.length

    def load(self) -> Payload:
        """The rows. An OSError if they cannot be read, or are not what was written."""
        rows = self.disk.read(self.file, self.offset, self.length)
        if len(rows) != self.length or crc32(rows) != self.crc:
            raise OSError(f"the rows at byte {self.offset} of {self.file} are not what was written")
        return rows


def lying(disk: Disk, reader: Reader) -> Iterator[tuple[Position, Header, Stored]]:
    """What a reader has not seen yet, and where its rows lie."""
    for entry in reader.rest():
        yield (
            entry.position,
            entry.header,
            Stored(disk, data_file(entry.segment), entry.offset, entry.length, entry.crc),
        )


def entries(disk: Disk, upto: Mark) -> Iterator[tuple[Header, Payload | None]]:
    """Everything up to a mark, in order, with its rows."""
    reader = Reader(disk, upto=upto)
    while found := reader.entries():
        for entry in found:
            header, file = entry.header, data_file(entry.segment)
            rows = disk.read(file, entry.offset, entry.length) if entry.length else None
            if rows is not None and crc32(rows) != entry.crc:
                what, origin = "the rows are not what was written", header.origin
                raise Damaged(
                    what, file=file, offset=entry.offset, origin=origin, seq=header.seq, through=header.through
                )
            yield header, rows
