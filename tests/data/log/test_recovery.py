"""What a power cut tore is cut off and comes again; what was acked stays, and its positions are not used again."""

from __future__ import annotations

import pytest

from rove.data.log.segments.commands import Sync, Truncate
from rove.data.log.segments.commit import commit
from rove.data.log.segments.format import MARK_FILE, Mark, mark_bytes, read_mark
from rove.data.log.segments.partition import Partition
from rove.sim.disk import SimDisk
from tests.data.log.entries import A, disk, filled, header, read_all, reopened, rows, silence

INDEX, ROWS = "0000000000.index", "0000000000.arrows"


def changed(folder: SimDisk, file: str, data: bytes) -> None:
    folder._files[file].now[:] = data
    folder._files[file].synced = data


def torn() -> tuple[SimDisk, Partition]:
    """Two batches were acked, and a third was being written when the power went: its mark was not."""
    folder = disk()
    partition = filled(folder, 2)
    mark = folder.read(MARK_FILE, 0, 100)
    partition.append(header(A, 2), rows(A, 2))
    commit(partition, folder, 2_000)
    changed(folder, MARK_FILE, mark)
    return folder, partition


def test_rows_of_the_last_group_that_are_not_what_was_written_are_cut_and_may_come_again() -> None:
    folder, _ = torn()
    data = bytearray(folder.read(ROWS, 0, 10**6))
    data[-20] ^= 1
    changed(folder, ROWS, bytes(data))
    again = reopened(folder)
    assert (again.end, again.damage) == (2, "")
    assert again.append(header(A, 2), rows(A, 2)) == 2
    commit(again, folder, 3_000)
    commit(again, folder, 3_001)
    assert [entry.header.seq for entry, _ in read_all(folder)] == [0, 1, 2]


def test_a_record_that_is_torn_is_cut_off_and_the_rest_is_synced_before_anything_is_written() -> None:
    folder, partition = torn()
    for file in (INDEX, ROWS):
        changed(folder, file, folder.read(file, 0, 10**6)[:-16])
    again = reopened(folder)
    assert (again.end, again.committed, again.damage) == (2, 2, "")
    group = again.flush(3_000)
    assert group is not None
    cuts = [command.file for command in group.commands if isinstance(command, Truncate)]
    syncs = [command.file for command in group.commands if isinstance(command, Sync)]
    assert cuts == [INDEX, ROWS]
    assert syncs == [ROWS, INDEX]
    assert partition.end == 3


def test_what_was_written_whole_is_kept_and_counted_though_nobody_was_told() -> None:
    folder, _ = torn()
    again = reopened(folder)
    assert (again.end, again.damage) == (3, "")
    assert again.append(header(A, 2), rows(A, 2)) is None, "it is a duplicate"
    (count,) = again.ledger.counts().values()
    assert (count.rows, count.born) == (9, 30)


def test_positions_that_readers_were_told_of_are_not_used_again() -> None:
    folder = disk()
    filled(folder, 3)
    changed(folder, INDEX, folder.read(INDEX, 0, 10**6)[:-200])
    silence(folder, 0)
    again = reopened(folder)
    assert "is unreadable" in again.damage or "are gone" in again.damage
    assert again.append(header(A, 7), rows(A, 7)) == 3


@pytest.mark.parametrize("place", [9, 20, 33, 41])
def test_a_mark_that_is_torn_is_no_mark(place: int) -> None:
    data = bytearray(mark_bytes(Mark(1, 200, 300, 4)))  # type: ignore[arg-type]
    assert read_mark(bytes(data)) == Mark(1, 200, 300, 4)  # type: ignore[arg-type]
    data[place] ^= 1
    assert read_mark(bytes(data)) is None
