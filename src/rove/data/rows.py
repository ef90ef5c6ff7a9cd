"""Rows as bytes, and back: plain ones (`model/arrow_head`) and packed ones (`data/store/packing`).

Law: bytes of others give rows of the schema, or a `ProtocolError`, whatever they are. Memory is bounded before it is
taken: plain rows are as large as their bytes, because compressed buffers are refused, and packed rows say how large
they will be.
"""

from __future__ import annotations

import pyarrow as pa

from rove.data.store.packing import UNPACKED_SLACK_BYTES, unpack
from rove.model.errors import ProtocolError
from rove.model.events import Payload
from rove.model.foreign.arrow_head import read_rows


def encode_rows(data: pa.RecordBatch | None) -> Payload | None:
    """Encoded rows: one Arrow IPC message without its schema, which the plan knows."""
    return None if data is None else memoryview(data.serialize())


def decode_rows(payload: Payload, schema: pa.Schema, count: int, packed: int = 0) -> pa.RecordBatch:
    """The rows, `count` of them. If they are packed, they had so many bytes before. O(rows)."""
    if packed:
        data = unpack(payload, schema, packed)
    else:
        try:
            data = read_rows(payload, schema)
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
