"""Carries records of ours inside an Arrow stream.

Law: readers of Arrow find a record batch without rows, and nothing else. We find the record, with its CRC, and can
search for the next one after bad bytes.

    continuation, size | Message of ours | Arrow's own message for no rows | its buffers | record
                         └─ points to its RecordBatch, and says that the body is so much longer
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from rove.data.log.segments.format import BODY_BYTES_MAX, body_at

Read: TypeAlias = Callable[[str, int, int], bytes]  # file, offset, length

# Arrow's continuation and size. Then the Message: the offset of its table; the vtable, with its bytes, those of the
# table, and the places of version, kind, RecordBatch and length of the body; the table, with its distance from the
# vtable, the offset of the RecordBatch, the length of the body, the version, the kind, and in four bytes that Arrow
# does not use, where in the body the record begins.
_START = Struct("<IIIHHHHHHiIqhBxI")
_CONTINUES, _METADATA_V5, _RECORD_BATCH = 0xFFFFFFFF, 4, 3
_LAYOUT = (16, 12, 24, 16, 18, 4, 8, 12)
_SIGN = Struct("<IHHHHHHi").pack(*_LAYOUT)  # the same in all carriers, 8 bytes after the start
_ROOT_BYTES = _START.size - 8
_OFFSET_AT = 20  # where the offset of the RecordBatch is; it counts from there
_PROBE_BYTES = 4_096  # most carriers are smaller
_CHUNK_BYTES = 1024 * 1024  # bytes that are searched at a time


class Carried(NamedTuple):
    """A record found in a stream, and the place of its carrier."""

    body: bytes
    start: int
    end: int


class Carrier:
    """Makes carriers for a stream of given columns."""

    __slots__ = ("_columns", "_offset", "_skips")

    def __init__(self, schema: pa.Schema) -> None:
        nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
        message: bytes = nothing.serialize().to_pybytes()
        end = 8 + _number(message, 4, 4)
        metadata, buffers = message[8:end], message[end:]
        root = _number(metadata, 0, 4)
        vtable = root - int.from_bytes(metadata[root : root + 4], "little", signed=True)
        place = root + _number(metadata, vtable + 8, 2)
        self._offset = _ROOT_BYTES + place + _number(metadata, place, 4) - _OFFSET_AT
        self._columns, self._skips = metadata + buffers, len(buffers)

    def pack(self, record: bytes) -> bytes:
        """A record in its carrier. Its length is a multiple of 8, as that of the record."""
        size = _ROOT_BYTES + len(self._columns) - self._skips
        body = self._skips + len(record)
        start = _START.pack(_CONTINUES, size, *_LAYOUT, self._offset, body, _METADATA_V5, _RECORD_BATCH, self._skips)
        return start + self._columns + record


def carried(read: Read, file: str, at: int) -> Carried | None:
    """The record whose carrier begins at a place."""
    data = read(file, at, _PROBE_BYTES)
    if len(data) < _START.size or data[8 : 8 + len(_SIGN)] != _SIGN:
        return None
    continues, size, *_, body, _, _, skips = _START.unpack_from(data)
    if continues != _CONTINUES or not 0 <= skips < body <= BODY_BYTES_MAX or size > BODY_BYTES_MAX:
        return None
    start, end = 8 + size + skips, 8 + size + body
    if len(data) < end:
        data = read(file, at, end)
    found = body_at(data, start, end) if len(data) >= end else None
    return None if found is None else Carried(found, at, at + end)


def search(read: Read, file: str, at: int) -> Iterator[Carried]:
    """All records from a place on that look right, in order. Rows may contain such bytes by chance or by intent, so the
    caller checks what a record says of itself. O(bytes)."""
    while data := read(file, at, _CHUNK_BYTES):
        sign = data.find(_SIGN, 8)
        if sign < 0:
            if len(data) < _CHUNK_BYTES:
                return
            at += len(data) - len(_SIGN) - 8
            continue
        found = carried(read, file, at + sign - 8)
        if found is not None:
            yield found
        at += sign - 7


def schema_bytes(read: Read, file: str) -> bytes | None:
    """The message of the columns, which opens a stream. It has no body."""
    start = read(file, 0, 8)
    if len(start) < 8 or _number(start, 0, 4) != _CONTINUES or not 0 < _number(start, 4, 4) <= BODY_BYTES_MAX:
        return None
    end = 8 + _number(start, 4, 4)
    found = read(file, 0, end)
    return found if len(found) == end else None


def _number(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little")
