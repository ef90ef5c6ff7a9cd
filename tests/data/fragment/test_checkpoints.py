"""A restart goes on from the last checkpoint, and is the same as one that computes everything again."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from msgspec.structs import replace

import rove
from rove import functions as F
from rove.data.events import Command, DiskAnswer, DiskDone, DiskWork, OnDisk, ReadLog
from rove.data.log.segments.checkpoint import FILES, find
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import MARK_FILE
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Ack, Data, Fragment, Hello, Peer, Sink, Welcome
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.plans import named
from tests.data.test_worker import orders

SCHEMA = parse_schema("key string, ts timestamp, value bigint")
SECOND = 1_000_000
ONE, TWO = Origin("s", "one"), Origin("s", "two")
UP = NodeId("up")
INPUT, OUTPUT, LATE = "memory/q", "log/q/out", "late/q"
BATCHES = 40


def windows() -> Stages:
    stream = rove.Session.local().stream("s", schema=SCHEMA).withWatermark("ts", "2 seconds")
    counted = stream.groupBy(F.window("ts", "5 seconds"), "key").agg(F.sum("value").alias("total"))
    return Stages.of({"out": optimize(counted.plan)})


def part(next: NodeId | None = None) -> Fragment:
    stages = windows()
    last = Stage(len(stages.operators) - 1)
    return Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=named(codec.encode(stages)),
        runs=tuple(Stage(n) for n in range(1, len(stages.operators))),
        makes={Stage(n): Origin("q", "gateway", stage=n) for n in range(1, len(stages.operators))},
        waits={Stage(0): (ONE, TWO)},
        next=next,
        sinks={last: Sink(kind="log")} if next is None else {},
    )


class Lazy(SimShelf):
    """A disk that may hold back what is to be written into one folder."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.holds_back, self.held = "", list[OnDisk]()

    def answer(self, order: DiskWork) -> DiskAnswer:
        if isinstance(order, OnDisk) and order.folder == self.holds_back:
            self.held.append(order)
            return DiskDone("", 0)
        return super().answer(order)


