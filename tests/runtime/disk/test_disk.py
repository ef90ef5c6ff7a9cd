"""The log on real files: kills, torn tails, a full disk, other processes."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from rove.data.log.segments.commands import Position, Replace
from rove.data.log.segments.damage import AlreadyOpen
from rove.data.log.settings import LogSettings
from rove.model.errors import DiskError
from rove.runtime.disk.disk import LogFolder, open_partition, open_reader
from tests.data.log.entries import SCHEMA, A, header, read_all, rows

ROOT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from rove.data.log.settings import LogSettings
from rove.runtime.disk.disk import open_partition
from tests.data.log.entries import A, SCHEMA, header, rows
writer = open_partition(sys.argv[1], SCHEMA, LogSettings(segment_bytes=20_000))
seq = writer.partition.ledger.frontier.next(A)
while True:
    for seq in range(seq, seq + 4):
        writer.append(header(A, seq), rows(A, seq, 20))
    seq += 1
    assert writer.commit()
    print(seq, flush=True)
"""
READER = """
import sys, time
from rove.runtime.disk.disk import open_reader
reader, seen = open_reader(sys.argv[1]), 0
ends = time.monotonic() + 60
while seen < int(sys.argv[2]) and time.monotonic() < ends:
    for entry in reader.entries():
        assert entry.position == entry.header.seq == seen, entry
        assert reader.read(entry).column("n")[0].as_py() == seen
        seen += 1
print(seen, len(reader.damage))
"""


def script(text: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def seqs(path: Path) -> list[int]:
    """The seqs of every committed entry, its rows read and checked."""
    found = []
    for entry, batch in read_all(LogFolder(path)):
        assert batch is not None
        assert batch.column("n")[0].as_py() == entry.header.seq
        found.append(entry.header.seq)
    return found


def test_a_killed_writer_loses_nothing_it_had_acked_and_doubles_nothing(tmp_path: Path) -> None:
    acked = 0
    for turn in range(10):
        writer = script(WRITER, tmp_path / "p")
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(0.01 * turn)
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait()
        acked = max([acked, *(int(line) for line in lines if line.endswith("\n"))])
        with open_partition(tmp_path / "p", SCHEMA) as log:
            assert log.partition.quarantine == []
            assert log.partition.committed == log.partition.end >= acked
            assert seqs(tmp_path / "p") == list(range(log.partition.end))
            acked = log.partition.end
    assert acked > 40


@pytest.mark.parametrize("how", ["short", "zeroes", "garbage"])
@pytest.mark.parametrize("file", ["0000000000.arrows", "0000000000.index"])
def test_a_tail_torn_at_any_byte_is_cut_and_what_was_acked_stays(tmp_path: Path, file: str, how: str) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    with open_partition(whole, SCHEMA) as log:
        log.append(header(A, 0), rows(A, 0))
        log.commit()
        good, mark = (whole / file).stat().st_size, (whole / "commit").read_bytes()
        log.append(header(A, 1), rows(A, 1))
        log.append(header(A, 2), rows(A, 2))
        log.commit()
    (whole / "commit").write_bytes(mark)  # the power went before readers were told of the last group
    data = (whole / file).read_bytes()
    for at in range(good, len(data)):
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(whole, torn)
        rest = len(data) - at
        tail = {"short": b"", "zeroes": bytes(rest), "garbage": os.urandom(rest)}[how]
        (torn / file).write_bytes(data[:at] + tail)
        with open_partition(torn, SCHEMA) as log:
            assert log.partition.quarantine == []
            kept = log.partition.ledger.frontier.next(A)
            assert 1 <= kept <= 3
            for seq in range(3):
                assert (log.append(header(A, seq), rows(A, seq)) is None) == (seq < kept)
            log.commit()
        assert seqs(torn) == [0, 1, 2]


def test_a_full_disk_is_trouble_and_not_the_end(tmp_path: Path) -> None:
    with open_partition(tmp_path / "p", SCHEMA) as log:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
        try:
            for seq in range(20):
                log.append(header(A, seq, 40), rows(A, seq, 40))
            assert not log.commit()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert log.partition.trouble is not None
        assert (log.partition.committed, log.partition.failures) == (0, 1)
        log.append(header(A, 20), rows(A, 20))
        later_us = time.time_ns() // 1_000 + 10_000_000
        assert log.commit(later_us) == range(20)
        assert log.commit(later_us) == range(20, 21)
        assert log.partition.trouble is None
    assert seqs(tmp_path / "p") == list(range(21))


def test_a_reader_in_another_process_sees_each_entry_once_while_segments_roll(tmp_path: Path) -> None:
    with open_partition(tmp_path / "p", SCHEMA, LogSettings(segment_bytes=8_000)) as log:
        reader = script(READER, tmp_path / "p", 300)
        for seq in range(300):
            log.append(header(A, seq), rows(A, seq))
            if seq % 3 == 2:
                log.commit()
        said, _ = reader.communicate(timeout=90)
        assert len(log.partition.segments) > 3
    assert said.split() == ["300", "0"]


def test_a_batch_that_was_read_outlives_the_segment_it_was_read_from(tmp_path: Path) -> None:
    with open_partition(tmp_path / "p", SCHEMA, LogSettings(segment_entries=1)) as log:
        for seq in range(6):
            log.append(header(A, seq), rows(A, seq))
            log.commit()
        reader = open_reader(tmp_path / "p")
        before = pa.total_allocated_bytes()
        batches = [reader.read(entry) for entry in reader.entries(5)]
        assert pa.total_allocated_bytes() == before  # nothing was copied
        log.partition.consumed("spark", Position(5))
        assert log.retire() == 5
        assert [b.column("n")[0].as_py() for b in batches if b is not None] == list(range(5))
        assert [entry.header.seq for entry in reader.entries()] == [5]
        assert len(list((tmp_path / "p").glob("*.arrows"))) == 1


def test_a_partition_has_one_writer(tmp_path: Path) -> None:
    with open_partition(tmp_path / "p", SCHEMA), pytest.raises(AlreadyOpen, match=str(os.getpid())):
        open_partition(tmp_path / "p", SCHEMA)
    open_partition(tmp_path / "p", SCHEMA).close()


def test_a_folder_that_cannot_be_made_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file in the way")
    with pytest.raises(DiskError, match="cannot be opened"):
        open_partition(tmp_path / "p", SCHEMA)


def test_replacing_a_file_leaves_no_other_behind(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    folder.execute(Replace("consumers", b"one"))
    folder.execute(Replace("consumers", b"two"))
    assert folder.sizes() == {"consumers": 3}
    assert folder.read("consumers", 1, 99) == b"wo"
