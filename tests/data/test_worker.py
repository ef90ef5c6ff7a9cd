"""A worker by itself: events in, commands out."""

from __future__ import annotations

from dataclasses import replace as replaced
from random import Random

import cloudpickle
import pyarrow as pa
import pytest
from msgspec.structs import replace

import rove
from rove import functions as F
from rove.control.coordinator import Coordinator
from rove.data.events import Command, Dial, Produced, Wait
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.errors import ProtocolError
from rove.model.events import Allow, Arrived, Garbled, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import (
    PROTOCOL,
    Ack,
    Ask,
    Beat,
    Data,
    Fragment,
    Hello,
    Learned,
    Message,
    Orders,
    Peer,
    Refused,
    Sink,
    Welcome,
    decode,
    encode,
)
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.operators import Operator, Source
from rove.plan.stages import Stages
from rove.plan.user_functions import Unread
from rove.plan.wire import Reference
from tests.data.acks import heard
from tests.data.plans import named, plans_of
from tests.lines import line, lines

COLUMNS = "key string, value bigint"
SCHEMA = parse_schema(COLUMNS)
PLAN = codec.encode(Stages.of({"out": Source("s", SCHEMA)}))
ORIGIN = Origin("s", "device")


def rows(count: int = 2) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(["k"] * count), pa.array([1] * count, pa.int64())], schema=SCHEMA)


def fragment(next: NodeId | None = None, feeds: tuple[Origin, ...] = ()) -> Fragment:
    sinks = {Stage(0): Sink(kind="discard")} if next is None else {}
    return Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=named(PLAN),
        runs=(),
        makes={},
        waits={Stage(0): (ORIGIN,)},
        next=next,
        sinks=sinks,
        feeds=feeds,
    )


def orders(*deploy: Fragment, peers: tuple[Peer, ...] = ()) -> Arrived:
    return Arrived("coordinator", Orders(PROTOCOL, deploy, (), peers, plans=plans_of(*deploy)))


def edge(keys: bool = False) -> Worker:
    return Worker(WorkerSettings(node=NodeId("edge"), kind="edge", memory_bytes=100_000, keys=keys), 1)


def linked(worker: Worker) -> bytes:
    worker.handle(orders(fragment()), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    return b"c"


def data(number: int, seq: int, **changes: object) -> Data:
    header = {"origin": ORIGIN, "seq": seq, "through": seq, "rows": 2, "born": 2, "query": "q", **changes}
    return Data(number, Header(**header))  # type: ignore[arg-type]


def alone(**settings: object) -> Worker:
    """A device that knows where its parent is and has not reached it yet."""
    found = WorkerSettings(node=NodeId("device"), kind="device", parents=(NodeId("west"),), **settings)  # type: ignore[arg-type]
    device = Worker(found, 1)
    device.add_source("s", ORIGIN, COLUMNS)
    peers = (Peer(node=NodeId("west"), address="there"),)
    device.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=peers), 0)
    return device


def test_a_batch_that_ends_here_is_counted_and_acked() -> None:
    worker = edge()
    conn = linked(worker)
    assert worker.handle(Arrived(conn, data(1, 0), encode_rows(rows())), 2) == []
    assert lines(worker.handle(Tick(), 3)) == ["to c: Ack 1"]
    (tally,) = worker.report().tallies
    assert (tally.query, tally.origin, tally.delivered) == ("q", ORIGIN, 2)


