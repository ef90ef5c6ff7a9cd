"""A node's disk: data that was reported safe is there after a restart, whatever happened in between."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from rove.data.events import DiskDone, OnDisk, Produced, Remember
from rove.data.fragment.running_fragment import encode_rows
from rove.data.log.segments.commands import Group, Write
from rove.data.log.segments.damage import AlreadyOpen
from rove.data.log.segments.partition import Partition
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.errors import DiskError, NotWritable
from rove.model.events import Tick
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import Fragment, Peer
from rove.runtime import disk
from rove.runtime.clock import now_us
from rove.runtime.network.bell import Bell
from rove.runtime.shelf import DiskShelf
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, orders, rows

SCHEMA = pa.schema([pa.field("n", pa.int32())])
KEPT = Remember(
    (Fragment(query=QueryId("q"), version=Version(3), plan=b"plan", runs=(), makes={}, waits={}, next=None, sinks={}),),
    (Peer(node=NodeId("gateway"), address="tcp://127.0.0.1:1", key="k" * 40),),
)


@pytest.fixture
def bell() -> Iterator[Bell]:
    found = Bell()
    yield found
    found.close()


@pytest.fixture
def shelf(tmp_path: Path, bell: Bell) -> Iterator[DiskShelf]:
    found = DiskShelf(tmp_path / "disk", bell)
    yield found
    found.close()


def append(shelf: DiskShelf, partition: Partition, folder: str, seq: int) -> DiskDone:
    """One batch, made safe."""
    rows = encode_rows(pa.record_batch([pa.array([seq, seq], pa.int32())], schema=SCHEMA))
    partition.append(Header(origin="o", seq=seq, through=seq, rows=2, born=2), rows)
    group = partition.flush(now_us())
    assert group is not None
    shelf.carry_out(OnDisk(folder, group))
    shelf.settle()
    (done,) = shelf.done()
    if not done.trouble:
        partition.synced(done.token)
    return done


def test_a_group_is_carried_out_beside_the_loop_which_hears_a_bell(shelf: DiskShelf, bell: Bell) -> None:
    partition = shelf.open("log/q/out", SCHEMA)
    assert append(shelf, partition, "log/q/out", 0) == DiskDone("log/q/out", 1)
    assert select.select([bell.descriptor], [], [], 0)[0]
    bell.quiet()
    assert not select.select([bell.descriptor], [], [], 0)[0]
    assert partition.committed == 1


def test_a_restart_finds_every_entry_with_its_rows(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    partition = shelf.open("memory/q", SCHEMA)
    for seq in range(3):
        append(shelf, partition, "memory/q", seq)
    shelf.close()
    again = DiskShelf(tmp_path / "disk", bell)
    assert again.open("memory/q", SCHEMA).committed == 3
    found = list(again.entries("memory/q"))
    assert [header.seq for header, _ in found] == [0, 1, 2]
    assert [pa.ipc.read_record_batch(pa.py_buffer(rows), SCHEMA).to_pylist()[0]["n"] for _, rows in found] == [0, 1, 2]
    again.close()


def test_rows_that_were_changed_on_the_disk_are_not_read(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    partition = shelf.open("memory/q", SCHEMA)
    append(shelf, partition, "memory/q", 0)
    (file,) = [f for f in (tmp_path / "disk/memory/q").iterdir() if f.stat().st_size > 200 and f.suffix != ".index"][:1]
    data = bytearray(file.read_bytes())
    data[-8:] = b"\xee" * 8
    shelf.close()
    file.write_bytes(data)
    again = DiskShelf(tmp_path / "disk", bell)
    again.open("memory/q", SCHEMA)
    with pytest.raises(DiskError):
        list(again.entries("memory/q"))
    again.close()


def test_a_slow_disk_holds_nobody_up(shelf: DiskShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = shelf.open("log/q/out", SCHEMA)
    monkeypatch.setattr(disk, "_sync", lambda _: time.sleep(0.5))
    partition.append(Header(origin="o", seq=0, through=0), None)
    group = partition.flush(now_us())
    assert group is not None
    before = time.monotonic()
    shelf.carry_out(OnDisk("log/q/out", group))
    shelf.remember(KEPT)
    assert time.monotonic() - before < 0.2
    assert list(shelf.done()) == []
    shelf.settle()
    assert [done.token for done in shelf.done()] == [group.token]


def test_a_failed_group_is_told_and_is_not_the_end(shelf: DiskShelf) -> None:
    shelf.open("log/q/out", SCHEMA)
    shelf.carry_out(OnDisk("log/q/out", Group(9, (Write("no/such/folder", 0, (b"x",)),))))
    shelf.settle()
    (done,) = shelf.done()
    assert done.token == 9
    assert "No such file" in done.trouble


def test_answers_to_a_partition_that_was_opened_again_are_not_given(shelf: DiskShelf) -> None:
    shelf.open("log/q/out", SCHEMA)
    shelf.carry_out(OnDisk("log/q/out", Group(1, ())))
    shelf.open("log/q/out", SCHEMA)
    shelf.settle()
    assert list(shelf.done()) == []


def test_what_a_node_remembers_is_found_by_the_next_start(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    assert shelf.remembered() is None
    shelf.remember(KEPT)
    shelf.close()
    again = DiskShelf(tmp_path / "disk", bell)
    assert again.remembered() == KEPT
    assert again.incarnation > shelf.incarnation
    again.close()


@pytest.mark.parametrize("file", ["remembered", "starts"])
def test_a_damaged_file_is_named(tmp_path: Path, bell: Bell, file: str) -> None:
    first = DiskShelf(tmp_path, bell)
    first.remember(KEPT)
    first.close()
    data = bytearray((tmp_path / file).read_bytes())
    data[-1] ^= 1
    (tmp_path / file).write_bytes(data)

    def read() -> None:
        shelf = DiskShelf(tmp_path, bell)
        try:
            shelf.remembered()
        finally:
            shelf.close()

    with pytest.raises(DiskError, match=f"{tmp_path / file} is damaged"):
        read()


def test_two_processes_do_not_share_a_folder(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    with pytest.raises(AlreadyOpen, match="stop it, or use another folder"):
        DiskShelf(tmp_path / "disk", bell)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_may_be_mended_is_told_from_a_wrong_folder(
    tmp_path: Path, bell: Bell, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").write_text("x")
    with pytest.raises(DiskError, match="cannot be used") as wrong:
        DiskShelf(tmp_path / "file", bell)
    assert not isinstance(wrong.value, NotWritable)
    monkeypatch.setattr("rove.runtime.shelf.keep_file", full)
    for _ in range(2):
        with pytest.raises(NotWritable, match="mend the disk or choose another folder"):
            DiskShelf(tmp_path / "disk", bell)
    monkeypatch.undo()
    DiskShelf(tmp_path / "disk", bell).close()


def test_a_sink_stays_below_its_nodes_folder(shelf: DiskShelf) -> None:
    with pytest.raises(DiskError, match="outside of"):
        shelf.open("../elsewhere", SCHEMA)


def descriptors() -> int:
    """How many files this process has open."""

    def is_open(number: int) -> bool:
        try:
            os.fstat(number)
        except OSError:
            return False
        return True

    return sum(map(is_open, range(4_096)))


def test_rows_that_wait_on_the_disk_hold_no_descriptors(tmp_path: Path) -> None:
    before = descriptors()
    shelf = DiskShelf(tmp_path / "node", Bell())
    settings = WorkerSettings(
        node=NodeId("device"), kind="device", parents=(NodeId("west"),), disk_bytes=10**7, compress="off"
    )
    worker = Worker(settings, shelf.incarnation, shelf)
    worker.add_source("s", ORIGIN, COLUMNS)
    worker.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=(Peer(node=NodeId("west"), address="x"),)), 0)
    for n in range(150):
        now = n * 1_000_000
        commands = worker.handle(Produced(ORIGIN, rows(50), n), now) + worker.handle(Tick(), now)
        for command in commands:
            if isinstance(command, OnDisk):
                shelf.carry_out(command)
        shelf.settle()
        for done in shelf.done():
            worker.handle(done, now)
    assert sum(entry.disk_bytes > 0 for entry in worker.store) > 140
    assert descriptors() < before + 30
    held = [e for e in worker.store if e.disk_bytes]
    wanted = bytes(encode_rows(rows(50)) or b"")
    assert all(bytes(worker.store.rows_of(e) or b"") == wanted for e in held)
    (tmp_path / "node").joinpath(shelf.folders("ring")[0], "0000000000.arrows").write_bytes(b"")
    assert worker.store.rows_of(held[0]) is None, "what cannot be read is lost, and said so"
    assert (held[0].header.rows, held[0].header.lost) == (0, 50)
    shelf.close()
