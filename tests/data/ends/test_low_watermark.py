"""The low watermark at a gateway's log: it counts absent devices, never falls, and late rows are set aside."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import msgspec
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rove.data.ends.low_watermark import LowWatermark
from rove.data.events import Command
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.ledger import Ledger, LedgerTable
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.clock import END, MICROS_MIN
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Data, Fragment, Hello, Learned, Orders, Sink
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.operators import Source
from rove.plan.stages import Stages
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.plans import named, plans_of

SCHEMA = parse_schema("key string, ts timestamp")
PLAN = codec.encode(Stages.of({"out": Source("s", SCHEMA)}))
SPAN_US = 30_000_000
SECOND = 1_000_000
NEAR, FAR = Origin("s", "near"), Origin("s", "far")


class Gateway:
    """A gateway's machine with a disk that does at once what it is asked."""

    def __init__(self, shelf: SimShelf | None = None) -> None:
        self.shelf = shelf or SimShelf(Random(1))
        self.worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 1, durable=True)
        self.now = self.frames = self.version = 0
        self.worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("edge"), 1)), 0)

    def wait_for(self, *origins: Origin) -> None:
        self.version += 1
        sink = Sink(kind="log", time="ts", span_us=SPAN_US)
        fragment = Fragment(
            query=QueryId("q"),
            version=Version(self.version),
            plan=named(PLAN),
            runs=(),
            makes={},
            waits={Stage(0): origins},
            next=None,
            sinks={Stage(0): sink},
        )
        below = Learned(0, tuple((NodeId("edge"), origin.node) for origin in (NEAR, FAR)))
        orders = Orders(PROTOCOL, (fragment,), (), (), plans=plans_of(fragment), learn=below)
        self.obey(self.worker.handle(Arrived("coordinator", orders), self.now))
        self.tick()

    def take(self, origin: Origin, seq: int, seconds: list[int], watermark_s: int | None) -> None:
        """A batch with rows at these seconds and its origin's promise; None is the end."""
        micros = pa.array([s * SECOND for s in seconds], pa.int64()).cast(SCHEMA.field("ts").type)
        batch = pa.RecordBatch.from_arrays([pa.array([str(origin)] * len(seconds)), micros], schema=SCHEMA)
        header = Header(
            origin=origin,
            seq=seq,
            through=seq,
            query="q",
            watermark=END if watermark_s is None else watermark_s * SECOND,
            rows=len(seconds),
            born=len(seconds),
            event_min=min(seconds) * SECOND if seconds else None,
            event_max=max(seconds) * SECOND if seconds else None,
        )
        self.frames += 1
        rows = encode_rows(batch) if seconds else None
        self.obey(self.worker.handle(Arrived(b"c", Data(self.frames, header), rows), self.now))
        self.tick()

    def tick(self) -> None:
        self.now += 1_000
        for _ in range(3):
            self.obey(self.worker.handle(Tick(), self.now))

    def obey(self, commands: list[Command]) -> None:
        done_at_once(self.worker, self.shelf, commands, self.now)

    def seconds_in(self, folder: str) -> list[int]:
        reader, found = Reader(self.shelf.disk(f"log/q/{folder}")), list[int]()
        for entry in reader.entries():
            rows = reader.read(entry)
            found += [] if rows is None else [m // SECOND for m in rows.column("ts").cast(pa.int64()).to_pylist()]
        return sorted(found)

    def low_s(self) -> int | None:
        """What the log says of event time; None if it says nothing yet."""
        low = max((e.low for e in Reader(self.shelf.disk("log/q/out")).entries()), default=MICROS_MIN)
        return None if low == MICROS_MIN else low // SECOND

    def tallied(self) -> tuple[int, int]:
        tallies = self.worker.report().tallies
        return sum(t.delivered for t in tallies), sum(t.late for t in tallies)


def test_the_log_says_how_far_the_slowest_has_come_and_nothing_before_all_have_spoken() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR, FAR)
    gateway.take(NEAR, 0, [1, 20], 15)
    assert gateway.low_s() is None
    gateway.take(FAR, 0, [3, 9], 4)
    assert gateway.low_s() == 4
    gateway.take(NEAR, 1, [30], 25)
    assert gateway.low_s() == 4
    gateway.take(FAR, 1, [], 22)
    assert gateway.low_s() == 22