def test_what_is_not_acked_takes_the_other_route_when_the_node_is_led_there() -> None:
    parents = (NodeId("west"), NodeId("east"))
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=parents), 1)
    device.add_source("s", ORIGIN, COLUMNS)
    peers = tuple(Peer(node=p, address="there") for p in parents)
    led = lines(device.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=peers), 0))
    assert led == ["allow west, east", "dial west", "dial east"]
    assert lines(device.handle(Tick(), 1)) == [
        "to west: Hello, start 1",
        "to east: Hello, start 1",
        "to coordinator: Report, runs q v1, reaches nothing",
    ]
    welcome = Welcome(PROTOCOL, NodeId("west"), 7, 1, 0, 10**6)
    assert lines(device.handle(Arrived("west", welcome), 2)) == ["to west: Ack 0"]
    assert lines(device.handle(Tick(), 300_000)) == [
        "to west: Ack 0",
        "to coordinator: News, reaches west",
    ]
    for seq in range(3):
        sent = lines(device.handle(Produced(ORIGIN, rows(), seq), 300_001 + seq))
        assert sent == [f"to west: Data {seq + 1}: q {ORIGIN} {seq}, 2 rows"]
    assert device.handle(Arrived("west", Ack(1, 10**6)), 300_010) == []

    moved = replace(fragment(NodeId("east"), (ORIGIN,)), version=Version(2))
    assert device.handle(orders(moved, peers=peers), 300_020) == []
    assert lines(device.handle(Tick(), 300_021)) == [
        "to west: Hello, start 1'",  # with the old parent it begins anew: numbers are missing
        "to coordinator: News, runs q v2",
    ]
    welcome = Welcome(PROTOCOL, NodeId("east"), 9, 1, 0, 10**6)
    assert lines(device.handle(Arrived("east", welcome), 300_030)) == [
        f"to east: Data 1: q {ORIGIN} 1, 2 rows",
        f"to east: Data 2: q {ORIGIN} 2, 2 rows",
        "to east: Ack 0",
    ]
    (tally,) = device.report().tallies
    assert (tally.produced, tally.buffered, tally.resent, tally.lost) == (6, 4, 4, 0)


def test_a_node_that_is_passed_by_lets_go_of_what_others_hold_and_loses_nothing() -> None:
    worker = edge()
    worker.handle(orders(fragment(NodeId("gateway"))), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 2)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), None, "", (QueryId("q"),))), 3)
    worker.handle(Arrived(b"c", data(2, 1), encode_rows(rows())), 4)
    assert worker.report().unknown == ("q",), "a straggler waits until the coordinator has been asked"
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), None, "", (QueryId("q"),))), 5)
    # The straggler is not acked: its sender keeps it. It stays here until the sender begins a new session.
    assert lines(worker.handle(Tick(), 6)) == ["to c: Ack 1", "to coordinator: News, runs q no longer, asks for q"]
    report = worker.report()
    assert (report.running, report.unknown, report.tallies, len(worker.store)) == ({}, ("q",), (), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 2)), 7)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), None, "", (QueryId("q"),))), 8)
    assert worker.report().unknown == ()


def lacking(placed: bool) -> Worker:
    """An edge node that ends a query whose function it does not have."""
    worker, mapped = edge(), rove.Session.local().stream("s", schema=COLUMNS).mapInArrow(iter, COLUMNS)
    plan = codec.encode(Stages.of({"out": replaced(mapped.plan, function=Unread(Reference("fleet", "busy")))}))
    part = replace(fragment(), plan=named(plan), runs=(Stage(1),), sinks={Stage(1): Sink(kind="discard")})
    worker.handle(orders(replace(part, loads=(Stage(1),) if placed else ())), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    return worker


def test_a_function_that_was_placed_where_it_is_missing_is_refused_by_name() -> None:
    worker = lacking(placed=True)
    assert worker.running() == {}
    (trouble,) = (worker.report().troubles or {})[QueryId("q")]
    assert (trouble.lacks, trouble.holds, trouble.final) == ("fleet:busy", True, True)
    assert trouble.text.startswith("this node has no function `fleet:busy` (No module named 'fleet'): install")


def test_a_function_that_runs_below_is_missed_only_by_rows_that_come_without_it() -> None:
    worker = lacking(placed=False)
    worker.handle(Arrived(b"c", data(1, 0, stage=1), encode_rows(rows())), 2)
    report = worker.report()
    assert (report.running, report.troubles, [t.delivered for t in report.tallies]) == ({"q": 1}, {}, [2])
    worker.handle(Arrived(b"c", data(2, 1, stage=0), encode_rows(rows())), 3)
    report = worker.report()
    assert [(t.delivered, t.lost, t.faulted) for t in report.tallies] == [(2, 0, 2)]
    (trouble,) = (report.troubles or {})[QueryId("q")]
    assert "rows came here without `busy` applied, and this node has no function `fleet:busy`" in trouble.text
    assert (trouble.holds, trouble.lacks) == (False, "")


@pytest.mark.parametrize("trusts", [False, True])
def test_a_function_by_value_runs_where_it_is_trusted_and_is_a_querys_trouble_elsewhere(trusts: bool) -> None:
    settings = WorkerSettings(node=NodeId("edge"), kind="edge", trusts=trusts)
    worker, level = Worker(settings, 1), 5
    mapped = rove.Session.local().stream("s", schema=COLUMNS).mapInArrow(lambda b: (b for _ in range(level)), COLUMNS)
    plan = codec.encode(Stages.of({"out": mapped.plan}), cloudpickle.dumps)
    relayed = replace(fragment(next=NodeId("above")), query=QueryId("passes-by"), plan=named(plan))
    run = replace(fragment(), plan=named(plan), runs=(Stage(1),), loads=(Stage(1),))
    run = replace(run, sinks={Stage(1): Sink(kind="discard")})
    worker.handle(orders(relayed, run), 0)
    report = worker.report()
    assert report.facts is not None
    assert report.facts.trusts == trusts
    assert set(report.running) == ({"q", "passes-by"} if trusts else {"passes-by"})
    assert ("trust_functions" in str(report.troubles)) != trusts


def test_a_batch_of_a_query_not_known_yet_waits_for_it_and_is_not_acked() -> None:
    worker = edge()
    hello = Hello(PROTOCOL, NodeId("device"), 1)
    assert lines(worker.handle(Arrived(b"c", hello), 0)) == ["to c: Welcome, start 1, has 0 frames of start 1"]
    assert worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 1) == []
    assert lines(worker.handle(Tick(), 2)) == [
        "to c: Ack 0",
        "to coordinator: Report, runs nothing, reaches nothing, asks for q",
    ]
    assert worker.handle(orders(fragment()), 3) == []
    assert lines(worker.handle(Tick(), 4)) == ["to c: Ack 1", "to coordinator: News, runs q v1"]


