"""The bytes of the index, of the commit mark, and of what a segment says of itself.

Law: every record is complete by itself: a length, a CRC, a body, padded to eight bytes. A reader that meets bad bytes
can find the next good record after them. The segment says the same as its index, so that the index can be made again.

    preamble   magic, segment, position of the first entry, crc
    record     length of the body, crc of the body, body in MessagePack: first the Head, then one Entry for each batch
    mark       magic, segment, its index bytes, its data bytes, entries of the partition, crc
    segment    schema, the Head, then for each group its Manifest and its rows; both are records in a carrier
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TypeVar
from zlib import crc32

import msgspec

from rove.data.log.segments.commands import Bytes, Position
from rove.data.log.segments.ledger import LedgerTable
from rove.model.batch import Header
from rove.model.clock import MICROS_MIN

Value = TypeVar("Value")
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # Arrow IPC's own
MARK_FILE, CONSUMERS_FILE = "commit", "consumers"
BODY_BYTES_MAX = 256 * 1024 * 1024  # a length beyond this is garbage

_PREAMBLE, _PREAMBLE_MAGIC = Struct("<8sQQI4x"), b"ROVEIDX2"
_MARK, _MARK_MAGIC = Struct("<8sQQQQI4x"), b"ROVECMT2"
_FRAME = Struct("<II")
_PADS = tuple(bytes(n) for n in range(8))
PREAMBLE_BYTES, MARK_BYTES = _PREAMBLE.size, _MARK.size


class Entry(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One batch in a log: its header and the place of its rows. An entry without rows has length 0."""

    position: Position
    group: Position  # the first entry of the group in which this one was synced
    segment: int
    offset: int
    length: int
    crc: int  # of the stored rows
    at_us: int  # when it was written
    header: Header
    low: int = MICROS_MIN  # the low watermark after this entry


