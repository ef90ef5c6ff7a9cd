"""Looks at packed rows before they are unpacked: how much memory they will take.

Law: packed rows of others are unpacked only if every page says that it fits the bytes that were declared for it. A page
of a few bytes may stand for gigabytes, and the sums in a Parquet file may lie; so the head of each page is read, where
the reader will look for it. Encodings in which a few bytes stand for many values are refused; packing has none. Nothing
of Arrow is asked, because damaged metadata can end the process there.

    file   = "PAR1", pages, footer, length of the footer, "PAR1"
    footer = Thrift, compact protocol: row groups, their columns, where the pages of each column begin
    page   = Thrift: sizes, number of values, encoding; then compressed bytes
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rove.data.store.thrift import Fields, read_struct

MAGIC = b"PAR1"
TAIL_BYTES = 8  # the length of the footer, and the magic bytes again
DATA_PAGE = 0
PLAIN, RLE, BYTE_STREAM_SPLIT = 0, 3, 9
PAGES_MAX = 100_000
# The numbers of fields in the footer, a row group, a column, what is known of a column, a page and a data page.
_GROUPS = 4
_COLUMNS = 1
_CHUNK = 3
_KIND, _CHUNK_BYTES, _PAGES_AT, _DICTIONARY_AT = 1, 7, 9, 11
_TYPE, _UNPACKED, _PACKED, _DATA = 1, 2, 3, 5
_VALUES, _ENCODING = 1, 2
# What a value takes in memory, null or not, by its kind in the file. Of a text it is the place.
_BITS = {0: 1, 1: 32, 2: 64, 3: 96, 4: 32, 5: 64, 6: 32}
_BITS_MOST = 256  # of any other kind: a decimal


def check_pages(file: memoryview, bytes_max: int) -> None:
    """Raise ValueError if a Parquet file would take more than so many bytes. O(pages)."""
    size = pages = 0
    for chunk in _chunks(file):
        if _DICTIONARY_AT in chunk:
            raise ValueError("it has a dictionary, and packing writes none")
        bits = _BITS.get(_size(chunk, _KIND), _BITS_MOST)
        begins = _size(chunk, _PAGES_AT)
        for unpacked, values in _pages(file, begins, begins + _size(chunk, _CHUNK_BYTES)):
            size += max(unpacked, values * bits // 8)
            pages += 1
            if size > bytes_max or pages > PAGES_MAX:
                raise ValueError(f"it unpacks to more than {bytes_max} bytes")


def _chunks(file: memoryview) -> Iterator[Fields]:
    """What the footer says of each column of each row group."""
    tail = len(file) - TAIL_BYTES
    begins = tail - int.from_bytes(file[tail : tail + 4], "little") if tail > 0 else -1
    if begins < len(MAGIC) or file[: len(MAGIC)] != MAGIC or file[-len(MAGIC) :] != MAGIC:
        raise ValueError("it is no Parquet file")
    footer, _ = read_struct(file[:tail], begins)
    for group in _list(footer, _GROUPS):
        for column in _list(group, _COLUMNS):
            chunk = column.get(_CHUNK)
            if not isinstance(chunk, dict):
                raise ValueError("its footer lacks a column")
            yield chunk


def _pages(file: memoryview, at: int, end: int) -> Iterator[tuple[int, int]]:
    """The unpacked size and the number of values of each page."""
    if end > len(file):
        raise ValueError("its pages are outside of it")
    while at < end:
        head, at = read_struct(file[:end], at)
        data = head.get(_DATA)
        if head.get(_TYPE) != DATA_PAGE or not isinstance(data, dict):
            raise ValueError("it has a page of another kind than packing writes")
        if data.get(_ENCODING) not in (PLAIN, RLE, BYTE_STREAM_SPLIT):
            raise ValueError("it has a page in an encoding that packing does not use")
        yield _size(head, _UNPACKED), _size(data, _VALUES)
        at += _size(head, _PACKED)
    if at != end:
        raise ValueError("its pages do not end where they should")


def _size(fields: Fields, number: int) -> int:
    size = fields.get(number)
    if not isinstance(size, int) or size < 0:
        raise ValueError("a size is missing in it")
    return size


def _list(fields: Fields, number: int) -> list[Any]:
    found = fields.get(number)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("its footer cannot be read")
    return found
