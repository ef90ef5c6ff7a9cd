"""What a power cut tore is cut off and comes again; what was acked stays, and its positions are not used again."""

from __future__ import annotations

import pytest

from rove.data.log.segments.carrier import search
from rove.data.log.segments.commands import Delete, Sync, Truncate
from rove.data.log.segments.damage import Damaged
from rove.data.log.segments.disk_work.commit import commit
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import MARK_FILE, PREAMBLE_BYTES, Mark, mark_bytes, read_mark
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.sim.disk import SimDisk
from tests.data.log.entries import A, disk, filled, garble, header, read_all, reopened, rows, silence

INDEX, ROWS = "0000000000.index", "0000000000.arrows"


def changed(folder: SimDisk, file: str, data: bytes) -> None:
    folder._files[file].written[:] = data
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


def test_a_torn_group_goes_as_a_whole_because_its_segment_names_it_as_a_whole() -> None:
    folder = disk()
    partition = filled(folder, 2)
    for seq in range(2, 5):
        partition.append(header(A, seq), rows(A, seq))
    group = partition.flush(2_000)
    assert group is not None
    folder.execute(group.commands[0])
    changed(folder, ROWS, folder.read(ROWS, 0, 10**6)[:-16])
    again = reopened(folder)
    assert (again.end, again.damage) == (2, "")
    for seq in (4, 7):
        again.append(header(A, seq), rows(A, seq))
    commit(again, folder, 3_000)
    commit(again, folder, 3_001)
    folder.execute(Delete(INDEX))
    commit(reopened(folder), folder, 4_000)
    assert [entry.header.seq for entry, _ in read_all(folder)] == [0, 1, 4, 7]


def test_entries_that_were_cut_do_not_come_back_from_a_segment_that_was_left_as_it_was() -> None:
    """A damaged segment is not cut, so that its user finds all that is left. The next one goes on before its end."""
    folder, _ = torn()
    index = bytearray(folder.read(INDEX, 0, 10**6))
    del index[-200:]  # the records of seqs 1 and 2
    changed(folder, INDEX, bytes(index))
    first, second, third = list(search(folder.read, ROWS, 0))[1:]
    garble(folder, ROWS, second.end - 9)
    garble(folder, ROWS, folder.sizes()[ROWS] - 8)
    again = reopened(folder)
    assert [d.file for d in again.quarantine] == [INDEX]
    assert again.append(header(A, 9), rows(A, 9)) == 2
    commit(again, folder, 3_000)
    commit(again, folder, 3_001)
    assert third.start > first.start
    folder.execute(Delete(INDEX))
    once_more = reopened(folder)
    commit(once_more, folder, 4_000)
    assert once_more.end == 3
    assert [(e.position, e.header.seq) for e in Reader(folder).entries()] == [(0, 0), (2, 9)]


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


def test_a_reader_of_an_index_that_is_shorter_than_was_committed_stops_and_names_the_damage_once() -> None:
    folder = disk()
    partition = filled(folder, 4)
    size = folder.sizes()["0000000000.index"]
    partition.append(header(A, 4), rows(A, 4))
    commit(partition, folder, 2_000)
    del folder._files["0000000000.index"].written[size:]
    reader = Reader(folder)
    assert [entry.header.seq for entry in reader.rest()] == [0, 1, 2, 3]
    (named,) = reader.damage
    assert "bytes before what was committed" in str(named)
    assert reader.entries() == []
    assert reader.damage == [named]


def test_rows_beyond_the_end_of_their_file_are_damage_and_the_others_are_read() -> None:
    folder = disk()
    filled(folder, 2)
    del folder._files["0000000000.arrows"].written[-10:]
    reader = Reader(folder)
    first, second = reader.rest()
    assert reader.read(first) is not None
    with pytest.raises(Damaged, match=r"0000000000\.arrows .*the rows are missing.*`s/a` seqs 1 to 1"):
        reader.read(second)


def test_rows_whose_columns_are_damaged_are_named_to_whoever_reads_them() -> None:
    folder = disk()
    filled(folder, 1)
    file = folder._files["0000000000.arrows"]
    place = file.written.index(b"text")
    file.written[place : place + 4] = b"next"
    reader = Reader(folder)
    (entry,) = reader.rest()
    with pytest.raises(Damaged, match="the columns are not what was written"):
        reader.read(entry)
    file.written[:64] = bytes(64)
    reader._heads.clear()  # as if the head of the index were damaged as well
    with pytest.raises(Damaged, match="the columns cannot be read"):
        reader.read(entry)


def test_a_log_whose_last_rows_and_mark_are_gone_can_be_opened() -> None:
    folder = disk()
    filled(folder, 2)
    for file in ("0000000000.arrows", MARK_FILE):
        folder.execute(Delete(file))
    assert reopened(folder).damaged


def test_positions_are_not_used_again_if_a_record_the_next_segment_and_the_mark_are_damaged() -> None:
    folder = disk()
    filled(folder, 7, LogSettings(segment_entries=3))  # seqs 0 to 2, then 3 to 5, then 6
    second, third = "0000000001.index", "0000000002.index"
    for number in range(3):
        silence(folder, number)
    garble(folder, INDEX, folder.sizes()[INDEX] - 20)
    for at in range(PREAMBLE_BYTES, folder.sizes()[second], 8):
        garble(folder, second, at)
    changed(folder, third, b"")  # as if a power cut had come while it was made
    garble(folder, MARK_FILE, 9)
    again = reopened(folder)
    assert again.append(header(A, 9), rows(A, 9)) == 3, "2 was the position of the record that is damaged"
    for now in (3_000, 3_001):
        commit(again, folder, now)
    assert [(e.position, e.header.seq) for e in Reader(folder).rest()] == [(0, 0), (1, 1), (3, 9)]


def test_entries_that_were_cut_do_not_come_back_if_no_head_is_left_and_the_disk_did_not_cut_them() -> None:
    folder, _ = torn()
    silence(folder, 0)
    garble(folder, INDEX, PREAMBLE_BYTES + 9)
    garble(folder, ROWS, folder.sizes()[ROWS] - 8)
    uncut = folder.read(INDEX, 0, 10**6)
    again = reopened(folder)
    assert again.append(header(A, 9), rows(A, 9)) == 2, "seq 2 was not acked, and its rows are damaged"
    for now in (3_000, 3_001):
        commit(again, folder, now)
    changed(folder, INDEX, uncut)  # the disk had lied
    for start in range(2):
        commit(reopened(folder), folder, 4_000 + start)
        assert [(e.position, e.header.seq) for e in Reader(folder).rest()] == [(0, 0), (1, 1), (2, 9)]


def test_readers_find_the_records_of_an_index_that_has_lost_its_first_bytes() -> None:
    folder = disk()
    filled(folder, 3)
    silence(folder, 0)
    for at in (3, PREAMBLE_BYTES + 9):
        garble(folder, INDEX, at)
    again = reopened(folder)
    commit(again, folder, 3_000)
    assert again.damaged
    assert again.append(header(A, 2), rows(A, 2)) is None, "it is known"
    assert [(e.position, e.header.seq) for e in Reader(folder).rest()] == [(0, 0), (1, 1), (2, 2)]
