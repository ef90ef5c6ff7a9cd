"""Where the rows of an entry lie on the disk of a node: values that machines keep instead of the rows.

Law: an address says what was written there, so whoever reads it can tell whether that is still there.
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
    """An entry of a log that was read back; its rows if they were asked for and there are any."""

    position: Position
    header: Header
    rows: Stored
    payload: Payload | None = None


def stored(folder: str, entry: Entry) -> Stored:
    """Where the rows of an entry lie."""
    return Stored(folder, data_file(entry.segment), entry.offset, entry.length, entry.crc)
