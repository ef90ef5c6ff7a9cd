"""A snapshot comes back as it was, and bytes that are no snapshot are refused, whatever they are."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.data.operators.labels import gathered, unlabelled
from rove.model.errors import StateError
from rove.model.state import Snapshot, decode, encode

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])
LABELS = pa.schema([("__pane", pa.int64()), ("__origin", pa.string())])


def part(rows: int) -> pa.RecordBatch:
    return pa.record_batch([[f"k{n}" for n in range(rows)], list(range(rows))], schema=SCHEMA)


def some() -> Snapshot:
    parts = [((n, f"s/van-{n}"), part(10 * n)) for n in range(1, 4)]
    return Snapshot(
        "join", {"until": 7}, {"left": gathered(parts, LABELS, SCHEMA), "right": gathered([], LABELS, SCHEMA)}
    )


SCHEMAS = some().schemas


def test_parts_come_back_with_their_labels() -> None:
    got = decode(encode(some()), SCHEMAS)
    assert (got.kind, got.facts) == ("join", {"until": 7})
    found = list(unlabelled(got.tables["left"], LABELS, SCHEMA))
    assert [(labels, rows.num_rows) for labels, rows in found] == [((n, f"s/van-{n}"), 10 * n) for n in range(1, 4)]
    assert found[0][1].equals(part(10))
    assert list(unlabelled(got.tables["right"], LABELS, SCHEMA)) == []


def test_labels_cost_the_same_for_a_part_of_any_length() -> None:
    short, long = (
        len(encode(Snapshot("join", {}, {"left": gathered([((1, "s"), part(n))], LABELS, SCHEMA)})))
        for n in (100, 10_000)
    )
    plain = part(10_000).nbytes - part(100).nbytes
    assert long - short < 1.05 * plain


@given(st.data())
def test_damaged_snapshots_are_refused_or_are_snapshots(data: st.DataObject) -> None:
    found = bytearray(encode(some()))
    for _ in range(data.draw(st.integers(1, 6))):
        found[data.draw(st.integers(0, len(found) - 1))] = data.draw(st.integers(0, 255))
    try:
        got = decode(bytes(found), SCHEMAS)
    except StateError:
        return
    for table in got.tables.values():
        table.to_pylist()


def test_compressed_rows_are_refused_before_they_are_opened() -> None:
    zeros = pa.record_batch([pa.array([0] * 1_000_000)], names=["value"])
    found = Snapshot("join", {}, {"left": pa.Table.from_batches([zeros])})
    kind, facts, _ = msgspec.msgpack.decode(encode(found))
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, zeros.schema, options=packed) as writer:
        writer.write_batch(zeros)
    messages = list(pa.ipc.MessageReader.open_stream(sink.getvalue()))
    forged = msgspec.msgpack.encode((kind, facts, {"left": [messages[1].serialize().to_pybytes()]}))
    with pytest.raises(StateError, match="compressed"):
        decode(forged, found.schemas)


def test_tables_that_the_operator_does_not_have_are_refused() -> None:
    with pytest.raises(StateError, match="right"):
        decode(encode(some()), {"left": SCHEMAS["left"]})


def test_offsets_that_lead_out_of_the_rows_are_refused() -> None:
    rows = pa.record_batch([pa.array(["ab", "cd"])], schema=pa.schema([("key", pa.string())]))
    found = Snapshot("join", {}, {"left": pa.Table.from_batches([rows])})
    good = encode(found)
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 2, 4))
    assert good.count(offsets) == 1
    for wrong in ((0, 2, 400_000), (0, 400_000, 4), (0, 4, 2)):
        bad = good.replace(offsets, b"".join(n.to_bytes(4, "little") for n in wrong))
        with pytest.raises(StateError, match="not a snapshot"):
            decode(bad, found.schemas)
