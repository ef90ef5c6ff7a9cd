"""Old segments are deleted at the user's limit, the input of operators is kept, and all rows are counted once."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from rove.data.events import DiskAnswer, DiskDone, DiskWork, Note, OnDisk, Opened
from rove.data.log.segments.commands import Delete
from rove.data.log.segments.format import index_file
from rove.data.log.settings import LogSettings
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Fragment, Hello, Orders, Sink
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.operators import Source, Watermark
from rove.plan.stages import Stages
from rove.sim.disk import SimDisk
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.log.entries import silence
from tests.data.plans import named, plans_of
from tests.data.test_worker import ORIGIN, PLAN, data, encode_rows, fragment, orders, rows

MOMENTS = parse_schema("key string, value timestamp")


class SmallShelf(SimShelf):
    """Segments of a few batches, of which the last few kilobytes are kept."""

    def answer(self, order: DiskWork) -> DiskAnswer:
        answer = super().answer(order)
        if isinstance(answer, Opened):
            answer.partition.settings = LogSettings(segment_bytes=2_000, keep_bytes=6_000)
        return answer


def test_a_log_that_may_keep_so_many_bytes_keeps_no_more() -> None:
    shelf = SmallShelf(Random(1))
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway", report_us=1_000), 1, durable=True)
    part = Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=named(PLAN),
        runs=(),
        makes={},
        waits={Stage(0): (ORIGIN,)},
        next=None,
        sinks={Stage(0): Sink(kind="log")},
    )
    deletes = now = 0
    commands = worker.handle(Arrived("coordinator", Orders(PROTOCOL, (part,), (), (), plans=plans_of(part))), now)
    done_at_once(worker, shelf, commands, now)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), now)
    payload = encode_rows(rows(20))
    for seq in range(200):
        now += 2_000
        commands = worker.handle(Arrived(b"c", data(seq + 1, seq, rows=20, born=20), payload), now)
        commands += worker.handle(Tick(), now)
        while orders_ := [c for c in commands if isinstance(c, DiskWork)]:
            groups = [order.group for order in orders_ if isinstance(order, OnDisk)]
            deletes += sum(isinstance(c, Delete) for group in groups for c in group.commands)
            commands = [c for order in orders_ for c in worker.handle(shelf.answer(order), now)]
    assert deletes > 20
    assert sum(shelf.disk("log/q/out").sizes().values()) < 20_000
    assert sum(t.delivered for t in worker.report().tallies) == 200 * 20
    assert not worker.troubles()


def test_a_query_that_is_opened_again_counts_what_is_on_the_disk_once() -> None:
    shelf = SimShelf(Random(2))
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 1, durable=True)
    part = replace(fragment(), sinks={Stage(0): Sink(kind="log")})
    done_at_once(worker, shelf, worker.handle(orders(part), 0), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 2)
    done_at_once(worker, shelf, worker.handle(Tick(), 3), 3)
    for attempt in range(3):
        assert [t.delivered for t in worker.report().tallies] == [2]
        worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), leave=(QueryId("q"),))), 10 + attempt)
        done_at_once(worker, shelf, worker.handle(orders(part), 10 + attempt), 10 + attempt)


def gateway(shelf: SimShelf, start: int) -> Worker:
    """A gateway with a query that ends in its log, and opens what the last start left."""
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), start, durable=True)
    part = replace(fragment(), sinks={Stage(0): Sink(kind="log")})
    done_at_once(worker, shelf, worker.handle(orders(part), 0), 0)
    return worker


def five_batches(shelf: SimShelf) -> SimDisk:
    """The folder of a log with five batches."""
    worker = gateway(shelf, 1)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    for seq in range(5):
        worker.handle(Arrived(b"c", data(seq + 1, seq), encode_rows(rows())), 2 + seq)
        done_at_once(worker, shelf, worker.handle(Tick(), 3 + seq), 3 + seq)
    assert not worker.troubles()
    assert worker.report().troubles == {}
    return shelf.disk("log/q/out")


@pytest.mark.parametrize("harm", ["flipped", "deleted"])
def test_damage_in_a_log_is_named_counted_and_shown_as_trouble_of_its_query(harm: str) -> None:
    shelf = SimShelf(Random(3))
    folder = five_batches(shelf)
    folder.harm(index_file(0), harm, 0.9)
    silence(folder, 0)
    again = gateway(shelf, 2)
    assert again.refused["damaged"] >= 1
    assert "its log is damaged: log/q/out/" in str(again.report().troubles)
    assert any(name == "damage in log/q/out" for name in again.troubles())


@pytest.mark.parametrize("harm", ["flipped", "deleted"])
def test_an_index_that_is_made_again_is_told_and_counted_and_nothing_is_lost(harm: str) -> None:
    shelf = SimShelf(Random(3))
    five_batches(shelf).harm(index_file(0), harm, 0.9)
    again = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 2, durable=True)
    part = replace(fragment(), sinks={Stage(0): Sink(kind="log")})
    said = done_at_once(again, shelf, again.handle(orders(part), 0), 0)
    (note,) = (command for command in said if isinstance(command, Note))
    assert note.text.startswith("log/q/out: 0000000000.index was damaged or gone; ")
    assert again.refused == {"mended": 1}
    assert not again.troubles()
    assert again.report().troubles == {}
    assert [(t.delivered, t.lost) for t in again.report().tallies] == [(10, 0)]


@pytest.mark.parametrize("folder", ["log/q/out", "memory/q"])
def test_a_full_disk_is_trouble_of_the_query_that_waits_for_it_until_there_is_room(folder: str) -> None:
    shelf = FullShelf(Random(4))
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 1, durable=True)
    windowed = folder == "memory/q"
    sinks = {Stage(1 if windowed else 0): Sink(kind="discard" if windowed else "log")}
    part = replace(timed() if windowed else fragment(), sinks=sinks)
    done_at_once(worker, shelf, worker.handle(orders(part), 0), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    done_at_once(worker, shelf, worker.handle(Tick(), 1), 1)
    shelf.full = True
    made = rows().cast(MOMENTS) if windowed else rows()
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(made)), 2)
    done_at_once(worker, shelf, worker.handle(Tick(), 3), 3)
    (trouble,) = (worker.report().troubles or {})[QueryId("q")]
    assert (trouble.holds, trouble.final) == (True, False)
    assert trouble.text.startswith(f"{folder}: No space left on device; what it should take is not acknowledged")
    shelf.full = False
    for now in range(4, 40):
        done_at_once(worker, shelf, worker.handle(Tick(), now * 1_000_000), now * 1_000_000)
    assert worker.report().troubles == {}


class FullShelf(SimShelf):
    """A disk that takes nothing while it is full."""

    full = False

    def answer(self, order: DiskWork) -> DiskAnswer:
        if self.full and isinstance(order, OnDisk):
            return DiskDone(order.folder, order.group.token, trouble="No space left on device")
        return super().answer(order)


def timed() -> Fragment:
    """The part of a query with a watermark, whose input is kept on the disk."""
    plan = codec.encode(Stages.of({"out": Watermark(Source("s", MOMENTS), "value", 0)}))
    return replace(fragment(), plan=named(plan), runs=(Stage(1),))
