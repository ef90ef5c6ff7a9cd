"""Reads an Arrow message of rows. The only place where bytes of others reach Arrow's reader.

Law: bytes of others are looked at before Arrow takes memory for them. Compressed buffers are refused, because a few
bytes may become gigabytes. What Arrow has read is checked to the last offset before anybody looks at a value: a wrong
offset may end the process.
"""

from __future__ import annotations

from struct import Struct
from typing import TypeAlias

import pyarrow as pa

Payload: TypeAlias = bytes | memoryview  # encoded rows

_I32, _U32, _U16, _U8 = Struct("<i"), Struct("<I"), Struct("<H"), Struct("<B")
_KIND, _BODY = 1, 2  # the fields of a head: the kind of what follows, and where it is
_RECORD_BATCH = 3  # that kind
_COMPRESSION = 3  # a field of a record batch
_PREFIX = b"\xff\xff\xff\xff"  # in front of a message, before the length of its head
_HEAD = 8  # where the head begins


def read_rows(payload: Payload, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in one message without its schema. Bytes that are no such rows raise an error of Arrow or Python.
    O(rows)."""
    refuse_compressed(head_of(memoryview(payload).cast("B")))
    data = pa.ipc.read_record_batch(pa.py_buffer(payload), schema)
    data.validate(full=True)
    return data


def head_of(message: memoryview) -> memoryview:
    """The head of a message, and what follows it. Raise a ValueError if this is no message."""
    if message[:4] != _PREFIX:
        raise ValueError("they are not an Arrow message")
    return message[_HEAD:]


def refuse_compressed(head: memoryview) -> None:
    """Raise a ValueError if this is not the head of a record batch, or if its buffers are compressed."""
    root = _U32.unpack_from(head, 0)[0]
    kind, body = _field(head, root, _KIND), _field(head, root, _BODY)
    if not kind or not body or _U8.unpack_from(head, kind)[0] != _RECORD_BATCH:
        raise ValueError("they are not a record batch")
    if _field(head, body + _U32.unpack_from(head, body)[0], _COMPRESSION):
        raise ValueError("they are compressed; send them plain or packed")


def _field(head: memoryview, table: int, number: int) -> int:
    """Where a field of a table is; 0 if the table lacks it."""
    index = table - _I32.unpack_from(head, table)[0]
    if 4 + 2 * number >= _U16.unpack_from(head, index)[0]:
        return 0
    offset = _U16.unpack_from(head, index + 4 + 2 * number)[0]
    return table + offset if offset else 0
