"""Reads a partition, from this process or another, while its writer goes on.

Law: a reader sees committed entries, in order, each once, and reads no byte beyond the commit mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from zlib import crc32

import pyarrow as pa

from rove.data.log.segments.commands import Bytes, Disk, Position
from rove.data.log.segments.damage import Damaged, EntriesGone
from rove.data.log.segments.format import (
    MARK_BYTES,
    MARK_FILE,
    PREAMBLE_BYTES,
    Entry,
    Mark,
    data_file,
    entry_of,
    head_of,
    index_file,
    read_mark,
    read_preamble,
    scan,
    segment_of,
)

MARK_READS_MAX = 3  # a mark that is being written may be torn; then the last complete one is used
ENTRIES_MAX = 4_096
SCHEMAS_MAX = 64
CHUNK_BYTES = 1024 * 1024  # bytes of an index that are read at a time


def rows_of(entry: Entry, segment: Bytes, schema: pa.Schema, *, check: bool = True) -> pa.RecordBatch | None:
    """The rows of an entry, not copied out of the segment's bytes; None if it has none."""
    if not entry.length:
        return None
    whole = entry.offset + entry.length <= len(segment)
    rows = pa.py_buffer(segment).slice(entry.offset if whole else 0, entry.length if whole else 0)
    what = "the rows are not what was written" if whole else "the rows are missing"
    if whole and not (check and crc32(memoryview(rows)) != entry.crc):
        try:
            return pa.ipc.read_record_batch(rows, schema)
        except (pa.ArrowInvalid, OSError) as error:
            what = f"the rows cannot be read: {error}"
    raise _damaged(entry, what, entry.offset)


def _damaged(entry: Entry, what: str, offset: int) -> Damaged:
    header, file = entry.header, data_file(entry.segment)
    return Damaged(what, file=file, offset=offset, origin=header.origin, seq=header.seq, through=header.through)