class Head(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The first record of an index: a summary of all earlier segments, so that they can be deleted."""

    segment: int
    position: Position
    data_start: int  # bytes of the schema message that opens the segment
    schema_crc: int
    at_us: int
    ledger: LedgerTable


@dataclass(frozen=True, slots=True)
class Mark:
    """How far readers may read: a segment, the bytes of its two files, and the entries of the whole partition."""

    segment: int
    index_end: int
    data_end: int
    position: Position


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of an index: one record's body, or bytes that are not a record."""

    start: int
    end: int
    body: bytes | None


class Line(msgspec.Struct, frozen=True, array_like=True):
    """What a manifest says of one entry. The rest follows from its place."""

    header: Header
    length: int
    crc: int
    low: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a segment says of the entries of one group, before their rows."""

    segment: int
    at: int  # where its carrier begins
    position: Position  # of its first entry
    group: Position
    at_us: int
    lines: list[Line]

    def entries(self, rows_from: int) -> Iterator[Entry]:
        """The entries, whose rows begin at a place in the segment and lie one after the other."""
        offset = rows_from
        for position, line in enumerate(self.lines, self.position):
            yield Entry(
                position=Position(position),
                group=self.group,
                segment=self.segment,
                offset=offset,
                length=line.length,
                crc=line.crc,
                at_us=self.at_us,
                header=line.header,
                low=line.low,
            )
            offset += line.length


class Consumers(msgspec.Struct, frozen=True, array_like=True):
    """The readers of a partition and how far they have read, and the first segment that retention has not deleted."""

    positions: dict[str, int]
    first_segment: int


_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Entry).decode
_head = msgspec.msgpack.Decoder(Head).decode
_manifest = msgspec.msgpack.Decoder(Manifest).decode
_consumers = msgspec.msgpack.Decoder(Consumers | dict[str, int]).decode


def data_file(segment: int) -> str:
    return f"{segment:010d}.arrows"


def index_file(segment: int) -> str:
    return f"{segment:010d}.index"


def segment_of(file: str, suffix: str) -> int | None:
    """The segment of a file with that suffix."""
    number, dot, end = file.partition(".")
    return int(number) if dot + end == suffix and number.isdecimal() else None


def frame(value: Entry | Head | Manifest | Consumers) -> bytes:
    """A value as a record."""
    return record(_encode(value))


def record(body: bytes) -> bytes:
    """A body as a record."""
    return _FRAME.pack(len(body), crc32(body)) + body + _PADS[-len(body) % 8]


def preamble(segment: int, position: int) -> bytes:
    """The start of an index file."""
    data = _PREAMBLE.pack(_PREAMBLE_MAGIC, segment, position, 0)
    return _PREAMBLE.pack(_PREAMBLE_MAGIC, segment, position, crc32(data[:24]))


def read_preamble(data: bytes) -> tuple[int, Position] | None:
    """A segment and the position of its first entry."""
    if len(data) < PREAMBLE_BYTES:
        return None
    _, segment, position, _ = _PREAMBLE.unpack_from(data)
    return (segment, Position(position)) if data[:PREAMBLE_BYTES] == preamble(segment, position) else None


def mark_bytes(mark: Mark) -> bytes:
    """A mark as bytes."""
    data = _MARK.pack(_MARK_MAGIC, mark.segment, mark.index_end, mark.data_end, mark.position, 0)
    return data[:40] + crc32(data[:40]).to_bytes(4, "little") + bytes(4)


def read_mark(data: bytes) -> Mark | None:
    """A mark, unless it is torn."""
    if len(data) < MARK_BYTES:
        return None
    magic, segment, index_end, data_end, position, crc = _MARK.unpack_from(data)
    if magic != _MARK_MAGIC or crc != crc32(data[:40]):
        return None
    return Mark(segment, index_end, data_end, Position(position))


def body_at(data: Bytes, at: int, end: int) -> bytes | None:
    """The body of the record at `at`, if there is a complete one."""
    if at + 8 > end:
        return None
    length, crc = _FRAME.unpack_from(data, at)
    start = at + 8
    # An empty body has the CRC of zeroes, and the lost tail of a file may consist of zeroes.
    if not 0 < length <= BODY_BYTES_MAX or start + length + -length % 8 > end:
        return None
    body, pad = bytes(data[start : start + length]), data[start + length : start + length + -length % 8]
    return body if crc32(body) == crc and pad == _PADS[-length % 8] else None


def scan(data: Bytes, start: int, end: int) -> Iterator[Stretch]:
    """The records of a part of an index, and the bad bytes between them."""
    at = start
    while at < end:
        body = body_at(data, at, end)
        if body is not None:
            after = at + 8 + len(body) + -len(body) % 8
            yield Stretch(at, after, body)
            at = after
            continue
        bad = at
        while at < end and body_at(data, at, end) is None:
            at += 8
        yield Stretch(bad, min(at, end), None)


def entry_of(body: bytes, segment: int) -> Entry | None:
    """The entry in a body, if it belongs to that segment."""
    entry = _decoded(_entry, body)
    return entry if entry is not None and entry.segment == segment else None


def head_of(data: Bytes, segment: int) -> tuple[Head, int] | None:
    """The head of an index and where its entries begin."""
    named = read_preamble(bytes(data[:PREAMBLE_BYTES]))
    body = body_at(data, PREAMBLE_BYTES, len(data))
    if named is None or body is None:
        return None
    head = head_in(body)
    if head is None or (head.segment, head.position) != named or head.segment != segment:
        return None
    return head, PREAMBLE_BYTES + 8 + len(body) + -len(body) % 8


def head_in(body: bytes) -> Head | None:
    """The head in a body."""
    return _decoded(_head, body)


def manifest_in(body: bytes) -> Manifest | None:
    """The manifest in a body."""
    return _decoded(_manifest, body)


def consumers_of(data: bytes) -> Consumers | None:
    """The table of consumers, unless it is damaged. Earlier versions stored the positions alone."""
    body = body_at(data, 0, len(data))
    found = None if body is None else _decoded(_consumers, body)
    return Consumers(found, 0) if isinstance(found, dict) else found


def _decoded(decode: Callable[[bytes], Value], body: bytes) -> Value | None:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
