"""Batches that an earlier start of a node left on its disk are found, sent and accounted for by the next one."""

from __future__ import annotations

from random import Random

import pytest

from rove.data.events import (
    Produced,
    Stop,
)
from rove.data.log.segments.format import data_file
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import PROTOCOL, Ack, Orders, check_report
from rove.sim.disk import HARMS
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.store.test_spill import SECOND, WEST, Device, rows
from tests.data.test_worker import COLUMNS


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("harm", [None, *HARMS])
def test_what_was_on_the_disk_is_sent_by_the_next_start_under_its_old_name(harm: str | None, power: bool) -> None:
    shelf = SimShelf(Random(2))
    device = Device(shelf)
    made = [rows(100, n) for n in range(30)]
    for batch in made:
        device.second(batch)
    device.second()
    device.second()
    shelf.crash([], power)
    for folder in shelf.folders("retention") if harm else ():
        for file in (file for file in sorted(shelf.disk(folder).sizes()) if file.endswith(".index")):
            shelf.disk(folder).harm(file, harm or "", 0.4)
    again = Device(shelf, 2)
    assert {s.origin for s in again.worker.report().facts.sources} == {
        Origin("s", "device", 1),
        Origin("s", "device", 2),
    }
    again.second(rows(5, 77))
    sent = again.meets(2)
    assert sent[0] == (again.origin, 0, rows(5, 77)), "what is in memory does not wait for the disk"
    assert sent[1:] == [(device.origin, n, batch) for n, batch in enumerate(made)]
    assert again.worker.report().tallies[0].buffered == 3_000
    again.obey(again.worker.handle(Arrived("west", Ack(len(sent), 10**9)), again.now))
    again.second()
    assert [s.origin for s in again.worker.report().facts.sources] == [Origin("s", "device", 2)]
    assert shelf.folders("retention") == []


@pytest.mark.parametrize("memory_bytes", [2_000_000, 20_000])
def test_a_device_that_is_stopped_leaves_nothing_in_memory(memory_bytes: int) -> None:
    shelf = SimShelf(Random(17))
    device = Device(shelf, compress="off", memory_bytes=memory_bytes)
    for n in range(30):
        device.obey(device.worker.handle(Produced(device.origin, rows(100, n), n), device.now))
        device.obey(device.worker.handle(Tick(), device.now))
    while any(entry.in_memory is not None for entry in device.worker.store):
        device.obey(device.worker.handle(Stop(), device.now))
    again = Device(shelf, 2, compress="off")
    assert again.meets(2) == [(device.origin, n, rows(100, n)) for n in range(30)]


def test_what_is_left_is_found_when_the_first_files_are_gone_already() -> None:
    shelf = SimShelf(Random(9))
    device = Device(shelf, compress="off")
    device.makes(range(100))
    device.meets(1)
    device.obey(device.worker.handle(Arrived("west", Ack(60, 10**9)), device.now))
    device.second()
    device.second()
    (folder,) = [name for name in shelf.folders("retention") if "sent" not in name]
    assert data_file(0) not in shelf.disk(folder).sizes()
    left = [h.seq for h in device.worker.on_disk()]
    again = Device(shelf, 2, compress="off")
    sent = [seq for _, seq, _ in again.meets(2)]
    assert sent == list(range(sent[0], 100)), "in order, wherever they lay"
    assert 0 < sent[0] <= left[0] == 60, "those of the same file come again, and are known by their names"
    assert again.worker.report().refused == {}


