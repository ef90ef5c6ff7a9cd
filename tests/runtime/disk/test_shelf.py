"""A node's disk: data that was reported safe is there after a restart, whatever happened in between."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec
import pyarrow as pa
import pytest

from rove.data.events import (
    AskReaders,
    DiskAnswer,
    DiskDone,
    DiskWork,
    Listed,
    ListFolders,
    Load,
    Loaded,
    LogRead,
    OnDisk,
    Open,
    Opened,
    OpenFailed,
    Produced,
    Readers,
    ReadLog,
    Remember,
)
from rove.data.log.segments.commands import START, Group, Position, Write
from rove.data.log.segments.damage import AlreadyOpen
from rove.data.log.segments.disk_work import read_back
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.stored import Stored
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.errors import DiskError, NotWritable
from rove.model.events import Tick
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import Fragment, Learned, Peer
from rove.runtime.clock import now_us
from rove.runtime.disk import disk
from rove.runtime.disk.disk import open_partition
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.network.bell import Bell
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, orders, rows

SCHEMA = pa.schema([pa.field("n", pa.int32())])
KEPT = Remember(
    (Fragment(query=QueryId("q"), version=Version(3), plan="plan", runs=(), makes={}, waits={}, next=None, sinks={}),),
    (Peer(node=NodeId("gateway"), address="tcp://127.0.0.1:1", key="k" * 40),),
    below=Learned(0, ((NodeId("edge"), "tram"), (NodeId("edge"), "q#3"))),
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


def answered(shelf: DiskShelf, order: DiskWork) -> DiskAnswer:
    """The answer to an order, when nothing else was asked."""
    shelf.ask(order)
    shelf.settle()
    (answer,) = shelf.done()
    return answer


def opened(shelf: DiskShelf, folder: str) -> Opened:
    answer = answered(shelf, Open(folder, 1, SCHEMA))
    assert isinstance(answer, Opened)
    return answer


def append(shelf: DiskShelf, partition: Partition, folder: str, seq: int) -> DiskDone:
    """One batch, made safe."""
    rows = encode_rows(pa.record_batch([pa.array([seq, seq], pa.int32())], schema=SCHEMA))
    partition.append(Header(origin=Origin("o"), seq=seq, through=seq, rows=2, born=2), rows)
    group = partition.flush(now_us())
    assert group is not None
    done = answered(shelf, OnDisk(folder, group))
    assert isinstance(done, DiskDone)
    if not done.trouble:
        partition.synced(done.token)
    return done


def test_a_group_is_carried_out_beside_the_loop_which_hears_a_bell(shelf: DiskShelf, bell: Bell) -> None:
    partition = opened(shelf, "log/q/out").partition
    assert append(shelf, partition, "log/q/out", 0) == DiskDone("log/q/out", 1)
    assert select.select([bell.descriptor], [], [], 0)[0]
    bell.quiet()
    assert not select.select([bell.descriptor], [], [], 0)[0]
    assert partition.committed == 1
    assert partition.landed[0].header.seq == 0


def test_a_restart_finds_every_entry_with_its_rows(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    partition = opened(shelf, "memory/q").partition
    for seq in range(3):
        append(shelf, partition, "memory/q", seq)
    shelf.close()
    again = DiskShelf(tmp_path / "disk", bell)
    found = opened(again, "memory/q")
    assert found.partition.committed == 3
    read = answered(again, ReadLog("memory/q", START, found.upto, rows=True))
    assert isinstance(read, LogRead)
    assert (read.over, read.trouble) == (True, "")
    assert [entry.header.seq for entry in read.entries] == [0, 1, 2]
    rows = [pa.ipc.read_record_batch(pa.py_buffer(entry.payload), SCHEMA) for entry in read.entries]
    assert [batch.to_pylist()[0]["n"] for batch in rows] == [0, 1, 2]
    again.close()


def test_a_log_is_read_back_in_parts_that_follow_each_other(
    shelf: DiskShelf, tmp_path: Path, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_back, "ENTRIES_MAX", 2)
    partition = opened(shelf, "memory/q").partition
    for seq in range(5):
        append(shelf, partition, "memory/q", seq)
    shelf.close()
    again = DiskShelf(tmp_path / "disk", bell)
    upto, position, parts = opened(again, "memory/q").upto, START, []
    for _ in range(3):
        read = answered(again, ReadLog("memory/q", position, upto, rows=True))
        assert isinstance(read, LogRead)
        parts.append([entry.header.seq for entry in read.entries])
        position = read.next
    assert parts == [[0, 1], [2, 3], [4]]
    assert read.over
    once_more = answered(again, ReadLog("memory/q", Position(1), upto, rows=True))
    assert isinstance(once_more, LogRead)
    assert [entry.header.seq for entry in once_more.entries] == [1, 2], "a part may be read again"
    again.close()


@pytest.mark.parametrize("left", ["nothing", "half", "garbage"])
def test_a_log_without_its_index_is_found_and_read_back_whole(
    shelf: DiskShelf, tmp_path: Path, bell: Bell, left: str
) -> None:
    partition = opened(shelf, "retention/1/q").partition
    for seq in range(5):
        append(shelf, partition, "retention/1/q", seq)
    shelf.close()
    (index,) = (tmp_path / "disk/retention/1/q").glob("*.index")
    before = index.read_bytes()
    index.write_bytes(before[: len(before) // 2] if left == "half" else b"x" * len(before))
    if left == "nothing":
        index.unlink()
    again = DiskShelf(tmp_path / "disk", bell)
    assert answered(again, ListFolders("retention")) == Listed("retention", ("retention/1/q",))
    found = opened(again, "retention/1/q")
    assert (found.partition.damaged, len(found.partition.mended)) == (0, 1)
    assert index.read_bytes() == before
    read = answered(again, ReadLog("retention/1/q", START, found.upto, rows=True))
    assert isinstance(read, LogRead)
    assert [entry.header.seq for entry in read.entries] == [0, 1, 2, 3, 4]
    again.close()


def test_rows_that_were_changed_on_the_disk_are_not_read(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    partition = opened(shelf, "memory/q").partition
    append(shelf, partition, "memory/q", 0)
    (file,) = [f for f in (tmp_path / "disk/memory/q").iterdir() if f.stat().st_size > 200 and f.suffix != ".index"][:1]
    data = bytearray(file.read_bytes())
    data[-8:] = b"\xee" * 8
    shelf.close()
    file.write_bytes(data)
    again = DiskShelf(tmp_path / "disk", bell)
    upto = opened(again, "memory/q").upto
    read = answered(again, ReadLog("memory/q", START, upto, rows=True))
    assert isinstance(read, LogRead)
    (entry,) = read.entries  # its name goes on, so that nobody waits for it
    assert (entry.payload, entry.header.rows, read.trouble) == (None, 0, "")
    assert "not what was written" in read.unread[0]
    passed = answered(again, ReadLog("memory/q", START, upto, rows=False))
    assert isinstance(passed, LogRead)
    assert (len(passed.unread), passed.trouble) == (1, "")
    (entry,) = passed.entries  # its name goes on
    assert (entry.header.seq, entry.header.rows, entry.header.lost, entry.payload) == (0, 0, 2, None)
    again.close()


def test_a_slow_disk_holds_nobody_up(shelf: DiskShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = opened(shelf, "log/q/out").partition
    monkeypatch.setattr(disk, "_sync", lambda _: time.sleep(0.5))
    partition.append(Header(origin=Origin("o"), seq=0, through=0), None)
    group = partition.flush(now_us())
    assert group is not None
    before = time.monotonic()
    shelf.ask(OnDisk("log/q/out", group))
    shelf.ask(Open("log/q/late-1", 2, SCHEMA))
    shelf.remember(KEPT)
    assert time.monotonic() - before < 0.2
    assert list(shelf.done()) == []
    shelf.settle()
    assert [type(answer) for answer in shelf.done()] == [DiskDone, Opened], "in the order in which they were asked"


def test_a_failed_group_is_told_and_is_not_the_end(shelf: DiskShelf) -> None:
    opened(shelf, "log/q/out")
    done = answered(shelf, OnDisk("log/q/out", Group(9, (Write("no/such/folder", 0, (b"x",)),))))
    assert isinstance(done, DiskDone)
    assert done.token == 9
    assert "No such file" in done.trouble


def test_a_folder_that_cannot_be_opened_says_why_and_the_next_attempt_may_succeed(
    shelf: DiskShelf, tmp_path: Path
) -> None:
    (tmp_path / "disk/log").mkdir()
    (tmp_path / "disk/log/q").write_text("a file where a folder should be")
    failed = answered(shelf, Open("log/q/out", 1, SCHEMA))
    assert isinstance(failed, OpenFailed)
    assert (failed.folder, failed.number) == ("log/q/out", 1)
    assert "cannot be opened" in failed.trouble
    (tmp_path / "disk/log/q").unlink()
    assert isinstance(answered(shelf, Open("log/q/out", 2, SCHEMA)), Opened)


def test_a_bug_in_the_thread_of_the_disk_is_raised_where_answers_are_taken(
    shelf: DiskShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "_answer", lambda order: 1 // 0)
    shelf.ask(ListFolders("retention"))
    shelf.settle()
    assert shelf.has_done
    with pytest.raises(ZeroDivisionError):
        list(shelf.done())


def test_who_reads_a_folder_from_outside_is_found(shelf: DiskShelf, tmp_path: Path) -> None:
    opened(shelf, "log/q/out")
    (tmp_path / "disk/log/q/out/reader-spark").write_text('{"position": 7}')
    (tmp_path / "disk/log/q/out/reader-other").write_text("half a wo")
    assert answered(shelf, AskReaders("log/q/out")) == Readers("log/q/out", {"spark": Position(7)})


def test_what_a_node_remembers_is_found_by_the_next_start(shelf: DiskShelf, tmp_path: Path, bell: Bell) -> None:
    assert shelf.remembered() is None
    shelf.remember(KEPT)
    shelf.close()
    again = DiskShelf(tmp_path / "disk", bell)
    assert again.remembered() == KEPT
    assert again.start > shelf.start
    again.close()


@pytest.mark.parametrize("file", ["remembered", "starts"])
@pytest.mark.parametrize("damage", ["a bit", "the end", "everything", "another version"])
def test_a_node_starts_without_a_damaged_file_and_names_it(tmp_path: Path, bell: Bell, file: str, damage: str) -> None:
    first = DiskShelf(tmp_path, bell)
    first.remember(KEPT)
    first.close()
    data = (tmp_path / file).read_bytes()
    other = msgspec.msgpack.encode([99, crc32(b""), b""])
    wrong = {
        "a bit": data[:-1] + bytes([data[-1] ^ 1]),
        "the end": data[:-3],
        "everything": b"",
        "another version": other,
    }
    (tmp_path / file).write_bytes(wrong[damage])
    shelf = DiskShelf(tmp_path, bell)
    assert shelf.remembered() == (None if file == "remembered" else KEPT)
    assert shelf.start > first.start
    (said,) = shelf.damaged
    assert said.startswith(f"{tmp_path / file} ")
    assert said.endswith(f"; the node starts without it, and keeps it as {file}.damaged")
    shelf.close()
    assert (tmp_path / f"{file}.damaged").read_bytes() == wrong[damage]
    again = DiskShelf(tmp_path, bell)
    again.remembered()
    assert not again.damaged
    again.close()


def test_nobody_else_can_look_into_a_nodes_folder(shelf: DiskShelf, tmp_path: Path) -> None:
    shelf.remember(KEPT)
    assert (tmp_path / "disk").stat().st_mode & 0o077 == 0
    assert (tmp_path / "disk" / "remembered").stat().st_mode & 0o077 == 0


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
    monkeypatch.setattr("rove.runtime.disk.shelf.keep_file", full)
    for _ in range(2):
        with pytest.raises(NotWritable, match="repair the disk or choose another folder"):
            DiskShelf(tmp_path / "disk", bell)
    monkeypatch.undo()
    DiskShelf(tmp_path / "disk", bell).close()


def test_a_sink_stays_below_its_nodes_folder(shelf: DiskShelf, tmp_path: Path) -> None:
    (tmp_path / "disk/away").symlink_to(tmp_path)
    for folder, why in (("../elsewhere", "cannot name a folder"), ("away/elsewhere", "outside of")):
        failed = answered(shelf, Open(folder, 1, SCHEMA))
        assert isinstance(failed, OpenFailed)
        assert why in failed.trouble
    assert not (tmp_path / "elsewhere").exists()


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
    worker = Worker(settings, shelf.start, durable=True)
    worker.add_source("s", ORIGIN, COLUMNS)
    worker.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=(Peer(node=NodeId("west"), address="x"),)), 0)
    for n in range(150):
        now = n * 1_000_000
        for command in (*worker.handle(Produced(ORIGIN, rows(50), n), now), *worker.handle(Tick(), now)):
            if isinstance(command, DiskWork):
                shelf.ask(command)
        shelf.settle()
        while answers := list(shelf.done()):
            for command in (command for answer in answers for command in worker.handle(answer, now)):
                if isinstance(command, DiskWork):
                    shelf.ask(command)
            shelf.settle()
    assert sum(entry.disk_bytes > 0 for entry in worker.store) > 140
    assert descriptors() < before + 30
    held = [e for e in worker.store if e.disk_bytes]
    wanted = bytes(encode_rows(rows(50)) or b"")
    addresses = [e.payload for e in held if isinstance(e.payload, Stored)]
    for number, address in enumerate(addresses):
        assert answered(shelf, Load(NodeId("west"), number, address)) == Loaded(NodeId("west"), number, wanted)
    (tmp_path / "node" / addresses[0].folder / "0000000000.arrows").write_bytes(b"")
    gone = answered(shelf, Load(NodeId("west"), 1, addresses[0]))
    assert isinstance(gone, Loaded)
    assert (gone.payload, gone.gone) == (None, True)
    shelf.close()


def test_rows_in_a_folder_that_everybody_may_look_into_are_for_its_user_and_group(tmp_path: Path) -> None:
    """A volume of a container, or a folder that its user has made, has the permissions that it has."""
    tmp_path.chmod(0o755)
    (tmp_path / "node").mkdir(mode=0o755)
    with open_partition(tmp_path / "node" / "log" / "q" / "out", pa.schema([("n", pa.int64())])) as log:
        log.append(Header(origin=Origin("s", "d"), seq=0, through=0), None)
        log.commit()
    found = list((tmp_path / "node").rglob("*"))
    assert len(found) > 3
    assert [path.name for path in found if path.stat().st_mode & 0o007] == []
