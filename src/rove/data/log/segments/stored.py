"""The address of rows on a node's disk. Machines keep it instead of the rows.

Law: an address includes a CRC, so a reader can tell whether the rows have changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rove.data.log.segments.commands import Position
from rove.data.log.segments.format import Entry, data_file
from rove.model.batch import Header
from rove.model.events import Payload


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows in a file of a folder."""

    folder: str
    file: str
    offset: int
    length: int
    crc: int

    def __len__(self) -> int:
        return self.length


class ReadEntry(NamedTuple):
    """An entry of a log that was read back, with its rows if they were requested and exist."""

    position: Position
    header: Header
    rows: Stored
    payload: Payload | None = None


def stored(folder: str, entry: Entry) -> Stored:
    """The address of an entry's rows."""
    return Stored(folder, data_file(entry.segment), entry.offset, entry.length, entry.crc)
