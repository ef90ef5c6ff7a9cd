"""Rows that several queries keep are kept once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rove.data.events import Evicted, Pack, Produced
from rove.data.log.segments.stored import Stored
from rove.data.settings import WorkerSettings
from rove.data.store.kept_batch import KEPT_BYTES_MIN
from rove.data.store.pack_queue import PATIENCE_US
from rove.data.store.packing import Packer
from rove.data.store.retention import _same as are_same
from rove.data.store.store import Store
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import PROTOCOL, Ack, Orders, Peer, Welcome
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, orders, rows
from tests.lines import lines

WEST = NodeId("west")


def device(queries: int, **settings: object) -> Worker:
    """A device whose queries all keep every row, and that nobody hears."""
    found = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(WEST,), **settings), 1)  # type: ignore[arg-type]
    found.add_source("s", ORIGIN, COLUMNS)
    parts = (replace(fragment(WEST, (ORIGIN,)), query=QueryId(f"q{n}")) for n in range(queries))
    found.handle(orders(*parts, peers=(Peer(node=WEST, address="there"),)), 0)
    return found


def one(**settings: object) -> int:
    """The bytes of one batch."""
    worker = device(1, **settings)
    worker.handle(Produced(ORIGIN, rows(100), 0), 0)
    return worker.store.bytes


def test_rows_of_three_queries_take_the_room_of_one() -> None:
    worker = device(3, compress="off")
    worker.handle(Produced(ORIGIN, rows(100), 0), 0)
    assert worker.store.bytes == one(compress="off") + 2 * KEPT_BYTES_MIN
    assert {t.query: t.buffered for t in worker.report().tallies} == {"q0": 100, "q1": 100, "q2": 100}
    sent = worker.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 10**6)), 1_000)
    frames = [f"to west: Data {n + 1}: q{n} {ORIGIN} 0, 100 rows" for n in range(3)]
    assert lines(sent) == [*frames, "to west: Ack 0"]
    for through in (1, 2, 3):
        worker.handle(Arrived("west", Ack(through, 10**6)), 1_000 + through)
        left = 3 - through
        assert worker.store.bytes == (one(compress="off") + (left - 1) * KEPT_BYTES_MIN if left else 0)


def test_rows_that_are_shared_are_packed_once_and_small_for_all() -> None:
    worker, packer = device(3), Packer()
    worker.handle(Produced(ORIGIN, rows(1_000), 0), 0)
    order, *rest = worker.handle(Tick(), PATIENCE_US)
    assert isinstance(order, Pack)
    assert lines(rest) == [
        "to west: Hello, start 1",
        "to coordinator: Report, runs q0 v1, q1 v1, q2 v1, reaches nothing",
    ]
    before = worker.store.bytes
    worker.handle(packer.answer(order), PATIENCE_US)
    assert worker.store.bytes < before // 2
    assert len({e.header.packed for e in worker.store}) == 1
    assert len({id(e.payload) for e in worker.store}) == 1
    assert worker.store.bytes == sum(e.bytes for e in worker.store)


def test_a_query_that_is_stopped_leaves_the_rows_to_the_others() -> None:
    worker = device(2, compress="off")
    worker.handle(Produced(ORIGIN, rows(100), 0), 0)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q0"),))), 1)
    assert worker.store.bytes == one(compress="off")
    (entry,) = worker.store
    assert (entry.header.query, entry.header.rows, entry.payload is not None) == ("q1", 100, True)


@pytest.mark.parametrize("evict", ["fifo", "query_aware", "priority"])
def test_rows_that_are_shared_go_for_all_who_share_them(evict: str) -> None:
    worker, room = device(2, evict=evict, memory_bytes=20_000, compress="off"), 20_000
    gone: dict[str, list[int]] = {"q0": [], "q1": []}
    for n in range(100):
        for command in worker.handle(Produced(ORIGIN, rows(100), n), n):
            assert isinstance(command, Evicted)
            gone[command.query].append(command.seq)
        assert worker.store.bytes <= room
    assert gone["q0"] == gone["q1"] == list(range(len(gone["q0"])))
    kept = 100 - len(gone["q0"])
    assert kept * one(compress="off") > room * 0.8  # as many as one query alone could keep, or nearly
    assert worker.store.bytes == sum(e.bytes for e in worker.store)


def test_other_rows_are_not_shared() -> None:
    worker = device(1, compress="off")
    for n in range(2):
        worker.handle(Produced(ORIGIN, rows(100), n), n)
    worker.handle(Tick(), 5)
    assert worker.store.bytes == 2 * one(compress="off")


def test_rows_that_two_queries_have_on_their_way_to_the_disk_leave_until_the_last_is_there() -> None:
    store, rows_there = Store(2_000), Stored("retention", "rows", 0, 1_000, 0)
    headers = (Header(origin=Origin("o"), seq=0, through=0, rows=1, born=1, query=query) for query in "ab")
    first, second = (store.put(header, bytes(1_000)) for header in headers)
    store.share(first, second)
    for entry in (first, second):
        store.leaves(entry)
    assert (store.leaving_bytes, store.room) == (1_000, 2_000 - 2 * KEPT_BYTES_MIN)
    store.spilled(first, rows_there)
    assert (store.leaving_bytes, store.room) == (1_000, 2_000 - 2 * KEPT_BYTES_MIN), "the second takes them along"
    store.spilled(second, rows_there)
    assert (store.leaving_bytes, store.bytes) == (0, 2 * KEPT_BYTES_MIN)


def test_different_rows_of_one_length_are_not_shared() -> None:
    store = Store(10**6)
    header = Header(origin=ORIGIN, seq=0, through=0, rows=1, born=1)
    first, same, other = (
        store.put(replace(header, query=f"q{n}"), rows_, None, 0)
        for n, rows_ in enumerate((b"12345678", b"12345678", b"12345679"))
    )
    assert are_same(first, same)
    assert not are_same(first, other)
