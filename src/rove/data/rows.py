"""Rows as bytes, and back. The only place where rows that came from elsewhere are decoded.

Law: bytes of others give rows of the schema, or a `ProtocolError`, whatever they are. Memory is bounded before it is
taken: plain rows are as large as their bytes, because compressed buffers are refused, and packed rows say how large
they will be.
"""

from __future__ import annotations

from struct import Struct

import pyarrow as pa

from rove.data.store.packing import UNPACKED_SLACK_BYTES, unpack
from rove.model.errors import ProtocolError
from rove.model.events import Payload

_I32, _U32, _U16, _U8 = Struct("<i"), Struct("<I"), Struct("<H"), Struct("<B")
_PREFIX = b"\xff\xff\xff\xff"  # in front of a message, before the length of its head
_HEAD = 8  # where the head begins
_KIND, _BODY = 1, 2  # the fields of a message's head: the kind of what follows, and where it is
_RECORD_BATCH = 3  # that kind
_COMPRESSION = 3  # a field of a record batch


def encode_rows(data: pa.RecordBatch | None) -> Payload | None:
    """Encoded rows: one Arrow IPC message without its schema, which the plan knows."""
    return None if data is None else memoryview(data.serialize())


def decode_rows(payload: Payload, schema: pa.Schema, count: int, packed: int = 0) -> pa.RecordBatch:
    """The rows, `count` of them. If they are packed, they had so many bytes before. O(rows)."""
    if packed:
        data = unpack(payload, schema, packed)
    else:
        try:
            _refuse_compressed(memoryview(payload).cast("B"))
            data = pa.ipc.read_record_batch(pa.py_buffer(payload), schema)
            data.validate(full=True)
        except Exception as error:  # Arrow and Python each have their own errors for bad bytes
            raise ProtocolError("malformed", f"{len(payload)} bytes are not rows of these columns: {error}") from error
    if data.num_rows != count:
        raise ProtocolError("malformed", f"{data.num_rows} rows came, and {count} were named")
    return data


def unpack_rows(payload: Payload, schema: pa.Schema, count: int, packed: int) -> Payload | None:
    """Packed rows as plain ones. More bytes than were declared are refused, because credit was given for those."""
    rows = encode_rows(decode_rows(payload, schema, count, packed))
    if rows is not None and len(rows) > packed + UNPACKED_SLACK_BYTES:
        raise ProtocolError("malformed", f"packed rows of {len(rows)} bytes came on credit for {packed}")
    return rows


def _refuse_compressed(message: memoryview) -> None:
    """Refuse a message that is no record batch, or one whose buffers are compressed: a few bytes may become gigabytes.
    The head of a message is a FlatBuffer."""
    if message[:4] != _PREFIX:
        raise ValueError("they are not an Arrow message")
    root = _HEAD + _U32.unpack_from(message, _HEAD)[0]
    kind, body = _field(message, root, _KIND), _field(message, root, _BODY)
    if not kind or not body or _U8.unpack_from(message, kind)[0] != _RECORD_BATCH:
        raise ValueError("they are not a record batch")
    if _field(message, body + _U32.unpack_from(message, body)[0], _COMPRESSION):
        raise ValueError("they are compressed; send them plain or packed")


def _field(message: memoryview, table: int, number: int) -> int:
    """Where a field of a table is; 0 if the table lacks it."""
    index = table - _I32.unpack_from(message, table)[0]
    if 4 + 2 * number >= _U16.unpack_from(message, index)[0]:
        return 0
    offset = _U16.unpack_from(message, index + 4 + 2 * number)[0]
    return table + offset if offset else 0
