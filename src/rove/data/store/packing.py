"""Packs rows while they wait.

Law: unpacked rows equal the packed rows to the bit, nulls and NaNs included. Bytes that are not packed rows are
refused.

Sensors interleave, and each changes slowly. So rows are ordered by a column with few values (the key), numbers become
differences, and Parquet groups bytes of equal rank and compresses them. Columns of one width form one chain, in which
each number is the difference to the one before it, so that a few calls process all of them:

    key        a b a b a b      not changed, so that the order can be restored
    x          5 90 6 92 7 91   →  5 6 7 90 92 91  →  5 1 1 83 2 -1  →  zigzag  →  BYTE_STREAM_SPLIT  →  zstd
"""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rove.data.events import Pack, Packed
from rove.data.store.pages import check_pages
from rove.model.errors import ProtocolError
from rove.model.events import Payload
from rove.model.foreign.arrow_head import read_rows
from rove.model.messages import ROWS_BYTES_MAX

FORMAT = 2
CODECS = ("zstd", "lz4")
LEVEL = 1  # of zstd; higher levels take four times as long and save a twentieth
KEY_ROWS_MIN = 8  # rows for each value of a key; with fewer, ordering gains nothing
KEYS_TRIED = 4
TRIED_AGAIN = 256  # batches after which keys are tried again
HEAD_BYTES = 2  # the bytes that hold the length of the head
UNPACKED_TIMES = 6  # rows may take so many times their bytes while they are unpacked, where small numbers are wide
UNPACKED_SLACK_BYTES = 64 * 1024  # Arrow may encode the same rows in slightly different sizes
WHOLE = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}  # numbers by their bits
UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The head before packed rows: the column they are ordered by, and the columns that are differences."""

    format: int
    key: int | None
    steps: tuple[int, ...]


class Packer:
    """Packs batches, and remembers the best column to order by for each kind."""

    def __init__(self, codec: str = "zstd") -> None:
        self._codec = codec
        self._keys: dict[str, tuple[int, int | None]] = {}  # by kind, the number of batches so far, and the column

    def answer(self, order: Pack) -> Packed:
        """Pack the rows of an order. Rows that cannot be packed stay unpacked."""
        try:
            return Packed(order.order, self.pack(order.kind, order.schema, order.payload))
        except Exception:  # a type that Parquet lacks, or bytes of others that were not checked yet
            return Packed(order.order, None)

    def pack(self, kind: str, schema: pa.Schema, payload: Payload) -> bytes:
        """The encoded rows, packed."""
        rows = read_rows(payload, schema)  # those of an operator may be of another node
        count, key = self._keys.get(kind, (0, None))
        if count % TRIED_AGAIN:
            packed = pack(rows, key, self._codec)
        else:
            tried = {each: pack(rows, each, self._codec) for each in (None, *_candidates(rows))}
            key, packed = min(tried.items(), key=lambda found: len(found[1]))
        self._keys[kind] = (count + 1, key)
        return packed


def _candidates(rows: pa.RecordBatch) -> list[int]:
    """The columns that rows may be ordered by, those with the most values first."""
    found = []
    for number, column in enumerate(rows.columns):
        if pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            values = pc.count_distinct(column, mode="all").as_py()
            if 1 < values <= rows.num_rows // KEY_ROWS_MIN:
                found.append((values, number))
    return [number for _, number in sorted(found, reverse=True)[:KEYS_TRIED]]


def pack(rows: pa.RecordBatch, key: int | None, codec: str = "zstd") -> bytes:
    """Rows as bytes for `unpack`. O(rows · columns), plus O(rows log rows) with a key."""
    columns = rows.columns
    if key is not None:
        order = pc.sort_indices(columns[key])
        columns = [column if number == key else column.take(order) for number, column in enumerate(columns)]
    steps = tuple(
        number
        for number, column in enumerate(columns)
        if number != key and not column.null_count and _bits(column.type) in WHOLE
    )
    for bits, chained in _chains(rows.schema, steps).items():
        chain = _differences(pa.concat_arrays([columns[number].view(WHOLE[bits]) for number in chained]))
        for place, number in enumerate(chained):
            columns[number] = chain.slice(place * rows.num_rows, rows.num_rows)
    head = msgspec.msgpack.encode(Head(FORMAT, key, steps))
    sink = pa.BufferOutputStream()
    table = pa.table(columns, names=[str(number) for number in range(len(columns))])
    pq.write_table(
        table,
        sink,
        compression=codec,
        compression_level=LEVEL if codec == "zstd" else None,
        use_dictionary=False,
        column_encoding={str(number): "BYTE_STREAM_SPLIT" for number in steps},
        write_statistics=False,
        store_schema=False,
    )
    return b"".join((len(head).to_bytes(HEAD_BYTES, "little"), head, sink.getvalue()))


def unpack(payload: Payload, schema: pa.Schema, bytes_max: int = ROWS_BYTES_MAX) -> pa.RecordBatch:
    """The rows that were packed, which had at most so many bytes. More is refused before it is unpacked."""
    try:
        return _unpack(memoryview(payload).cast("B"), schema, bytes_max)
    except Exception as error:  # msgspec, Arrow and Python each have their own errors for bad bytes
        raise ProtocolError("malformed", f"packed rows cannot be read: {error}") from error


def head_of(payload: Payload) -> Head:
    """The head before packed rows."""
    begin = HEAD_BYTES + int.from_bytes(payload[:HEAD_BYTES], "little")
    return msgspec.msgpack.decode(payload[HEAD_BYTES:begin], type=Head)


def _check(head: Head, columns: int) -> None:
    """Refuse a head that names missing columns, or a column twice: each costs memory."""
    named = set(head.steps)
    if head.steps != tuple(number for number in range(columns) if number in named and number != head.key):
        raise ValueError("its head names columns that do not exist")
    if head.key is not None and not 0 <= head.key < columns:
        raise ValueError(f"its rows are ordered by column {head.key} of {columns}")


def _unpack(payload: memoryview, schema: pa.Schema, bytes_max: int) -> pa.RecordBatch:
    begin = HEAD_BYTES + int.from_bytes(payload[:HEAD_BYTES], "little")
    head = head_of(payload)
    if head.format != FORMAT:
        raise ValueError(f"format {head.format}; this version of rove reads {FORMAT}")
    _check(head, len(schema))
    check_pages(payload[begin:], UNPACKED_TIMES * bytes_max + UNPACKED_SLACK_BYTES)
    file = pq.ParquetFile(pa.py_buffer(payload[begin:]))
    table = file.read(use_threads=False).combine_chunks()  # batches are small: threads cost more than they save
    if not table.num_rows:
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    columns = [pa.concat_arrays(table.column(number).chunks) for number in range(len(schema))]
    for bits, chained in _chains(schema, head.steps).items():
        chain = _sums(pa.concat_arrays([columns[number].view(WHOLE[bits]) for number in chained]))
        for place, number in enumerate(chained):
            columns[number] = chain.slice(place * table.num_rows, table.num_rows).view(schema.field(number).type)
    if head.key is not None:
        back = pc.sort_indices(pc.sort_indices(columns[head.key]))
        columns = [column if number == head.key else column.take(back) for number, column in enumerate(columns)]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _bits(kind: pa.DataType) -> int:
    """The bits of values that can be read as integers; 0 if they cannot."""
    return kind.bit_width if pa.types.is_primitive(kind) else 0


def _chains(schema: pa.Schema, steps: tuple[int, ...]) -> dict[int, list[int]]:
    """The columns that are differences, by their width."""
    chains: dict[int, list[int]] = {}
    for number in steps:
        chains.setdefault(_bits(schema.field(number).type), []).append(number)
    return chains


def _differences(values: pa.Array) -> pa.Array:
    """The difference of each value to the one before it, zigzag-encoded so that small differences are small numbers."""
    steps = pa.concat_arrays([values.slice(0, 1), pc.pairwise_diff(values).slice(1)])
    sign = pc.negate(pc.less(steps, pa.scalar(0, values.type)).cast(values.type))
    return pc.bit_wise_xor(pc.shift_left(steps, pa.scalar(1, values.type)), sign)


def _sums(zigzag: pa.Array) -> pa.Array:
    """The values of which `_differences` were taken."""
    without_sign = UNSIGNED[zigzag.type.bit_width]
    half = pc.shift_right(zigzag.view(without_sign), pa.scalar(1, without_sign)).view(zigzag.type)
    sign = pc.negate(pc.bit_wise_and(zigzag, pa.scalar(1, zigzag.type)))
    return pc.cumulative_sum(pc.bit_wise_xor(half, sign))