@pytest.mark.parametrize(
    ("changes", "payload"),
    [
        ({"stage": 7}, rows()),
        ({"stage": -1}, rows()),
        ({"rows": 3}, rows()),
        ({}, pa.RecordBatch.from_pydict({"other": [1.5]})),
    ],
)
def test_rows_that_do_not_fit_are_refused_counted_and_accounted_for(
    changes: dict[str, int], payload: pa.RecordBatch
) -> None:
    worker = edge()
    conn = linked(worker)
    refused = worker.handle(Arrived(conn, data(1, 0, **changes), encode_rows(payload)), 2)
    assert lines(refused) == ["to c: Refused, malformed"]
    assert worker.refused == {"malformed": 1}
    assert sum(t.lost for t in worker.report().tallies) == 2


def test_whoever_does_not_prove_its_name_gets_nothing_in() -> None:
    worker = edge(keys=True)
    worker.handle(orders(fragment(), peers=(Peer(node=NodeId("device"), key="K" * 40),)), 0)
    for name, key in (("device", "wrong"), ("device", ""), ("stranger", "K" * 40), ("edge", "K" * 40)):
        hello = worker.handle(Arrived(b"x", Hello(PROTOCOL, NodeId(name), 1), None, key), 1)
        assert lines(hello) == ["to x: Refused, identity"]
        answer = worker.handle(Arrived(b"x", data(1, 0), encode_rows(rows()), key), 1)
        assert lines(answer) == ["to x: Refused, unexpected"]
    assert not worker.report().tallies
    welcome = worker.handle(Arrived(b"y", Hello(PROTOCOL, NodeId("device"), 1), None, "K" * 40), 2)
    assert lines(welcome) == ["to y: Welcome, start 1, has 0 frames of start 1"]


def test_another_protocol_is_refused_with_both_versions_named() -> None:
    (refusal,) = edge().handle(Arrived(b"c", Hello(99, NodeId("device"), 1)), 0)
    assert line(refusal) == "to c: Refused, protocol"
    assert isinstance(refusal, Send)
    assert isinstance(refusal.message, Refused)
    assert "99" in refusal.message.text


