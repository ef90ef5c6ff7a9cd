"""A store with a disk: waiting batches are written, sent from the disk, and found again; a bad disk is left unused."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from msgspec.structs import replace

import rove
from rove.data.events import (
    Command,
    DiskAnswer,
    DiskDone,
    DiskWork,
    Evicted,
    OnDisk,
    Open,
    OpenFailed,
    Pack,
    Produced,
    Wait,
)
from rove.data.log.segments.commands import Write
from rove.data.log.segments.format import data_file, index_file
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.store.left_behind import PATIENCE_US
from rove.data.store.packing import Packer
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import PROTOCOL, Ack, Data, Orders, Peer, Report, Welcome
from rove.plan import codec
from rove.plan.stages import Stages
from rove.sim.shelf import SimShelf
from tests.data.plans import named
from tests.data.test_worker import COLUMNS, SCHEMA, fragment, orders

WEST = NodeId("west")
SECOND = 1_000_000


def rows(count: int, seed: int = 0) -> pa.RecordBatch:
    drawn = Random(seed)
    values = [drawn.getrandbits(62) for _ in range(count)]
    return pa.RecordBatch.from_arrays([pa.array([f"k{seed}"] * count), pa.array(values, pa.int64())], schema=SCHEMA)


class Device:
    """A device with a disk that nobody hears. A new one on the same shelf is its next start."""

    def __init__(self, shelf: SimShelf, start: int = 1, **settings: object) -> None:
        settings = {"memory_bytes": 20_000, "disk_bytes": 1_000_000, "evict": "fifo", **settings}
        found = WorkerSettings(node=NodeId("device"), kind="device", parents=(WEST,), **settings)  # type: ignore[arg-type]
        self.shelf, self.origin, self.now = shelf, Origin("s", "device", start), 0
        self.worker = Worker(found, start, durable=True)
        self.worker.add_source("s", self.origin, COLUMNS)
        self.evicted: list[Evicted] = []
        self.packer = Packer()
        self.obey(self.worker.handle(orders(fragment(WEST, (self.origin,)), peers=(Peer(node=WEST, address="x"),)), 0))
        self.obey(self.worker.handle(Tick(), 0))

    def obey(self, commands: list[Command]) -> list[Send]:
        sends = []
        for command in commands:
            match command:
                case Send():
                    sends.append(command)
                case Evicted():
                    self.evicted.append(command)
                case Pack():
                    sends += self.obey(self.worker.handle(self.packer.answer(command), self.now))
                case _ if isinstance(command, DiskWork):
                    sends += self.obey(self.worker.handle(self.shelf.answer(command), self.now))
        return sends

    def second(self, made: pa.RecordBatch | None = None) -> list[Send]:
        self.now += SECOND
        sends = []
        if made is not None:
            sends = self.obey(self.worker.handle(Produced(self.origin, made, self.now), self.now))
        return sends + self.obey(self.worker.handle(Tick(), self.now))

    def makes(self, batches: range) -> None:
        """One batch a second."""
        for n in batches:
            self.second(rows(100, n))

    def meets(self, start: int) -> list[tuple[str, int, pa.RecordBatch | None]]:
        """The parent is there; what it gets, with its rows."""
        welcome = Welcome(PROTOCOL, WEST, 7, start, 0, 10**9)
        sends = self.obey(self.worker.handle(Arrived("west", welcome), self.now))
        (running,) = self.worker.running().values()
        found = []
        for send in sends:
            if isinstance(send.message, Data):
                header, payload = send.message.header, send.payload
                if payload is not None and header.packed:
                    from rove.data.store.packing import unpack

                    payload = encode_rows(unpack(payload, SCHEMA))
                found.append((header.origin, header.seq, running.read(header, payload).data))
        return found


def test_what_waits_is_written_and_sent_from_where_it_lies() -> None:
    device = Device(SimShelf(Random(1)), compress="off")
    made = [rows(100, n) for n in range(100)]
    for batch in made:
        device.second(batch)
    for _ in range(3):
        device.second()
    assert device.evicted == []
    assert device.worker.store.bytes < 20_000
    assert device.worker.store.disk_bytes > 100_000
    assert device.worker.report().held[0].bytes > 100_000
    assert device.meets(1) == [(device.origin, n, batch) for n, batch in enumerate(made)]
    device.obey(device.worker.handle(Arrived("west", Ack(100, 10**9)), device.now))
    device.second()
    assert (device.worker.store.disk_bytes, device.worker.store.bytes) == (0, 0)
    assert device.shelf.folders("retention") == []


def test_damaged_rows_are_counted_and_their_name_goes_on_until_it_has_arrived() -> None:
    shelf = SimShelf(Random(4))
    device = Device(shelf, compress="off")
    device.makes(range(10))
    device.second()
    (folder,) = shelf.folders("retention")
    device.shelf.disk(folder)._files[data_file(0)].written[3_000] ^= 0xFF
    for start in (2, 3):  # the first of them dies before anybody has heard of it
        again = Device(shelf, start, compress="off")
        again.second()
        assert again.worker.report().refused == {"damaged": 1}
        ((trouble,),) = again.worker.troubles_of_queries().values()
        assert f"of {folder}/{data_file(0)} are not what was written" in trouble.text
        (header,) = [entry.header for entry in again.worker.store if entry.header.lost]
        assert (header.born, header.lost) == (0, 100)
    sent = again.meets(3)
    assert [seq for _, seq, _ in sent] == list(range(10)), "nobody above waits for a number that never comes"
    assert [seq for _, seq, data in sent if data is None] == [header.seq]
    again.obey(again.worker.handle(Arrived("west", Ack(10, 10**9)), again.now))
    again.second()
    assert shelf.folders("retention") == []
    again.worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), again.now)
    assert again.worker.troubles_of_queries() == {}


def test_a_damaged_batch_that_is_at_the_front_of_a_folder_keeps_its_file() -> None:
    shelf = SimShelf(Random(4))
    device = Device(shelf, compress="off")
    device.makes(range(1))
    device.second()
    device.second()
    (folder,) = shelf.folders("retention")
    device.shelf.disk(folder)._files[data_file(0)].written[-300] ^= 0xFF
    again = Device(shelf, 2, compress="off")
    assert [entry.header.lost for entry in again.worker.store] == [100]
    again.second()
    assert folder in shelf.folders("retention"), "its name is only there"
    assert device.origin in {source.origin for source in again.worker.report().facts.sources}  # type: ignore[union-attr]


def test_a_ring_whose_batches_have_no_names_left_is_trouble() -> None:
    shelf = SimShelf(Random(4))
    device = Device(shelf, compress="off")
    device.makes(range(20))
    device.second()
    (folder,) = shelf.folders("retention")
    files = device.shelf.disk(folder)._files
    for name in (data_file(0), index_file(0)):
        files[name].written[:] = bytes(len(files[name].written))
    again = Device(shelf, 2, compress="off")
    ((trouble,),) = again.worker.troubles_of_queries().values()
    assert f"{folder}/{index_file(0)}" in trouble.text
    assert again.worker.report().refused["damaged"] > 0


@pytest.mark.parametrize("left", [0, 2_000])
def test_a_file_that_is_short_costs_its_own_batches_and_no_others(left: int) -> None:
    shelf = SimShelf(Random(14))
    device = Device(shelf, compress="off")
    device.makes(range(20))
    device.second()
    (folder,) = shelf.folders("retention")
    files = device.shelf.disk(folder)._files
    assert data_file(1) in files
    del files[data_file(0)].written[left:]
    again = Device(shelf, 2, compress="off")
    damaged = again.worker.report().refused["damaged"]
    sent = again.meets(2)
    assert 0 < damaged < 20
    assert sum(data is not None for _, _, data in sent) == 20 - damaged
    assert [seq for _, seq, _ in sent] == list(range(20))


def test_rows_that_are_damaged_while_they_wait_are_not_sent_for_good_ones() -> None:
    device = Device(SimShelf(Random(15)), compress="off")
    device.makes(range(10))
    device.second()
    (folder,) = device.shelf.folders("retention")
    device.shelf.disk(folder)._files[data_file(0)].written[3_000] ^= 0xFF
    sent = device.meets(1)
    assert [seq for _, seq, _ in sent] == list(range(10))
    assert [data for _, seq, data in sent if data is not None] == [
        rows(100, seq) for _, seq, data in sent if data is not None
    ]
    assert sum(data is None for _, _, data in sent) == 1
    (lost,) = [e.header.lost for e in device.worker.store if e.header.lost]
    assert lost == 100
    ((trouble,),) = device.worker.troubles_of_queries().values()
    assert f"{folder}/{data_file(0)} are not what was written" in trouble.text


def test_a_folder_that_could_not_be_deleted_keeps_nothing_from_being_written() -> None:
    device = Device(SimShelf(Random(16)), compress="off")
    device.makes(range(5))
    device.second()
    (folder,) = device.shelf.folders("retention")
    left = {name: bytes(file.written) for name, file in device.shelf.disk(folder)._files.items()}
    device.meets(1)
    device.obey(device.worker.handle(Arrived("west", Ack(5, 10**9)), device.now))
    device.second()
    assert device.shelf.folders("retention") == []
    for name, data in left.items():
        device.shelf.disk(folder).execute(Write(name, 0, (data,)))
    device.now += 10 * SECOND
    device.second()
    device.makes(range(5, 9))
    for _ in range(3):
        device.second()
    assert device.worker.store.leaving_bytes == 0
    assert sum(e.disk_bytes > 0 for e in device.worker.store) == 4


@pytest.mark.parametrize("evict", ["fifo", "query_aware", "priority"])
def test_the_oldest_goes_when_the_disk_is_full_as_well(evict: str) -> None:
    device = Device(SimShelf(Random(5)), evict=evict, disk_bytes=60_000, compress="off")
    for n in range(100):
        device.second(rows(100, n))
        assert device.worker.store.disk_bytes < 70_000
        assert device.worker.store.bytes < 30_000
    gone = [e.seq for e in device.evicted]
    assert 30 < len(gone) < 90
    assert gone == list(range(len(gone)))
    (tally,) = device.worker.report().tallies
    assert tally.produced == tally.buffered + 100 * len(gone)


@pytest.mark.parametrize("after", [0, 20_000])
def test_a_disk_without_room_is_done_without_and_used_again_when_it_has_some(after: int) -> None:
    shelf = SimShelf(Random(6))
    device = Device(shelf, compress="off")
    device.second(rows(100))
    device.second()
    device.second()
    (folder,) = shelf.folders("retention")
    shelf.disk(folder).capacity_bytes = after
    for n in range(1, 100):
        device.second(rows(100, n))
        assert device.worker.store.bytes < 30_000
    assert device.evicted
    assert "full" in device.worker.troubles()["waiting rows on the disk"]
    shelf.disk(folder).capacity_bytes = None
    before = len(device.evicted)
    device.makes(range(100, 200))
    assert len(device.evicted) < before + 15  # those of the time until it was tried again
    assert device.worker.troubles() == {}
    (tally,) = device.worker.report().tallies
    assert tally.produced == tally.buffered + sum(e.rows for e in device.evicted)
    gone = {e.seq for e in device.evicted}
    assert {seq for _, seq, data in device.meets(1) if data is not None} == set(range(200)) - gone


def test_many_small_batches_lose_the_oldest_when_their_names_fill_the_memory() -> None:
    device = Device(SimShelf(Random(10)), compress="off", disk_bytes=10_000_000)
    for n in range(600):
        device.second(rows(10, n))
        assert device.worker.store.bytes < 30_000
    gone = [e.seq for e in device.evicted]
    assert gone == list(range(len(gone)))
    assert gone


def test_what_may_not_go_on_a_full_disk_does_not_keep_memory_from_making_room() -> None:
    device = Device(SimShelf(Random(11)), compress="off", disk_bytes=30_000)
    device.makes(range(40))
    store = device.worker.store
    for entry in [e for e in store if e.disk_bytes]:
        device.worker._neighbours.link(NodeId("another")).offer(store.copy(entry), 0)  # it goes over that route, too
    for n in range(40, 150):
        device.second(rows(100, n))
        assert store.bytes < 30_000
    assert {e.header.seq for e in store if e.disk_bytes} <= set(range(40))


def test_a_folder_that_cannot_be_opened_does_not_cost_the_disk() -> None:
    class Broken(SimShelf):
        def answer(self, order: DiskWork) -> DiskAnswer:
            if isinstance(order, Open) and order.folder.startswith("retention/1/"):
                return OpenFailed(order.folder, order.number, "cannot be opened")
            return super().answer(order)

    shelf = SimShelf(Random(12))
    device = Device(shelf)
    device.makes(range(10))
    broken = Broken(Random(13))
    broken.disks = shelf.disks
    again = Device(broken, 2, compress="off")
    again.makes(range(PATIENCE_US // SECOND - 1))
    assert not [s for s in again.second() if isinstance(s.message, Report)], "it may still be found"
    again.second()
    assert again.evicted == []
    assert again.worker.settings.report_us <= SECOND
    assert [s for s in again.second() if isinstance(s.message, Report)]
    assert again.worker.store.disk_bytes > 20_000
    assert again.worker.report().refused == {"damaged": 1}


def test_late_batches_at_the_front_keep_no_files() -> None:
    device = Device(SimShelf(Random(14)), compress="off", disk_bytes=60_000)
    (running,) = device.worker.running().values()
    header = Header(query="q", origin=device.origin, seq=0, through=0, rows=100, born=100, late=True)
    device.worker._exits.forward(running, header, encode_rows(rows(100)), None)
    device.makes(range(300))
    files = sum(sum(device.shelf.disk(f).sizes().values()) for f in device.shelf.folders("retention"))
    assert files < 2 * 60_000


def test_a_disk_that_cannot_be_written_takes_nothing_down() -> None:
    class ReadOnly(SimShelf):
        def answer(self, order: DiskWork) -> DiskAnswer:
            if isinstance(order, OnDisk):
                return DiskDone(order.folder, order.group.token, trouble="[Errno 30] Read-only file system")
            return super().answer(order)

    device = Device(ReadOnly(Random(7)))
    for n in range(100):
        device.second(rows(100, n))
        assert device.worker.store.bytes < 30_000
    assert "Read-only" in device.worker.troubles()["waiting rows on the disk"]
    (tally,) = device.worker.report().tallies
    assert tally.produced == tally.buffered + sum(e.rows for e in device.evicted)


def test_sources_wait_when_memory_and_disk_are_full_and_nothing_may_go() -> None:
    device = Device(SimShelf(Random(8)), evict="block", disk_bytes=30_000, compress="off")
    for n in range(60):
        if not device.worker.sources.waiting():
            device.second(rows(100, n))
        else:
            device.second()
    assert device.worker.sources.waiting() == [device.origin]
    assert device.evicted == []
    assert device.worker.store.disk_bytes >= 30_000


def test_sources_wait_when_memory_is_full_of_names_that_have_to_stay() -> None:
    shelf, given = SimShelf(Random(24)), {"compress": "off", "memory_bytes": 10_000, "disk_bytes": 400_000}
    for start in (1, 2):
        device = Device(shelf, start, **given)
        for n in range(200):
            before = len(device.evicted)
            device.now += SECOND
            commands = device.worker.handle(Produced(device.origin, rows(100, n), device.now), device.now)
            device.obey(commands)
            device.obey(device.worker.handle(Tick(), device.now))
            assert len(device.evicted) - before <= 3
            if any(isinstance(command, Wait) for command in commands):
                break
        assert (n < 199) == (start == 2), "what an earlier start has sent may be known, and names of it stay apart"


class Hung(Device):
    """A device whose disk does not answer."""

    def obey(self, commands: list[Command]) -> list[Send]:
        return super().obey([command for command in commands if not isinstance(command, OnDisk)])


def test_what_is_handed_to_a_disk_that_does_not_answer_has_a_bound() -> None:
    device = Hung(SimShelf(Random(22)), compress="off", disk_bytes=100_000_000)
    device.makes(range(500))
    spill = device.worker._retention._on_disk
    assert spill is not None
    assert sum(folder.partition.pending_bytes for folder in spill._folders.values()) < 20_000
    assert device.worker.store.bytes < 30_000
    writing = {entry.header.seq for folder in spill._folders.values() for entry in folder.writing.values()}
    assert writing
    assert not writing & {e.seq for e in device.evicted}, "what may come to the disk is not thrown away meanwhile"


@pytest.mark.parametrize("late", [False, True])
def test_late_rows_in_memory_do_not_push_others_off_the_disk(late: bool) -> None:
    columns = "key string, ts timestamp, value bigint"
    stream = rove.Session.local().stream("s", schema=columns)
    stages = Stages.of({"out": stream.withWatermark("ts", "1 second").plan})
    device = Device(SimShelf(Random(25)), compress="off", disk_bytes=100_000)
    device.worker = Worker(device.worker.settings, 1, durable=True)
    device.worker.add_source("s", device.origin, columns)
    part = replace(fragment(WEST, (device.origin,)), plan=named(codec.encode(stages)), runs=(Stage(1),))
    part = replace(part, waits={Stage(0): (device.origin,)})
    device.obey(device.worker.handle(orders(part, peers=(Peer(node=WEST, address="x"),)), 0))
    for n in range(300):
        moments = [10**15 + n * SECOND + m for m in range(50)]
        moments[0] = 10**15 if late else moments[0]
        made = pa.record_batch([["k"] * 50, moments, list(range(50))], schema=stages.operators[0].schema)
        device.second(made)
    in_time = [e for e in device.worker.store if e.payload is not None and not e.header.late]
    assert len(in_time) > 40
