"""Reads the rows of entries from mapped segment files.

Law: bytes are checked against their CRC before they are decoded, and only the needed columns are decoded. Nothing is
copied: a column is a view of the file until it is written to Spark's socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from rove.cloud.source.entries import Place
from rove.cloud.source.quarantine import Quarantine, gone
from rove.cloud.source.shape import Label, Shape, event_times
from rove.data.log.segments.commands import Bytes
from rove.data.log.segments.damage import Damaged, EntriesGone
from rove.data.log.segments.format import data_file
from rove.model.ids import Origin
from rove.model.schema import BIGINT
from rove.runtime.disk.disk import LogFolder

ROWS_PER_BATCH = 32_768  # smaller batches are merged, because each batch costs Spark more than merging costs
ROWS_PER_BATCH_MAX = 65_536


class FolderRows:
    """Reads entries of one folder. Reading in order is cheapest: each segment is then mapped once."""

    def __init__(
        self, folder: str | Path, shape: Shape, origins: Mapping[int, Origin] | Sequence[Origin], skip: bool
    ) -> None:
        self._folder, self._shape, self._origins = Path(folder), shape, origins
        self._disk = LogFolder(folder)
        self._quarantine = Quarantine(folder, skip)
        self._segment: _Segment | None = None

    def read(self, place: Place, above: int | None = None, upto: int | None = None) -> pa.RecordBatch | None:
        """The rows of an entry between two times. None if the entry is damaged and damage is skipped."""
        rows = self._decoded(place)
        if rows is None:
            return None
        if above is not None or upto is not None:
            rows = rows.filter(_between(self._times(rows, place), above, upto))
        label = Label(
            origin=self._origins[place.origin],
            seq=place.seq,
            watermark=place.watermark,
            produced_at=place.produced_at,
        )
        return self._shape.conform(rows, label)

    def times(self, place: Place) -> pa.Array:
        """The event time of every row, in microseconds."""
        rows = self._decoded(place)
        return pa.array([], BIGINT) if rows is None else self._times(rows, place)

    def extent(self, place: Place) -> tuple[int, int] | None:
        """The oldest and the newest event time; None if no row has one."""
        rows = self._decoded(place)
        if rows is None or (at := rows.schema.get_field_index(self._shape.time or "")) < 0:
            return None
        found = pc.min_max(event_times(rows.column(at)))
        return (found["min"].as_py(), found["max"].as_py()) if found["min"].is_valid else None

    def _decoded(self, place: Place) -> pa.RecordBatch | None:
        try:
            if self._segment is None or not self._segment.holds(place):  # another segment, or this one has grown
                data = self._mapped(place)
                self._segment = _Segment(place.segment, data, self._shape, self._folder)
            return self._segment.rows(place)
        except (_Unreadable, pa.ArrowException, StopIteration) as error:
            self._segment = None  # its stream is at an unknown place now
            damaged = Damaged(
                f"the rows cannot be read: {error}",
                file=data_file(place.segment),
                offset=place.offset,
                origin=self._origins[place.origin],
                seq=place.seq,
                through=place.through,
            )
            self._quarantine.meet(damaged, f"{place.segment:010d}-{place.position}", place.rows)
            return None

    def _mapped(self, place: Place) -> Bytes:
        try:
            return self._disk.mapped(data_file(place.segment), place.offset + place.length)
        except FileNotFoundError:
            raise gone(self._folder, EntriesGone(place.position, place.position + 1)) from None

    def _times(self, rows: pa.RecordBatch, place: Place) -> pa.Array:
        """The event times of rows. A row without one gets the oldest of its entry."""
        oldest = pa.scalar(place.least, BIGINT)
        at = rows.schema.get_field_index(self._shape.time or "")
        if at < 0:
            return pa.repeat(oldest, rows.num_rows)
        return pc.fill_null(event_times(rows.column(at)), oldest)


class _Segment:
    """One segment file, decoded by Arrow's stream reader, which skips columns that are not needed.

    The file is an Arrow stream. The reader gets its messages in the order of our reads.
    """

    def __init__(self, number: int, data: Bytes, shape: Shape, folder: Path) -> None:
        self._number, self._bytes = number, pa.py_buffer(data)
        schema = pa.ipc.read_schema(self._bytes)
        shape.check(schema, str(folder / data_file(number)))
        wanted = [at for name in shape.wanted() if (at := schema.get_field_index(name)) >= 0]
        self._feed = _Feed(schema.serialize())
        # At least one column is read, because a batch without columns has no number of rows.
        options = pa.ipc.IpcReadOptions(included_fields=sorted(wanted or [0]))
        self._stream = pa.ipc.open_stream(pa.PythonFile(self._feed, "r"), options=options)

    def holds(self, place: Place) -> bool:
        return place.segment == self._number and place.offset + place.length <= self._bytes.size

    def rows(self, place: Place) -> pa.RecordBatch:
        if not self.holds(place):
            raise _Unreadable("the file ends before them")
        message = self._bytes.slice(place.offset, place.length)
        if crc32(message) != place.crc:
            raise _Unreadable("they are not what was written")
        self._feed.left = message
        try:
            return self._stream.read_next_batch()
        except OSError as error:  # Arrow raises it for a message that ends too early
            raise _Unreadable(str(error)) from error


class _Unreadable(Exception):
    """The bytes cannot be decoded."""


class _Feed:
    """A file object for Arrow that returns the buffer that was set last, without a copy."""

    closed = False

    def __init__(self, left: pa.Buffer) -> None:
        self.left = left

    def read_buffer(self, length: int) -> pa.Buffer:
        part, self.left = self.left.slice(0, length), self.left.slice(min(length, self.left.size))
        return part

    def read(self, length: int) -> bytes:
        return bytes(self.read_buffer(length).to_pybytes())

    def close(self) -> None:
        self.closed = True


def _between(times: pa.Array, above: int | None, upto: int | None) -> pa.Array:
    if above is None:
        return pc.less_equal(times, pa.scalar(upto, BIGINT))
    newer = pc.greater(times, pa.scalar(above, BIGINT))
    return newer if upto is None else pc.and_(newer, pc.less_equal(times, pa.scalar(upto, BIGINT)))


def coalesced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of a good size: small batches are merged, large ones are cut."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count >= ROWS_PER_BATCH:
            yield from _cut(waiting)
            waiting, count = [], 0
    if waiting:
        yield from _cut(waiting)


def _cut(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    for start in range(0, whole.num_rows, ROWS_PER_BATCH_MAX):
        yield whole.slice(start, ROWS_PER_BATCH_MAX)