class Gateway:
    """A gateway with a window, and its disk. Two devices take turns; every fifth row is late."""

    def __init__(
        self, shelf: SimShelf, checkpoint_bytes: int = 2_000, next: NodeId | None = None, **settings: object
    ) -> None:
        self.shelf, self.next, self.now, self.starts, self.fed = shelf, next, 0, 0, 0
        self.late_until = 10**6
        made = WorkerSettings(node=NodeId("gateway"), kind="gateway", report_us=1, parents=(UP,))
        self.settings = replace(made, checkpoint_bytes=checkpoint_bytes, checkpoint_us=0, **settings)
        self.begin()

    def begin(self) -> list[Command]:
        """Start, or start again after a crash. Returns what was asked of the disk besides writing."""
        self.starts += 1
        self.worker = Worker(self.settings, self.starts, durable=True)
        peers = (Peer(node=UP, address="there"),) if self.next else ()
        self.asked: list[Command] = []
        self.do(self.worker.handle(orders(part(self.next), peers=peers), self.now))
        for conn, origin in ((b"1", ONE), (b"2", TWO)):
            self.do(self.worker.handle(Arrived(conn, Hello(PROTOCOL, NodeId(origin.node), self.starts)), self.now))
        self.numbers = {b"1": 0, b"2": 0}
        self.tick()
        return self.asked

    def do(self, commands: list[Command]) -> list[Command]:
        self.asked += commands
        return done_at_once(self.worker, self.shelf, commands, self.now)

    def tick(self) -> list[Command]:
        said: list[Command] = []
        for _ in range(4):
            self.now += 10_000
            said += self.do(self.worker.handle(Tick(), self.now))
        self.worker.validate()
        return said

    def feed(self, batches: int) -> list[Command]:
        said = []
        for _ in range(batches):
            n, self.fed = self.fed, self.fed + 1
            conn, origin = ((b"1", ONE), (b"2", TWO))[n % 2]
            times = [
                n * SECOND,
                n * SECOND - (60 * SECOND if 60 < n < self.late_until else 0) if n % 5 == 0 else n * SECOND,
            ]
            rows = pa.record_batch([["a", "b"], pa.array(times, pa.int64()), [n, 1]], names=SCHEMA.names).cast(SCHEMA)
            self.numbers[conn] += 1
            header = Header(origin=origin, seq=n // 2, through=n // 2, rows=2, born=2, query="q")
            data = Arrived(conn, Data(self.numbers[conn], header), encode_rows(rows))
            said += self.do(self.worker.handle(data, self.now))
            said += self.tick()
        return said

    def results(self) -> list[tuple[object, ...]]:
        """What has come to its output and to the table of late rows, by name."""
        found: list[tuple[object, ...]] = []
        for folder in self.shelf.folders("log") + self.shelf.folders("late"):
            disk = self.shelf.disk(folder)
            for e in Reader(disk).rest():
                rows = disk.read(f"{e.segment:010d}.arrows", e.offset, e.length)
                found.append((folder, str(e.header.origin), e.header.seq, e.header.through, e.header.rows, rows))
        return sorted(found)

    def books(self) -> dict[Origin, tuple[int, ...]]:
        tallies = self.worker.report().tallies
        return {
            t.origin: (t.delivered, t.late, t.evicted, t.lost, t.open, t.seen, *dict(t.counted).values())
            for t in tallies
        }  # type: ignore[misc]

    def kept(self) -> set[str]:
        return {file for file in self.shelf.disk(INPUT).sizes() if file in FILES}


def reads(asked: list[Command]) -> list[int]:
    """Where the input log was read from."""
    return [each.position for each in asked if isinstance(each, ReadLog) and each.folder == INPUT]


def whole() -> Gateway:
    """One that never stops, and never takes a checkpoint."""
    found = Gateway(SimShelf(Random(1)), checkpoint_bytes=2**40)
    found.feed(BATCHES)
    return found


@pytest.mark.parametrize("crashes", [(1,), (7, 8), (13, 25), tuple(range(0, BATCHES, 3))])
def test_results_and_books_are_those_of_a_node_that_never_stopped(crashes: tuple[int, ...]) -> None:
    gateway, same = Gateway(SimShelf(Random(1)), checkpoint_bytes=500), whole()
    for n in range(BATCHES):
        if n in crashes:
            gateway.begin()
        gateway.feed(1)
    assert gateway.results() == same.results()
    assert gateway.books() == same.books()
    gateway.begin()
    assert gateway.books() == same.books()


def test_a_restart_reads_the_input_since_the_last_checkpoint() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.feed(BATCHES)
    (first, *_) = reads(gateway.begin())
    assert BATCHES // 2 < first < BATCHES


def test_input_that_two_checkpoints_cover_is_deleted() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.feed(4 * BATCHES)
    segments = [file for file in gateway.shelf.disk(INPUT).sizes() if file.endswith(".arrows")]
    assert "0000000000.arrows" not in segments
    assert len(segments) < 10
    before = gateway.books()
    gateway.begin()
    assert gateway.books() == before


def test_a_checkpoint_waits_until_the_next_node_has_what_was_given_out() -> None:
    gateway = Gateway(SimShelf(Random(1)), next=UP)
    gateway.do(gateway.worker.handle(Arrived("up", Welcome(PROTOCOL, UP, 7, gateway.starts, 0, 10**6)), gateway.now))
    said = gateway.feed(BATCHES)
    assert gateway.kept() == set()
    sent = [c.message.number for c in said if isinstance(c, Send) and isinstance(c.message, Data)]
    assert sent
    gateway.do(gateway.worker.handle(Arrived("up", Ack(max(sent), 10**6)), gateway.now))
    gateway.tick()
    assert gateway.kept()


def test_a_checkpoint_waits_until_the_disk_has_what_was_given_out() -> None:
    shelf = Lazy(Random(1))
    gateway = Gateway(shelf)
    shelf.holds_back = OUTPUT
    gateway.feed(BATCHES)
    assert gateway.kept() == set()
    shelf.holds_back = ""
    for order in shelf.held:
        gateway.do(gateway.worker.handle(shelf.answer(order), gateway.now))
    gateway.tick()
    assert gateway.kept()


def test_a_batch_that_came_too_early_is_still_there_after_a_restart() -> None:
    gateway, same = Gateway(SimShelf(Random(1))), Gateway(SimShelf(Random(1)), checkpoint_bytes=2**40)
    for each in (gateway, same):
        each.feed(6)
        each.fed += 2  # one batch of each device takes another way
        each.feed(BATCHES)
    (first, *_) = reads(gateway.begin())
    assert first > 10
    for each in (gateway, same):
        after, each.fed = each.fed, 6
        each.feed(2)
        each.fed = after
        each.feed(4)
    assert gateway.results() == same.results()
    assert gateway.books() == same.books()


def test_late_rows_that_are_evicted_after_a_checkpoint_was_taken_stay_evicted() -> None:
    gateway = Gateway(SimShelf(Random(1)), 500, UP, memory_bytes=10**6, evict="fifo")
    gateway.worker.store.limit_bytes = 8_000
    gateway.feed(4 * BATCHES)  # nobody takes what is given out, and the oldest goes
    gateway.worker.store.limit_bytes = 10**6  # and from now on nothing goes
    gateway.feed(4 * BATCHES)
    before = gateway.books()
    assert sum(evicted for _, _, evicted, *_ in before.values()) > 0
    welcome = Arrived("up", Welcome(PROTOCOL, UP, 7, gateway.starts, 0, 10**6))
    said = [*gateway.do(gateway.worker.handle(welcome, gateway.now)), *gateway.tick()]
    sent = [c.message.number for c in said if isinstance(c, Send) and isinstance(c.message, Data)]
    gateway.do(gateway.worker.handle(Arrived("up", Ack(max(sent), 10**6)), gateway.now))
    gateway.do(gateway.worker.handle(Tick(), gateway.now))
    assert reads(gateway.begin())[0] > 0
    assert gateway.books() == before


def test_readers_are_told_of_late_rows_again_although_none_come_after_the_restart() -> None:
    """A power cut may take the mark that tells readers how far they may read."""
    gateway = Gateway(SimShelf(Random(1)), checkpoint_bytes=500)
    gateway.late_until = 2 * BATCHES
    gateway.feed(4 * BATCHES)
    before = gateway.results()
    (late,) = {folder for folder, *_ in before if "late-" in str(folder)}
    gateway.shelf.disk(str(late)).harm(MARK_FILE, "deleted", 0.0)
    gateway.begin()
    gateway.tick()
    assert gateway.results() == before


def test_a_damaged_checkpoint_is_made_again_from_the_one_before() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.feed(4 * BATCHES)
    before, disk = gateway.books(), gateway.shelf.disk(INPUT)
    checkpoints, _, _ = find(disk.sizes(), disk.read, trimmed=True)
    disk.harm(FILES[1 - checkpoints.slot], "flipped", 0.5)
    (first, *_) = reads(gateway.begin())
    assert 0 < first < checkpoints.newest
    assert gateway.worker.refused["mended"] == 1
    assert gateway.books() == before


def test_without_any_checkpoint_all_input_is_computed_if_it_is_there() -> None:
    gateway, same = Gateway(SimShelf(Random(1))), whole()
    gateway.feed(BATCHES)
    for file in FILES:
        gateway.shelf.disk(INPUT).harm(file, "zeroed", 0.0)
    (first, *_) = reads(gateway.begin())
    assert first == 0
    assert gateway.books() == same.books()


def test_a_query_waits_and_says_why_if_its_checkpoints_are_gone_and_their_input_is_deleted() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.feed(4 * BATCHES)
    for file in FILES:
        gateway.shelf.disk(INPUT).harm(file, "cut", 0.5)
    gateway.begin()
    (trouble,) = gateway.worker.report().troubles[QueryId("q")]
    assert "checkpoint-0 and checkpoint-1 cannot be read, and earlier entries are deleted" in trouble.text