def test_a_source_is_told_to_wait_before_there_is_no_room_and_to_go_on_after() -> None:
    edge, settings = NodeId("edge"), WorkerSettings(node=NodeId("device"), kind="device", memory_bytes=20_000)
    device = Worker(replace(settings, parents=(edge,)), 1)
    device.add_source("s", ORIGIN, COLUMNS)
    peers = (Peer(node=edge, address="there"),)
    device.handle(orders(fragment(next=edge, feeds=(ORIGIN,)), peers=peers), 0)
    asked: list[Command] = []
    for n in range(100):
        asked = device.handle(Produced(ORIGIN, rows(10), 0), n)
        if asked:
            break
    assert asked == [Wait(ORIGIN)]
    assert 0 < device.room < 5_000
    device.handle(Arrived("edge", Welcome(PROTOCOL, edge, 7, 1, 0, 10**6)), 200)
    device.handle(Arrived("edge", Ack(len(device.store) * 3 // 4, 10**6)), 201)
    assert lines(device.handle(Tick(), 202)) == [
        "to edge: Ack 0",
        "to coordinator: Report, runs q v1, reaches edge",
        f"{ORIGIN} goes on",
    ]


def test_rows_of_another_schema_are_refused_at_the_source_and_numbers_go_on() -> None:
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device"), 1)
    device.add_source("s", ORIGIN, COLUMNS)
    device.handle(Produced(ORIGIN, pa.RecordBatch.from_pydict({"x": [1]}), 0), 0)
    device.handle(Produced(Origin("nobody"), rows(), 0), 0)
    assert device.refused == {"SchemaMismatch": 1, "UnknownOrigin": 1}


def test_a_node_dials_its_parents_when_it_knows_where_they_are() -> None:
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=(NodeId("gateway"),)), 1)
    peer = Peer(node=NodeId("gateway"), address="tcp://127.0.0.1:1")
    assert worker.handle(orders(peers=(peer,)), 0) == [Allow((peer,)), Dial(peer)]
    assert lines(worker.handle(Tick(), 1)) == [
        "to gateway: Hello, start 1",
        "to coordinator: Report, runs nothing, reaches nothing",
    ]


def some_message(random: Random) -> Message:
    header = Header(
        origin=random.choice((ORIGIN, Origin(""), Origin("x" * 50), Origin("s", "a b"), Origin("s", "d", -1))),
        seq=random.choice((0, 5, -3, 2**62)),
        through=random.choice((0, 5, 9)),
        stage=random.choice((0, 1, -1, 10**6)),
        query=random.choice(("q", "", "unknown")),
        rows=random.choice((0, 2, -5)),
        born=random.choice((0, 2)),
        late=random.random() < 0.2,
    )
    number = random.choice((0, 1, 2, 3, -1, 2**60))
    return random.choice(
        (
            Hello(random.choice((PROTOCOL, 0)), NodeId(random.choice(("device", "other", ""))), number, number, number),
            Welcome(PROTOCOL, NodeId("device"), 1, number, number, number),
            Refused("unexpected", "?"),
            Data(number, header),
            Ack(number, number),
            Beat(number, number, number),
            Orders(PROTOCOL, (fragment(),), (QueryId("q"),), (), plans=plans_of(fragment())),
            Ask("1", random.choice(("submit", "status", "nothing")), random.randbytes(20)),
            edge().report(),
        )
    )


def mutated(random: Random, message: bytes) -> bytes:
    noisy = bytearray(message)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(noisy))
        match random.randrange(3):
            case 0:
                noisy[at] = random.randrange(256)
            case 1:
                del noisy[at:]
            case 2:
                noisy[at:at] = random.randbytes(random.randint(1, 8))
        if not noisy:
            break
    return bytes(noisy)


@pytest.mark.parametrize("seed", range(4))
def test_random_and_mutated_messages_are_answered_or_counted_and_break_nothing(seed: int) -> None:
    random, worker, coordinator = Random(seed), edge(), Coordinator()
    conn = linked(worker)
    payload = bytes(encode_rows(rows()) or b"")
    for now in range(2_500):
        message = encode(some_message(random))
        raw = mutated(random, message) if random.random() < 0.7 else message
        noise = mutated(random, payload) if random.random() < 0.5 else payload
        event: Arrived | Garbled
        try:
            event = Arrived(random.choice((conn, b"other")), decode(raw), random.choice((None, noise)))
        except ProtocolError as error:
            event = Garbled(conn, error.why, str(error))
        for machine in (worker, coordinator):
            machine.handle(event, now)
            machine.handle(Tick(), now)
    assert worker.refused["malformed"] > 0
    assert coordinator.refused["malformed"] > 0
    assert worker.store.bytes + worker.output.pending_bytes < 10_000_000


