"""Reads the index of one folder from a position on, with everything that admission needs to know of its entries.

Law: only committed entries are read. At damage the reading stops, or the damage is noted and skipped, as the user
chose.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from rove.cloud.source.entries import UNKNOWN, Entries, Names, Place, columns_of, places
from rove.cloud.source.quarantine import Quarantine, gone
from rove.cloud.source.rows import FolderRows
from rove.cloud.source.shape import Shape
from rove.data.log.segments.commands import Position
from rove.data.log.segments.damage import EntriesGone
from rove.data.log.segments.disk_work.reader import MARK_READS_MAX, Reader
from rove.data.log.segments.format import MARK_BYTES, MARK_FILE, Mark, read_mark
from rove.model.clock import MICROS_MIN
from rove.runtime.disk.disk import LogFolder


class Index:
    """A reader of one folder's entries as columns."""

    def __init__(self, folder: str, time: str | None, skip_damage: bool) -> None:
        self.names = Names()
        self._folder, self._timed = folder, time is not None
        self._disk = LogFolder(folder)
        self._quarantine = Quarantine(folder, skip_damage)
        # Opened only if a header has no event times, or a limit falls inside an entry.
        self._rows = FolderRows(folder, Shape(schema=pa.schema([]), time=time), self.names.list, skip_damage)
        self._upto: Mark | None = None
        self._reader = Reader(self._disk)

    @property
    def position(self) -> int:
        """The position of the next entry."""
        return self._reader.position

    def committed(self) -> int:
        """The number of committed entries."""
        return self._reader.committed()

    def oldest(self) -> int:
        """The position of the first entry that is not deleted."""
        try:
            Reader(self._disk, 0, self._upto).entries(1)
        except EntriesGone as error:
            return error.first
        return 0

    def open(self, position: int) -> None:
        """Read from a position on."""
        self._reader = Reader(self._disk, position, self._upto)

    def end_here(self) -> None:
        """Ignore entries that are written from now on."""
        self._upto = Mark(0, 0, 0, Position(0))
        for _ in range(MARK_READS_MAX):
            try:
                mark = read_mark(self._disk.read(MARK_FILE, 0, MARK_BYTES))
            except FileNotFoundError:
                break  # nothing was written yet
            if mark is not None:
                self._upto = mark
                break

    def entries(self, most: int) -> Entries:
        """The next entries, at most `most`."""
        try:
            found = columns_of(self._reader.entries(most), self.names, self._timed)
        except EntriesGone as error:
            raise gone(self._folder, error) from error
        damage, self._reader.damage = self._reader.damage, []
        for damaged in damage:
            self._quarantine.meet(damaged, f"{Path(damaged.file).stem}-index-{damaged.offset}")
        for at in np.flatnonzero(found["least"] == UNKNOWN):
            extent = self._rows.extent(next(places(found[at : at + 1])))
            found["least"][at], found["most"][at] = extent or (MICROS_MIN, MICROS_MIN)
        return found

    def times(self, place: Place) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The event time of every row of an entry."""
        times: np.ndarray[tuple[int], np.dtype[np.int64]] = self._rows.times(place).to_numpy(zero_copy_only=False)
        return times