class Reader:
    """A position in a partition, advanced by `entries`. Damaged index records are listed in `damage` and skipped."""

    def __init__(self, disk: Disk, position: int = 0, upto: Mark | None = None) -> None:
        self.position = Position(position)
        self.damage: list[Damaged] = []
        self._disk = disk
        self._mark = upto
        self._marked = upto is not None  # the writer knows the end of the partition better than the mark
        self._segment: int | None = None
        self._left = -1  # the last segment that was read completely
        self._chunk_bytes = CHUNK_BYTES
        self._offset = 0  # in the index of that segment
        self._short = (-1, 0)  # the last segment that was found too short, and how long it should be
        self._schemas: dict[int, pa.Schema] = {}
        self._heads: dict[int, tuple[int, int]] = {}  # by segment, the bytes of its columns and their checksum

    def committed(self) -> Position:
        """The number of committed entries, including those already read."""
        for _ in range(0 if self._marked else MARK_READS_MAX):
            try:
                mark = read_mark(self._disk.read(MARK_FILE, 0, MARK_BYTES))
            except FileNotFoundError:
                break
            if mark is not None:
                self._mark = mark
                break
        return self._mark.position if self._mark is not None else Position(0)

    def entries(self, most: int = ENTRIES_MAX) -> list[Entry]:
        """The next committed entries, at most `most`. Raises EntriesGone if they were deleted."""
        found: list[Entry] = []
        end = self.committed()
        while self.position < end and len(found) < most:
            try:
                if self._segment is None and not self._seek():
                    break
            except EntriesGone:
                if found:
                    break
                raise
            more = self._read(most - len(found))
            if not more and self._segment is not None:
                break
            found += more
        return found

    def rest(self) -> Iterator[Entry]:
        """All committed entries from here on. Deleted entries are skipped."""
        while True:
            try:
                found = self.entries()
            except EntriesGone as gone:
                self.position = Position(gone.first)
                continue
            if not found:
                return
            yield from found

    def read(self, entry: Entry, *, check: bool = True) -> pa.RecordBatch | None:
        """The rows of an entry, from the mapped file; None if it has none."""
        if not entry.length:
            return None
        try:
            data = self._disk.mapped(data_file(entry.segment), entry.offset + entry.length)
        except FileNotFoundError as error:
            raise EntriesGone(entry.position, entry.position + 1) from error
        schema = self._schemas.get(entry.segment)
        if schema is None:
            if len(self._schemas) >= SCHEMAS_MAX:
                self._schemas.clear()
            start, crc = self._heads.get(entry.segment, (0, 0))
            if crc32(memoryview(data)[:start]) != crc:
                raise _damaged(entry, "the columns are not what was written", 0)
            try:
                schema = self._schemas[entry.segment] = pa.ipc.read_schema(pa.py_buffer(data))
            except (pa.ArrowInvalid, OSError) as error:
                raise _damaged(entry, f"the columns cannot be read: {error}", 0) from error
        return rows_of(entry, data, schema, check=check)

    def _read(self, most: int) -> list[Entry]:
        """Entries of the present segment. At its end the next one is opened."""
        if self._segment is None or self._mark is None:
            return []
        segment, file = self._segment, index_file(self._segment)
        sealed = segment < self._mark.segment
        try:
            end = self._disk.sizes()[file] if sealed else self._mark.index_end
            wanted = min(end - self._offset, self._chunk_bytes)
            index = self._disk.read(file, self._offset, wanted)
        except (FileNotFoundError, KeyError):
            self._segment = None
            return []
        found: list[Entry] = []
        short = len(index) < wanted
        start, whole = self._offset, short or self._offset + len(index) >= end
        named = len(self.damage)
        for stretch in scan(index, 0, len(index)):
            if stretch.body is None and stretch.end == len(index) and not whole:
                self._chunk_bytes *= 1 if stretch.start else 2  # the chunk ends within a record
                return found or self._read(most)
            entry = entry_of(stretch.body, segment) if stretch.body else None
            if entry is None:
                self.damage.append(Damaged("a record is unreadable", file=file, offset=start + stretch.start))
            elif entry.position >= self.position:
                found.append(entry)
                self.position = Position(entry.position + 1)
            self._offset = start + stretch.end
            if len(found) == most:
                return found
        if not whole:
            return found or self._read(most)
        if short and self._short != (segment, end):
            self._short = (segment, end)
            if len(self.damage) == named:  # it ends between two records
                lost = f"the index ends {end - start - len(index)} bytes before what was committed"
                self.damage.append(Damaged(lost, file=file, offset=start + len(index)))
        if sealed:
            self._segment, self._left = None, segment
        return found

    def _seek(self) -> bool:
        """Open the segment that holds the position: the one after the last, if it is there."""
        files = self._disk.sizes()
        chosen = self._following(files) or self._holding(files)
        if chosen is None:
            return False
        first, number = chosen
        if first > self.position:
            if number != self._left + 1 or self._left < 0:
                raise EntriesGone(self.position, first)
            self.position = first  # entries missing from the segment before are listed as damage
        try:
            head = head_of(self._disk.read(index_file(number), 0, files[index_file(number)]), number)
        except FileNotFoundError:
            return False
        self._segment, self._offset = number, PREAMBLE_BYTES if head is None else head[1]
        if head is not None:
            if len(self._heads) >= SCHEMAS_MAX:
                self._heads.clear()
            self._heads[number] = (head[0].data_start, head[0].schema_crc)
        return True

    def _following(self, files: Mapping[str, int]) -> tuple[Position, int] | None:
        """The segment after the last one that was read, with its first position; None if it must be searched. So a
        partition of many segments is read in order at O(1) files a segment."""
        number = self._left + 1
        if self._left < 0 or index_file(number) not in files:
            return None
        try:
            first = self._first(number)
        except FileNotFoundError:
            return None
        return None if first is None else (first, number)

    def _holding(self, files: Mapping[str, int]) -> tuple[Position, int] | None:
        """The segment that holds the position, or the first after it, with its first position. O(segments)."""
        numbers = sorted(n for file in files if (n := segment_of(file, ".index")) is not None and n > self._left)
        chosen: tuple[Position, int] | None = None
        for number in reversed(numbers):
            try:
                first = self._first(number)
            except FileNotFoundError:
                break  # deleted meanwhile, with all older ones
            if first is not None:
                chosen = first, number
                if first <= self.position:
                    break
        return chosen

    def _first(self, number: int) -> Position | None:
        """The first position of a segment; None if its index does not say it."""
        named = read_preamble(self._disk.read(index_file(number), 0, PREAMBLE_BYTES))
        return None if named is None else named[1]
