"""Bytes of others become rows or a refusal, and take no more memory than they declare."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.data.rows import decode_rows, encode_rows, unpack_rows
from rove.data.store.packing import HEAD_BYTES, Head, pack
from rove.model.errors import ProtocolError

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64()), ("tags", pa.list_(pa.string()))])


def some(count: int = 50) -> pa.RecordBatch:
    columns = [[f"k{n % 5}" for n in range(count)], list(range(count)), [["a", None][: n % 3] for n in range(count)]]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def plain(rows: pa.RecordBatch) -> bytes:
    return bytes(encode_rows(rows) or b"")


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xff\xff\xff\xff" + bytes(60), b"\xff\xff\xff\xff\x10\x00\x00\x00" + bytes(56), bytes(64)]
)
@pytest.mark.parametrize("packed", [0, 64])
def test_bytes_that_are_no_rows_are_refused(data: bytes, packed: int) -> None:
    with pytest.raises(ProtocolError):
        decode_rows(data, SCHEMA, 5, packed)


@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_random_bytes_are_refused(data: bytes, framed: bool, packed: bool) -> None:
    with pytest.raises(ProtocolError):
        decode_rows(b"\xff\xff\xff\xff" + data if framed else data, SCHEMA, 5, 1_000 if packed else 0)


@given(st.data(), st.booleans())
def test_damaged_rows_are_refused_or_rows(data: st.DataObject, packed: bool) -> None:
    rows = some()
    found = bytearray(pack(rows, 0) if packed else plain(rows))
    for _ in range(data.draw(st.integers(1, 6))):
        found[data.draw(st.integers(0, len(found) - 1))] = data.draw(st.integers(0, 255))
    try:
        got = decode_rows(bytes(found), SCHEMA, 50, rows.nbytes if packed else 0)
    except ProtocolError:
        return
    assert got.num_rows == 50
    assert got.schema == SCHEMA


def test_no_damage_ends_the_process() -> None:
    """Arrow ends the process where it looks at some damaged footers."""
    random, rows = Random(1), some()
    whole = [pack(rows, 0), pack(rows, None)]
    refused = 0
    for _ in range(5_000):
        found = bytearray(random.choice(whole))
        for _ in range(random.randint(1, 6)):
            found[random.randrange(len(found))] = random.randrange(256)
        try:
            decode_rows(bytes(found), SCHEMA, 50, rows.nbytes)
        except ProtocolError:
            refused += 1
    assert refused > 4_000


def test_rows_come_back_as_they_went() -> None:
    rows = some()
    assert decode_rows(plain(rows), SCHEMA, 50).equals(rows)
    assert decode_rows(pack(rows, 0), SCHEMA, 50, rows.nbytes).equals(rows)
    again = unpack_rows(pack(rows, None), SCHEMA, 50, rows.nbytes)
    assert again is not None
    assert decode_rows(again, SCHEMA, 50).equals(rows)
    with pytest.raises(ProtocolError, match="50 rows came, and 49 were named"):
        decode_rows(plain(rows), SCHEMA, 49)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_buffers_are_refused_before_they_are_opened(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = pa.record_batch({"n": pa.repeat(pa.scalar(0, pa.int64()), 1_000_000)})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, zeros.schema, options=options) as writer:
        writer.write_batch(zeros)
    stream = sink.getvalue().to_pybytes()
    message = stream[stream.index(b"\xff\xff\xff\xff", 8) :]  # behind the schema
    assert len(message) < zeros.nbytes // 50
    monkeypatch.setattr(pa.ipc, "read_record_batch", _never)
    with pytest.raises(ProtocolError, match="they are compressed"):
        decode_rows(message, zeros.schema, 1_000_000)


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("it was read")


def forged(table: pa.Table, **options: Any) -> bytes:
    """A Parquet file behind the head of packed rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_schema=False, **options)
    return _framed(sink.getvalue().to_pybytes())


def _framed(file: bytes) -> bytes:
    head = msgspec.msgpack.encode(Head(2, None, ()))
    return len(head).to_bytes(HEAD_BYTES, "little") + head + file


ROWS = 4_000_000
BOMBS = {
    "zeros": (pa.table({"0": pa.repeat(pa.scalar(0, pa.int64()), ROWS)}), {"use_dictionary": False}),
    "nulls": (pa.table({"0": pa.nulls(ROWS, pa.int64())}), {"use_dictionary": False}),
    "one long text in a dictionary": (pa.table({"0": pa.repeat("x" * 10_000, 10_000)}), {"use_dictionary": True}),
    "a list of nulls": (
        pa.table({"0": pa.array([[None] * ROWS], pa.list_(pa.int64()))}),
        {"use_dictionary": False},
    ),
    "differences": (
        pa.table({"0": pa.arange(0, ROWS)}),
        {"use_dictionary": False, "column_encoding": {"0": "DELTA_BINARY_PACKED"}},
    ),
    "pages of the second kind": (pa.table({"0": pa.arange(0, 1_000)}), {"data_page_version": "2.0"}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_packed_rows_that_would_take_more_than_they_declare_are_refused_before_they_are_unpacked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, options = BOMBS[name]
    data = forged(table, compression="zstd", **options)
    monkeypatch.setattr(pq.ParquetFile, "read", _never)
    with pytest.raises(ProtocolError, match="packed rows cannot be read: it "):
        decode_rows(data, pa.schema([("n", table.schema.field(0).type)]), table.num_rows, 64_000)


def test_offsets_that_lead_out_of_the_rows_are_refused() -> None:
    rows = pa.record_batch([pa.array(["ab", "cd"])], schema=pa.schema([("key", pa.string())]))
    good = bytes(memoryview(rows.serialize()))
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 2, 4))
    assert good.count(offsets) == 1
    assert decode_rows(good, rows.schema, 2) == rows
    for wrong in ((0, 2, 400_000), (0, 400_000, 4), (0, 4, 2)):
        bad = good.replace(offsets, b"".join(n.to_bytes(4, "little") for n in wrong))
        with pytest.raises(ProtocolError, match="are not rows of these columns"):
            decode_rows(bad, rows.schema, 2)
