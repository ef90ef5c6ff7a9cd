"""Queries that keep fewer rows of every batch rather than lose whole batches."""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rove.data.events import Command, Event, Evicted, Pack, Produced
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.store.degrading import encoded
from rove.data.store.packing import Packer, unpack
from rove.data.store.store import Store
from rove.data.store.thinning import Thinning, every
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived
from rove.model.ids import NodeId, Origin
from rove.model.messages import PROTOCOL, Data, Peer, Welcome
from tests.data.test_worker import COLUMNS, ORIGIN, SCHEMA, fragment, orders

WEST = NodeId("west")
ROWS = 96


def rows(batch: int) -> pa.RecordBatch:
    values = [batch * 1_000 + n for n in range(ROWS)]
    return pa.RecordBatch.from_arrays([pa.array(["k"] * ROWS), pa.array(values, pa.int64())], schema=SCHEMA)


class Device:
    """A device that keeps every second row of what it has no room for, and that nobody hears."""

    def __init__(self, thins: int = 2, **settings: object) -> None:
        found = WorkerSettings(node=NodeId("device"), kind="device", parents=(WEST,), **settings)  # type: ignore[arg-type]
        self.worker, self.packer, self.evicted = Worker(found, 1), Packer(found.compress), 0
        self.worker.add_source("s", ORIGIN, COLUMNS)
        part = replace(fragment(WEST, (ORIGIN,)), thins=thins)
        self.handle(orders(part, peers=(Peer(node=WEST, address="there"),)))

    def handle(self, event: Event) -> list[Command]:
        events, said = deque([event]), []
        while events:
            for command in self.worker.handle(events.popleft(), 0):
                if isinstance(command, Pack):
                    events.append(self.packer.answer(command))
                self.evicted += command.rows if isinstance(command, Evicted) else 0
                said.append(command)
        return said

    def arrives(self) -> list[tuple[Header, list[int]]]:
        found = self.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 10**9)))
        (running,) = self.worker.running().values()
        batches = []
        for command in found:
            message = getattr(command, "message", None)
            if isinstance(message, Data):
                header, payload = message.header, command.payload  # type: ignore[union-attr]
                if header.packed and payload is not None:
                    payload = encode_rows(unpack(payload, SCHEMA))
                data = running.read(header, payload).data
                batches.append((header, [] if data is None else data.column(1).to_pylist()))
        return batches


@pytest.mark.parametrize("compress", ["off", "zstd"])
@pytest.mark.parametrize("evict", ["fifo", "query_aware", "priority"])
def test_all_batches_lose_rows_before_one_loses_all(compress: str, evict: str) -> None:
    device = Device(memory_bytes=30_000, evict=evict, compress=compress)
    made = 0
    while device.evicted * 3 <= ROWS * made:  # until a third of all rows is gone: each could lose half
        device.handle(Produced(ORIGIN, rows(made), 0))
        made += 1
        assert made < 1_000
    arrived = device.arrives()
    assert [h.seq for h, _ in arrived] == list(range(made)), "something of every batch"
    assert all(h.rows for h, _ in arrived)
    for header, values in arrived:
        step = values[1] - values[0]
        assert step in (1, 2, 4)
        assert values == list(range(header.seq * 1_000, header.seq * 1_000 + ROWS, step))
        assert (header.rows, header.born, header.evicted) == (len(values), len(values), ROWS - len(values))
    steps = [values[1] - values[0] for _, values in arrived]
    assert max(steps) <= 2 * sorted(steps)[len(steps) // 2], "nobody much more than the others"


@pytest.mark.parametrize("compress", ["off", "zstd"])
def test_when_that_is_not_enough_the_oldest_go_and_all_adds_up(compress: str) -> None:
    device = Device(memory_bytes=12_000, evict="fifo", compress=compress)
    for n in range(400):
        device.handle(Produced(ORIGIN, rows(n), 0))
        assert device.worker.store.bytes <= 12_000
    assert device.worker.store.bytes == sum(e.bytes for e in device.worker.store)
    (tally,) = device.worker.report().tallies
    assert tally.produced == 400 * ROWS == tally.buffered + device.evicted
    arrived = device.arrives()
    assert sum(h.evicted for h, _ in arrived) == device.evicted
    assert arrived[0][0].rows == 0


@given(st.integers(0, 200), st.integers(2, 9), st.booleans())
def test_every_nth_row_is_what_a_slice_says(count: int, n: int, packed: bool) -> None:
    values = [(7 * x) % 31 for x in range(count)]
    batch = pa.RecordBatch.from_arrays([pa.array(["k"] * count), pa.array(values, pa.int64())], schema=SCHEMA)
    kept = every(n, batch)
    assert kept.column(1).to_pylist() == values[::n]
    payload, _ = encoded(kept, packed, 1, "zstd")
    again = unpack(payload, SCHEMA) if packed else pa.ipc.read_record_batch(pa.py_buffer(payload), SCHEMA)
    assert again == kept


def test_batches_that_have_gone_are_not_kept() -> None:
    store = Store(10**9)
    thinning = Thinning(store, "off")
    for n in range(2_000):
        header = Header(query="q", origin=ORIGIN, seq=n, through=n, rows=ROWS, born=ROWS)
        entry = store.put(header, encode_rows(rows(n)))
        thinning.waits(entry)
        store.drop(entry)
    assert len(thinning._entries) < 200


def test_rows_that_an_operator_multiplied_are_not_thinned() -> None:
    device = Device(memory_bytes=8_000, evict="fifo", compress="off")
    (running,) = device.worker.running().values()
    for n in range(60):
        header = Header(query="q", origin=ORIGIN, seq=n, through=n, rows=ROWS, born=12)
        device.worker._exits.forward(running, header, encode_rows(rows(n)), None)
    assert {(h.rows, h.born >= 0) for h, _ in device.arrives()} == {(0, True), (ROWS, True)}


def test_what_operators_gave_is_not_thinned() -> None:
    device = Device(memory_bytes=12_000, evict="fifo", compress="off")
    (running,) = device.worker.running().values()
    running.fragment = replace(running.fragment, feeds=())
    for n in range(60):
        header = Header(query="q", origin=Origin("q", "device", stage=3), seq=n, through=n, rows=ROWS, born=ROWS)
        device.worker._exits.forward(running, header, encode_rows(rows(n)), None)
    assert {h.rows for h, _ in device.arrives()} == {0, ROWS}
