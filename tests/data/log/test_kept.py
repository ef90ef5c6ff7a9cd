"""What a log keeps over restarts: consumers, positions, numbers, watermarks; and what it does not take for a record."""

from __future__ import annotations

from msgspec.structs import replace

from rove.data.log.segments.commands import Delete, Position
from rove.data.log.segments.disk_work.commit import carry_out, commit, retire
from rove.data.log.segments.format import scan
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.batch import HeaderKind
from tests.data.log.entries import SCHEMA, A, disk, filled, header, reopened, rows

ONE_EACH = LogSettings(segment_entries=1)


def test_a_consumer_is_known_after_a_restart_though_nothing_was_deleted() -> None:
    folder = disk()
    partition = filled(folder, 2)
    partition.consumed("spark", Position(1))
    commit(partition, folder, 2_000)
    assert reopened(folder).consumers == {"spark": 1}


def test_a_consumer_that_reads_again_is_not_set_back() -> None:
    partition = filled(disk(), 4)
    for position in (3, 1):
        partition.consumed("spark", Position(position))
    assert partition.consumers == {"spark": 3}


def test_nothing_is_deleted_while_the_segment_that_sums_it_up_is_being_written() -> None:
    folder = disk()
    partition = filled(folder, 2, ONE_EACH)
    partition.consumed("spark", Position(3))
    partition.append(header(A, 2), rows(A, 2))
    group = partition.flush(2_000)
    assert group is not None
    assert retire(partition, folder, 9_999) == 0
    carry_out(partition, folder, group)
    assert retire(partition, folder, 9_999) == 2


def test_positions_that_readers_were_told_of_are_not_used_again_after_their_files_are_gone() -> None:
    folder = disk()
    filled(folder, 3)
    for file in ("0000000000.index", "0000000000.arrows"):
        folder.execute(Delete(file))
    again = reopened(folder)
    assert again.append(header(A, 9), rows(A, 9)) == 3
    assert "entries 0 to 2 were published and are gone" in again.damage


def test_numbers_of_an_input_log_are_known_after_its_segments_were_sealed() -> None:
    folder = disk()
    partition = Partition("p", SCHEMA, ONE_EACH)
    for seq in range(3):
        partition.append(replace(header(A, seq), kind=HeaderKind.INPUT), rows(A, seq))
        commit(partition, folder, 1_000 + seq)
    again = reopened(folder)
    assert [again.append(replace(header(A, seq), kind=HeaderKind.INPUT), rows(A, seq)) for seq in range(4)] == [
        None,
        None,
        None,
        3,
    ]


def test_a_watermark_beyond_a_gap_holds_after_a_restart_when_the_gap_is_filled() -> None:
    folder = disk()
    partition = Partition("p", SCHEMA, ONE_EACH)
    for seq in (0, 2, 4):  # the head of the last segment has what was before it
        partition.append(replace(header(A, seq), watermark=10 * (seq + 1)), rows(A, seq))
        commit(partition, folder, 1_000 + seq)
    again = reopened(folder)
    assert again.ledger.marks == {A: 10}
    again.append(replace(header(A, 1), watermark=20), rows(A, 1))
    assert again.ledger.marks == {A: 30}


def test_a_tail_of_zeroes_is_no_record() -> None:
    assert [stretch.body for stretch in scan(bytes(64), 0, 64)] == [None]


def test_a_write_that_failed_acks_nothing() -> None:
    partition, folder = Partition("p", SCHEMA), disk()
    partition.append(header(A, 0), rows(A, 0))
    folder.fail_after = 0
    assert commit(partition, folder, 1_000) == range(0)
    assert (partition.committed, partition.failures) == (0, 1)
