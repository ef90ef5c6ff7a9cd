"""Batches that wait become small, and arrive as they were."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.data.events import Command, Evicted, Pack, Packed, Produced
from rove.data.rows import encode_rows
from rove.data.store.kept_batch import KEPT_BYTES_MIN
from rove.data.store.pack_queue import PATIENCE_US
from rove.data.store.packing import Packer, pack
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Ack, Beat, Data, Fragment, Hello, Learned, Orders, Refused, Report, Welcome
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.stages import Stages
from tests.data.acks import heard
from tests.data.plans import named
from tests.data.test_worker import ORIGIN, alone, data, edge, linked, orders, rows
from tests.lines import line, lines

WEST = NodeId("west")
COUNT = 500  # rows a batch
PLAIN = len(encode_rows(rows(COUNT)) or b"")  # bytes of them, not packed
LATER = 1 + PATIENCE_US


def back(worker: Worker) -> list[Send]:
    """It reaches its parent; the frames that it sends, with its own ack behind them."""
    worker.handle(Tick(), LATER + 10)
    *frames, last = worker.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 10**6)), LATER + 11)
    assert line(last) == "to west: Ack 0"
    sent = [frame for frame in frames if isinstance(frame, Send) and isinstance(frame.message, Data)]
    assert sent == frames
    return sent


def produce(worker: Worker, count: int = COUNT) -> list[Pack]:
    """Rows are made, and wait long enough to be packed."""
    made = worker.handle(Produced(ORIGIN, rows(count), 0), 1)
    at_once = [order for order in made if not isinstance(order, Evicted)]
    assert all(isinstance(order, Pack) for order in at_once)
    return packs([*at_once, *worker.handle(Tick(), LATER)])


def packs(commands: list[Command]) -> list[Pack]:
    """What is to be packed; beside that a node only greets its peers and reports."""
    found = [command for command in commands if isinstance(command, Pack)]
    others = [command.message for command in commands if isinstance(command, Send)]
    assert len(found) + len(others) == len(commands)
    assert all(isinstance(message, Hello | Beat | Report | Ack) for message in others)
    return found


def test_what_waits_becomes_small_travels_so_and_is_read_as_it_was() -> None:
    device, packer = alone(), Packer()
    before = 0
    for _ in range(3):
        (order,) = produce(device)
        before += len(order.payload)
        assert packs(device.handle(packer.answer(order), LATER)) == []
    assert device.store.bytes < before / 2
    sent = back(device)
    assert lines(sent) == [f"to west: Data {n + 1}: q {ORIGIN} {n}, {COUNT} rows, packed" for n in range(3)]
    assert [frame.message.header.packed for frame in sent if isinstance(frame.message, Data)] == [PLAIN] * 3

    worker = edge()
    conn = linked(worker)
    for frame in sent:
        worker.handle(Arrived(conn, frame.message, frame.payload), 3)
    assert lines(worker.handle(Tick(), 4)) == ["to c: Ack 3"]
    (tally,) = worker.report().tallies
    assert (tally.delivered, tally.lost) == (3 * COUNT, 0)


def meet(relay: Worker) -> None:
    """A peer comes that may send the batches of `ORIGIN`."""
    below = Learned(0, ((NodeId("below"), ORIGIN.node),))
    relay.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), learn=below)), 2)
    relay.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("below"), 1)), 2)


def test_a_relay_passes_packed_rows_on_as_they_are() -> None:
    relay = alone()
    meet(relay)
    relay.handle(Tick(), 3)
    packed = pack(rows(COUNT), None)
    commands = relay.handle(Arrived(b"c", data(1, 0, rows=COUNT, born=COUNT, packed=PLAIN), packed), 4)
    assert packs(commands + relay.handle(Tick(), LATER + 4)) == []
    assert [c.payload for c in back(relay)] == [packed]


def test_what_may_leave_in_a_moment_is_packed_only_where_room_is_short() -> None:
    device = alone()
    assert packs(device.handle(Produced(ORIGIN, rows(COUNT), 0), 1)) == []
    assert packs(device.handle(Tick(), LATER - 1)) == []
    assert len(packs(device.handle(Tick(), LATER))) == 1
    crowded = alone(memory_bytes=2 * PLAIN)
    assert len(packs(crowded.handle(Produced(ORIGIN, rows(COUNT), 0), 1))) == 1


def test_a_relay_does_not_pack_what_those_below_keep_as_well() -> None:
    relay = alone(memory_bytes=10 * PLAIN)
    meet(relay)
    relay.handle(Tick(), 3)
    commands = relay.handle(Arrived(b"c", data(1, 0, rows=COUNT, born=COUNT), encode_rows(rows(COUNT))), 4)
    assert relay.store.bytes > PLAIN
    assert packs(commands + relay.handle(Tick(), LATER + 4)) == []


def test_what_a_relays_own_operators_give_is_packed_though_a_batch_from_below_brought_it_about() -> None:
    stream = rove.Session.local().stream("t", schema="ts timestamp, key int").withWatermark("ts", "0 seconds")
    plan = Stages.of({"out": stream.groupBy(F.window("ts", "10 seconds"), "key").count().plan})
    window = Stage(len(plan.operators) - 1)
    part = Fragment(
        query=QueryId("w"),
        version=Version(1),
        plan=named(codec.encode(plan)),
        runs=tuple(Stage(n) for n in range(1, len(plan.operators))),
        makes={window: Origin("w", stage=1)},
        waits={Stage(0): (ORIGIN,)},
        next=WEST,
        sinks={},
    )
    relay = alone()
    relay.handle(orders(part), 1)
    meet(relay)
    relay.handle(Tick(), 3)
    for number, second in enumerate((1, 60), start=1):
        moments = pa.array([second * 1_000_000] * COUNT, parse_schema("ts timestamp").field(0).type)
        batch = pa.RecordBatch.from_arrays([moments, pa.array(range(COUNT), pa.int32())], names=["ts", "key"])
        header = Header(origin=ORIGIN, seq=number - 1, through=number - 1, rows=COUNT, born=COUNT, query="w")
        relay.handle(Arrived(b"c", Data(number, header), encode_rows(batch)), 4)
        heard(relay, b"c", 4)
    assert [e.header.origin for e in relay.store if e.payload is not None] == [Origin("w", stage=1)]
    assert [order.kind for order in packs(relay.handle(Tick(), LATER + 4))] == [f"w {window}"]


def test_a_batch_that_leaves_before_it_is_small_leaves_as_it_is() -> None:
    device = alone()
    (order,) = produce(device)
    (frame,) = back(device)
    held = device.store.bytes
    device.handle(Packer().answer(order), LATER + 12)
    assert frame.payload == order.payload
    assert device.store.bytes == held


def test_a_batch_that_is_evicted_meanwhile_stays_gone() -> None:
    device = alone(memory_bytes=10_000, evict="fifo")
    (order,) = produce(device)
    (second,) = produce(device)
    assert device.store.rows() == {("q", ORIGIN): COUNT}
    device.handle(Packer().answer(order), 2)
    device.handle(Packer().answer(second), 2)
    (tally,) = device.report().tallies
    assert (tally.produced, tally.buffered) == (2 * COUNT, COUNT)
    assert [e.header.packed for e in device.store] == [0, PLAIN]


def test_few_are_packed_at_a_time_and_the_oldest_first() -> None:
    device, packer = alone(), Packer()
    waiting = [order for _ in range(30) for order in produce(device)]
    assert len(waiting) == 8
    orders = []
    while waiting:
        order = waiting.pop(0)
        orders.append(order.order)
        waiting += packs(device.handle(packer.answer(order), LATER))
    assert orders == sorted(orders)
    assert len(orders) == 30
    assert all(entry.header.packed for entry in device.store)


@pytest.mark.parametrize("settings", [{"compress": "off"}, {}])
def test_small_batches_and_those_that_nobody_wants_packed_are_left_alone(settings: dict[str, str]) -> None:
    assert produce(alone(**settings), COUNT if settings else 3) == []


def test_rows_that_cannot_be_packed_stay_as_they_are() -> None:
    device = alone()
    (order,) = produce(device)
    answer = Packer().answer(replace(order, payload=b"no rows"))
    assert answer == Packed(order.order, None)
    device.handle(answer, LATER)
    assert [c.payload for c in back(device)] == [order.payload]


@pytest.mark.parametrize("payload", [b"", b"\x00\x00", bytes(encode_rows(rows(COUNT)) or b""), pack(rows(3), None)])
def test_packed_rows_that_are_none_are_refused_counted_and_accounted_for(payload: bytes) -> None:
    worker = edge()
    conn = linked(worker)
    commands = worker.handle(Arrived(conn, data(1, 0, packed=PLAIN), payload), 3)
    assert lines(commands) == ["to c: Refused, malformed"]
    (tally,) = worker.report().tallies
    assert (tally.delivered, tally.lost) == (0, 2)
    assert lines(worker.handle(Tick(), 4)) == ["to c: Ack 1"]


def test_credit_is_for_rows_as_they_will_be_and_not_as_small_as_they_come() -> None:
    worker = edge()
    conn = linked(worker)
    link, packed = worker.links()[NodeId("device")], pack(rows(COUNT), None)
    before = link.outstanding
    worker.handle(Arrived(conn, data(1, 0, rows=COUNT, born=COUNT, packed=PLAIN), packed), 3)
    assert before - link.outstanding == KEPT_BYTES_MIN + PLAIN > 2 * len(packed)


def test_rows_that_are_larger_than_they_said_are_refused() -> None:
    worker, many = edge(), 20_000
    conn = linked(worker)
    small = data(1, 0, rows=many, born=many, packed=1_000)
    commands = worker.handle(Arrived(conn, small, pack(rows(many), None)), 3)
    text = "packed rows cannot be read: it unpacks to more than 71536 bytes"
    assert commands == [Send(conn, Refused("malformed", text))]
