"""The checkpoints of a log: two files in turn, and what is deleted because of them."""

from __future__ import annotations

from rove.data.log.segments.checkpoint import FILES
from rove.data.log.segments.commands import Delete, Position
from rove.data.log.segments.disk_work.commit import commit, retire
from rove.data.log.segments.format import CONSUMERS_FILE, MARK_FILE, data_file, index_file
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.sim.disk import SimDisk
from tests.data.log.entries import A, disk, filled, header, reopened, rows

ONE_EACH = LogSettings(segment_entries=1)


def keep(partition: Partition, folder: SimDisk, *positions: int) -> None:
    """Write checkpoints that say of which position they are."""
    for position in positions:
        assert partition.keep(Position(position), b"before %d" % position)
        assert partition.keeps
        while partition.keeps:  # first what a recovery has to write
            commit(partition, folder, 9_000)


def found(folder: SimDisk) -> tuple[int, bytes] | None:
    checkpoint = reopened(folder).checkpoints.found
    return None if checkpoint is None else (checkpoint.position, checkpoint.body)


def test_the_newest_checkpoint_is_found() -> None:
    folder = disk()
    partition = filled(folder, 9)
    assert found(folder) is None
    for position in (2, 5, 8):
        keep(partition, folder, position)
        assert found(folder) == (position, b"before %d" % position)


def test_entries_are_deleted_that_two_checkpoints_cover() -> None:
    folder = disk()
    partition = filled(folder, 9, ONE_EACH)
    keep(partition, folder, 4)
    assert retire(partition, folder, 9_000) == 0
    keep(partition, folder, 8)
    assert retire(partition, folder, 9_000) == 4
    assert partition.segments[0].first == 4
    keep(reopened(folder), folder, 9)
    again = reopened(folder)
    commit(again, folder, 9_000)
    assert again.checkpoints.newest == 9
    keep(again, folder, 9)
    assert again.consumers == {"checkpoint": 9}


def test_a_new_checkpoint_does_not_replace_the_only_one_that_can_be_read() -> None:
    folder = disk()
    partition = filled(folder, 9)
    keep(partition, folder, 2, 5)
    folder.harm(FILES[1], "flipped", 0.9)
    again = reopened(folder)
    assert again.mended == ["checkpoint-1 was damaged, and is made again from checkpoint-0"]
    keep(again, folder, 7)
    folder.harm(FILES[1], "zeroed", 0.0)
    assert found(folder) == (2, b"before 2")


def test_a_damaged_table_of_consumers_is_made_again_from_the_checkpoints() -> None:
    folder = disk()
    partition = filled(folder, 9, ONE_EACH)
    keep(partition, folder, 4, 8)
    commit(partition, folder, 9_000)
    folder.harm(CONSUMERS_FILE, "flipped", 0.9)
    again = reopened(folder)
    assert (again.damage, len(again.mended)) == ("", 1)
    keep(again, folder, 9)
    commit(again, folder, 9_001)
    assert reopened(folder).consumers == {"checkpoint": 8}


def test_a_checkpoint_that_is_ahead_of_its_log_moves_back() -> None:
    """The disk has lost entries that it had confirmed. Later entries get their positions."""
    folder = disk()
    partition = filled(folder, 9, ONE_EACH)
    keep(partition, folder, 7, 8)
    for number in range(5, 9):
        for file in (data_file(number), index_file(number)):
            folder.execute(Delete(file))
    folder.execute(Delete(MARK_FILE))
    again = reopened(folder)
    assert again.end == 5
    commit(again, folder, 9_000)
    assert found(folder) == (5, b"before 8")
    again.append(header(A, 20), rows(A, 20))
    commit(again, folder, 9_001)
    assert found(folder) == (5, b"before 8")
    assert not again.consumers


def test_a_checkpoint_that_could_not_be_written_is_written_later() -> None:
    folder = disk()
    partition = filled(folder, 3)
    partition.keep(Position(2), b"state")
    folder.fail_after = 0
    commit(partition, folder, 9_000)
    assert partition.keeps
    assert partition.trouble
    commit(partition, folder, 99_000_000)
    assert found(folder) == (2, b"state")