def test_a_query_that_is_over_when_a_device_is_back_leaves_nothing_on_its_disk() -> None:
    shelf = SimShelf(Random(3))
    device = Device(shelf)
    device.makes(range(10))
    device.second()
    settings = WorkerSettings(node=NodeId("device"), kind="device", parents=(WEST,), disk_bytes=10**6)
    again = Worker(settings, 2, durable=True)
    again.add_source("s", Origin("s", "device", 2), COLUMNS)
    done_at_once(again, shelf, again.handle(Tick(), 0), 0)
    assert again.report().unknown == ("q",)
    again.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), 1)
    assert again.report().tallies == (), "some of it may have arrived; the coordinator knows what has"
    done_at_once(again, shelf, again.handle(Tick(), SECOND), SECOND)
    assert shelf.folders("retention") == []
    assert [s.origin for s in again.report().facts.sources] == [Origin("s", "device", 2)]


def test_what_was_sent_and_what_was_not_come_back_in_one_order() -> None:
    shelf = SimShelf(Random(12))
    device = Device(shelf, compress="off")
    for n in range(3):
        device.second(rows(100, n))
        device.meets(1)
    device.makes(range(3, 10))
    for _ in range(3):
        device.second()
    assert len(shelf.folders("retention")) == 2, "what was sent lies apart"
    again = Device(shelf, 2, compress="off")
    assert [seq for _, seq, _ in again.meets(2)] == list(range(10))


def test_a_batch_that_an_earlier_start_may_have_sent_says_what_went_of_it_alone() -> None:
    shelf = SimShelf(Random(13))
    device = Device(shelf, compress="off", disk_bytes=30_000)
    device.makes(range(10))
    device.meets(1)  # all of them have arrived, and nobody heard that
    device.second()
    again = Device(shelf, 2, compress="off", disk_bytes=30_000)
    again.makes(range(60))
    old = [e.header for e in again.worker.store if e.header.origin == device.origin]
    assert sum(h.evicted for h in old) > 0
    assert all(h.seq == h.through for h in old), "whoever has one of them takes it for known, and nothing twice"


def test_batches_of_other_devices_on_the_disk_are_not_reported_as_own_sources() -> None:
    shelf = SimShelf(Random(15))
    relay = Device(shelf, compress="off")
    (running,) = relay.worker.running().values()
    header = Header(query="q", origin=Origin("s", "other", 7), seq=0, through=0, rows=100, born=100)
    relay.worker._exits.forward(running, header, encode_rows(rows(100)), None)
    relay.makes(range(3))
    again = Device(shelf, 2)
    assert {h.origin.node for h in again.worker.on_disk()} == {"device", "other"}
    report = again.worker.report()
    check_report(report)  # otherwise the coordinator refuses all of it
    assert report.facts is not None
    assert {source.origin for source in report.facts.sources} == {relay.origin, again.origin}


def test_the_next_start_that_is_away_as_well_throws_away_what_it_must_and_no_more() -> None:
    shelf, given = SimShelf(Random(21)), {"compress": "off", "memory_bytes": 200_000, "disk_bytes": 2_000_000}
    device = Device(shelf, **given)
    for n in range(150):
        device.second(rows(1_000, n))
    again = Device(shelf, 2, **given)
    for n in range(300):
        before = len(again.evicted)
        again.second(rows(1_000, n))
        assert len(again.evicted) - before <= 16, "those that were found, and are too many, and one for each that comes"
    assert len(again.evicted) < 310
    assert again.worker.store.disk_bytes > 1_800_000
    files = sum(folder.partition.file_bytes for folder in again.worker._retention._on_disk._folders.values())  # type: ignore[union-attr]
    assert files < 2 * 2_000_000


def test_a_query_that_ends_while_the_disk_is_being_read_is_not_found_again() -> None:
    shelf = SimShelf(Random(3))
    device = Device(shelf)
    device.makes(range(10))
    device.second()
    settings = WorkerSettings(node=NodeId("device"), kind="device", parents=(WEST,), disk_bytes=10**6)
    again = Worker(settings, 2, durable=True)
    again.add_source("s", Origin("s", "device", 2), COLUMNS)
    asked = again.handle(Tick(), 0)
    again.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), 1)
    done_at_once(again, shelf, asked, 2)
    assert not again.busy
    assert again.report().unknown == ()