def test_rows_of_one_who_was_given_up_are_late_and_nothing_else_is() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR, FAR)
    gateway.take(NEAR, 0, [10, 60], 55)
    gateway.take(FAR, 0, [5], 0)
    assert gateway.low_s() == 0
    gateway.wait_for(NEAR)
    assert gateway.low_s() == 55
    gateway.take(FAR, 1, [6, 54, 55, 70], 65)
    assert gateway.seconds_in("out") == [5, 10, 55, 60, 70]
    assert gateway.seconds_in("late-out") == [6, 54]
    assert gateway.tallied() == (5, 2)


def test_late_rows_are_set_aside_once_however_often_they_come() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR)
    gateway.take(NEAR, 0, [60], 55)
    for _ in range(3):
        gateway.take(FAR, 0, [6, 70], 65)
    assert gateway.seconds_in("late-out") == [6]
    assert gateway.tallied() == (2, 1)


def test_late_rows_that_were_written_before_a_crash_and_the_rest_was_not_are_late_once() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR)
    gateway.take(NEAR, 0, [60], 55)
    before = deepcopy(gateway.shelf.disk("log/q/out"))
    gateway.take(FAR, 0, [6, 70], 65)
    gateway.shelf.disks["log/q/out"] = before
    again = Gateway(gateway.shelf)
    again.wait_for(NEAR, FAR)
    again.take(FAR, 0, [6, 70], 65)
    assert again.seconds_in("out") == [60, 70]
    assert again.seconds_in("late-out") == [6]
    assert again.tallied() == (2, 1)


def test_when_nobody_is_left_everything_closes_and_a_newcomer_with_newer_rows_is_in_time() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR)
    gateway.take(NEAR, 0, [10, 20], 15)
    gateway.take(NEAR, 1, [], None)
    assert gateway.low_s() == 20 + SPAN_US // SECOND
    gateway.wait_for(NEAR, FAR)
    gateway.take(FAR, 0, [40, 50, 90], 85)
    assert gateway.seconds_in("out") == [10, 20, 90]
    assert gateway.seconds_in("late-out") == [40, 50]
    assert gateway.low_s() == 85


def test_the_last_one_who_leaves_closes_everything_too() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR)
    gateway.take(NEAR, 0, [10, 20], 15)
    gateway.wait_for()
    assert gateway.low_s() == 20 + SPAN_US // SECOND


def test_a_gateway_that_starts_again_knows_what_was_promised() -> None:
    gateway = Gateway()
    gateway.wait_for(NEAR, FAR)
    gateway.take(NEAR, 0, [10, 60], 55)
    gateway.take(FAR, 0, [], None)
    gateway.take(FAR, 2, [80], 75)  # its number 1 is still on its way
    again = Gateway(gateway.shelf)
    again.wait_for(NEAR, FAR)
    assert again.low_s() == 55
    again.take(FAR, 3, [20], 20)
    again.take(NEAR, 1, [100], 95)
    assert again.low_s() == 95
    assert again.seconds_in("late-out") == [20]
    assert again.tallied() == (4, 1)
    assert Gateway(gateway.shelf).tallied() == (0, 0)
    last = Gateway(gateway.shelf)
    last.wait_for(NEAR)
    assert last.tallied() == (4, 1)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=12).map(
        lambda steps: [sum(steps[: n + 1]) for n in range(len(steps))]
    ),
    st.randoms(use_true_random=False),
)
def test_a_promise_holds_once_everything_before_it_is_here(marks: list[int], random: Random) -> None:
    """In whatever order the batches of an origin come, at no time is more promised than those without a gap say."""
    order = list(range(len(marks)))
    random.shuffle(order)
    ledger = Ledger()
    watermark = LowWatermark(Sink(kind="log"), ledger)
    watermark.wait([Origin("a")])
    here: set[int] = set()
    for seq in order:
        header = Header(origin=Origin("a"), seq=seq, through=seq, watermark=marks[seq])
        ledger.take(header)
        ledger.count(header, watermark.low)
        watermark.heard(Origin("a"))
        here.add(seq)
        whole = next((n for n in range(len(marks) + 1) if n not in here), 0)
        assert watermark.low == (marks[whole - 1] if whole else MICROS_MIN)
        ledger = ledger if random.random() < 0.7 else _stored(ledger)
        watermark = LowWatermark(Sink(kind="log"), ledger)
        watermark.wait([Origin("a")])


def _stored(ledger: Ledger) -> Ledger:
    return Ledger(msgspec.msgpack.decode(msgspec.msgpack.encode(ledger.table()), type=LedgerTable))
