"""Rows of others that wait in a store: nobody decodes them unchecked."""

from __future__ import annotations

import resource
import struct

import pyarrow as pa
import pytest

from rove.data.events import Pack
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.store.kept_batch import KEPT_BYTES_MIN, size_of
from rove.data.store.pack_queue import PATIENCE_US
from rove.data.store.packing import Packer, pack
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, Stage
from rove.model.messages import PROTOCOL, Data, Hello, Learned, Orders, Peer
from tests.data.plans import plans_of
from tests.data.test_strangers import KNOWN, UP, part
from tests.lines import lines

DEVICE = NodeId("device")
SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])
OFFSETS = struct.pack("<4i", 0, 4, 8, 12)  # of strings of four letters
COUNT = 1_000


def some(schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = [
        pa.array(["aaaa", "bbbb"] * (COUNT // 2))
        if pa.types.is_string(field.type)
        else pa.nulls(COUNT, field.type)
        if pa.types.is_struct(field.type)
        else pa.array(range(COUNT)).cast(field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def astray(rows: pa.RecordBatch) -> bytes:
    """Encoded rows with one offset that leads out of them. Arrow ends the process that looks there."""
    found = bytearray(encode_rows(rows) or b"")
    at = found.find(OFFSETS) + 4 * (COUNT // 2)
    found[at : at + 4] = struct.pack("<i", 2**30)
    return bytes(found)


def compressed(rows: int) -> bytes:
    """Few bytes that become many rows of nothing."""
    stream = pa.BufferOutputStream()
    batch = pa.record_batch(
        [pa.nulls(rows, pa.string()).fill_null(""), pa.nulls(rows, pa.int64()).fill_null(0)], SCHEMA
    )
    with pa.ipc.new_stream(stream, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(stream.getvalue())
    reader.read_next_message()
    found: bytes = reader.read_next_message().serialize().to_pybytes()
    return found


def relay() -> tuple[Worker, Header, pa.RecordBatch]:
    """An edge that runs an operator of a query, and a batch of the operator from a device that ran it once."""
    worker, run = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=(UP,)), 1), part(UP, (KNOWN,))
    stage = next(iter(run.makes))
    merged = Origin("q", stage=stage)
    peers = (Peer(node=UP, address="there"), Peer(node=DEVICE, device=True, address="here"))
    learn = Learned(0, ((DEVICE, merged.maker),))
    orders = Orders(PROTOCOL, (run,), (), peers, plans=plans_of(run), learn=learn)
    worker.handle(Arrived("coordinator", orders), 0)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, DEVICE, 1)), 0)
    worker.handle(Tick(), 1)
    (running,) = worker.running().values()
    last = Stage(len(running.stages.operators) - 1)
    assert not running.touches(last)
    return (
        worker,
        Header(query="q", origin=merged, seq=0, through=0, rows=COUNT, born=COUNT, stage=last),
        some(running.stages.operators[last].schema),
    )


def test_batches_of_an_operator_that_came_from_a_peer_are_not_packed() -> None:
    worker, header, rows = relay()
    said = worker.handle(Arrived(b"d", Data(1, header), encode_rows(rows)), 10)
    assert not [line for line in lines(said) if "Refused" in line]
    assert [entry.header.origin for entry in worker.store] == [header.origin]
    for now in range(PATIENCE_US, 10 * PATIENCE_US, PATIENCE_US):
        said = worker.handle(Tick(), now)
        assert not [command for command in said if isinstance(command, Pack)]


def test_rows_whose_offsets_lead_nowhere_are_not_packed_and_end_no_process() -> None:
    assert Packer().answer(Pack(order=1, kind="k", schema=SCHEMA, payload=astray(some()))).payload is None
    assert Packer().answer(Pack(order=1, kind="k", schema=SCHEMA, payload=bytes(encode_rows(some()) or b""))).payload


def test_rows_with_compressed_buffers_are_not_packed() -> None:
    bomb = compressed(5_000_000)
    assert len(bomb) < 20_000
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert Packer().answer(Pack(order=1, kind="k", schema=SCHEMA, payload=bomb)).payload is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 30_000


@pytest.mark.parametrize("declared", [0, 1, 10**6])
def test_a_frame_costs_the_credit_of_its_bytes_whatever_it_says_it_was_before_packing(declared: int) -> None:
    rows = pack(some(), None)
    header = Header(origin=KNOWN, seq=0, through=0, query="q", rows=COUNT, packed=declared)
    assert size_of(header, rows) == KEPT_BYTES_MIN + max(declared, len(rows))