def test_a_source_that_is_started_anew_holds_nobody_up() -> None:
    """Two devices feed a window; one restarts under a new name, and the old name is waited for no longer."""
    plan = Stages.of({"out": windowed()})
    window = Stage(len(plan.operators) - 1)
    steady, before, after = Origin("t", "a"), Origin("t", "b", 1), Origin("t", "b", 2)

    def part(version: int, *origins: Origin) -> Fragment:
        return Fragment(
            query=QueryId("w"),
            version=Version(version),
            plan=named(codec.encode(plan)),
            runs=tuple(Stage(n) for n in range(1, len(plan.operators))),
            makes={window: Origin("w", stage=1)},
            waits={Stage(0): origins},
            next=None,
            sinks={window: Sink(kind="discard")},
        )

    worker = edge()
    worker.handle(orders(part(1, steady, before)), 0)
    below = Learned(0, ((NodeId("device"), "a"), (NodeId("device"), "b")))
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), learn=below)), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    for number, (origin, seq, second) in enumerate([(steady, 0, 1), (steady, 1, 60), (before, 0, 1)], start=1):
        header = Header(origin=origin, seq=seq, through=seq, rows=1, born=1, query="w")
        worker.handle(Arrived(b"c", Data(number, header), encode_rows(timed(second))), number + 1)
    heard(worker, b"c", 9)
    assert not made(worker)
    worker.handle(orders(part(2, steady, after)), 10)
    assert not made(worker)
    header = Header(origin=after, seq=0, through=0, rows=1, born=1, query="w")
    worker.handle(Arrived(b"c", Data(4, header), encode_rows(timed(61))), 11)
    heard(worker, b"c", 12)
    assert made(worker) == 1


def windowed() -> Operator:
    session = rove.Session.local().stream("t", schema="ts timestamp")
    counted = session.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds")).count()
    return counted.plan


def timed(second: int) -> pa.RecordBatch:
    moment = pa.array([second * 1_000_000], parse_schema("ts timestamp").field(0).type)
    return pa.RecordBatch.from_arrays([moment], names=["ts"])


def made(worker: Worker) -> int:
    """Windows that came out with rows."""
    return sum(t.produced for t in worker.report().tallies if t.origin == Origin("w", stage=1))


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": 5, "through": 4},
        {"seq": -1},
        {"through": 2**64 - 1, "rows": 0},
        {"born": -3},
        {"watermark": 2**63},
        {"seq": 0, "through": 3},
    ],
)
def test_numbers_that_no_origin_gives_are_refused_before_they_are_counted_with(changes: dict[str, int]) -> None:
    worker = edge()
    conn = linked(worker)
    header = {"seq": 0, "through": 0, **changes}
    refused = worker.handle(Arrived(conn, data(1, header.pop("seq"), **header), encode_rows(rows())), 2)
    assert lines(refused) == ["to c: Refused, malformed"]
    assert worker.handle(Arrived(conn, data(1, 0), encode_rows(rows())), 3) == []
    assert lines(worker.handle(Tick(), 4)) == ["to c: Ack 1"]


def test_a_query_that_cannot_run_here_says_why_and_holds_up_no_other() -> None:
    worker = edge()
    broken = Fragment(
        query=QueryId("bad"),
        version=Version(1),
        plan=named(PLAN),
        runs=(),
        makes={},
        waits={},
        next=None,
        sinks={Stage(0): Sink(kind="file", path="somewhere")},
    )
    worker.handle(orders(broken, fragment()), 0)
    report = worker.report()
    assert report.running == {"q": 1}
    (trouble,) = (report.troubles or {})[QueryId("bad")]
    assert "without a disk" in trouble.text
    assert (trouble.holds, trouble.final) == (True, True)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 1)
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 2)
    assert lines(worker.handle(Tick(), 3)) == [
        "to c: Ack 1",
        "to coordinator: Report, runs q v1, reaches nothing, cannot run bad",
    ]


def test_peers_that_join_one_by_one_are_not_promised_the_same_room_twice() -> None:
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", memory_bytes=8_000_000), 1)
    for n in range(100):
        worker.handle(Arrived(f"c{n}".encode(), Hello(PROTOCOL, NodeId(f"d{n}"), 1)), n)
        worker.handle(Tick(), n)
    promised = sum(link.outstanding for link in worker.links().values())
    assert promised <= 8_000_000 + 100 * 16 * 1024
    assert all(link.outstanding >= 16 * 1024 for link in worker.links().values())
