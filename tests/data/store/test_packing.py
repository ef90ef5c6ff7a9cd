"""Packed rows unpack to the same rows, and bytes that are not packed rows are refused."""

from __future__ import annotations

import contextlib
import math
import random
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.data.store.packing import CODECS, FORMAT, HEAD_BYTES, Head, Packer, pack, unpack
from rove.model.errors import ProtocolError
from rove.model.schema import TIMESTAMP

WHOLE = [(pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64)]
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{kind: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for kind, bits in WHOLE},
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
    TIMESTAMP: st.integers(-(2**55), 2**55),
    pa.timestamp("us"): st.integers(-(2**55), 2**55),
    pa.duration("us"): st.integers(-(2**55), 2**55),
    pa.decimal128(38, 5): st.decimals(-(10**30), 10**30, places=5),
    pa.list_(pa.int64()): st.lists(st.none() | st.integers(-9, 9), max_size=3),
    pa.struct([("a", pa.int32()), ("b", pa.string())]): st.fixed_dictionaries(
        {"a": st.integers(-9, 9), "b": st.none() | st.text(max_size=2)}
    ),
}


@st.composite
def some_rows(draw: st.DrawFn) -> pa.RecordBatch:
    """Columns of all kinds, with and without nulls, and of few values."""
    count, columns = draw(st.integers(0, 30)), []
    for kind in draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5)):
        value = VALUES[kind]
        value = st.sampled_from(draw(st.lists(value, min_size=1, max_size=3))) if draw(st.booleans()) else value
        value = st.none() | value if draw(st.booleans()) else value
        columns.append(pa.array(draw(st.lists(value, min_size=count, max_size=count)), kind))
    return pa.RecordBatch.from_arrays(columns, [f"c{n}" for n in range(len(columns))])


def plain(rows: pa.RecordBatch) -> bytes:
    """What rows are, to the bit, but for what lies below nulls and empty NaNs."""
    return repr([[v if v == v else math.copysign(1, v) for v in column.to_pylist()] for column in rows]).encode()


@given(some_rows(), st.data(), st.sampled_from(CODECS))
def test_what_is_unpacked_is_what_was_packed(rows: pa.RecordBatch, data: st.DataObject, codec: str) -> None:
    key = data.draw(st.none() | st.sampled_from([n for n, f in enumerate(rows.schema) if _orders(f.type)] or [None]))
    again = unpack(pack(rows, key, codec), rows.schema)
    again.validate(full=True)
    assert again.schema == rows.schema
    assert plain(again) == plain(rows)


def _orders(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


def sensors(count: int) -> pa.RecordBatch:
    """Five of them, interleaved, each with a place that changes slowly."""
    draw, places = random.Random(1), [10_000 * n for n in range(5)]
    names, xs = [], []
    for _ in range(count):
        sensor = draw.randrange(5)
        places[sensor] += draw.randint(-3, 3)
        names.append(f"sensor {sensor}")
        xs.append(places[sensor])
    return pa.RecordBatch.from_pydict({"sensor": pa.array(names), "n": list(range(count)), "x": pa.array(xs)})


def test_the_column_that_orders_best_is_found_and_kept() -> None:
    rows, packer = sensors(2_000), Packer()
    found = [packer.pack("q 1", rows.schema, memoryview(rows.serialize())) for _ in range(2)]
    assert found[0] == found[1] == pack(rows, 0)
    assert len(found[0]) < 0.8 * len(pack(rows, None)) < 0.2 * rows.nbytes
    assert unpack(found[0], rows.schema).equals(rows)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_packed_rows_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack(data, sensors(1).schema)


@given(st.data())
def test_damaged_rows_are_refused_or_rows(data: st.DataObject) -> None:
    packed = bytearray(pack(sensors(50), data.draw(st.sampled_from([None, 0]))))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError, pa.ArrowInvalid):
        unpack(bytes(packed), sensors(1).schema).validate(full=True)


@pytest.mark.parametrize(
    ("key", "steps"),
    [
        (None, (1,) * 500),  # each would be unpacked once more
        (None, (2, 1)),
        (None, (-1,)),
        (None, (3,)),
        (None, (2**40,)),
        (1, (1, 2)),
        (-1, (1, 2)),
        (3, (1, 2)),
        (2**63, (1, 2)),
    ],
)
def test_a_head_that_names_columns_which_are_not_there_or_twice_is_refused(
    key: int | None, steps: tuple[int, ...]
) -> None:
    packed = pack(sensors(50), None)
    begin = HEAD_BYTES + int.from_bytes(packed[:HEAD_BYTES], "little")
    head = msgspec.msgpack.encode(Head(FORMAT, key, steps))
    with pytest.raises(ProtocolError):
        unpack(len(head).to_bytes(HEAD_BYTES, "little") + head + packed[begin:], sensors(1).schema)


def test_rows_of_other_columns_are_refused() -> None:
    packed = pack(sensors(50), 0)
    with pytest.raises(ProtocolError):
        unpack(packed, pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64())), ("c", pa.int64()), ("d", pa.int8())]))
