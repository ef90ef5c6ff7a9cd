"""The commands and answers of a partition, one story in each test."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from rove.data.log.segments.commands import Delete, Position, Publish, Replace, Sync, SyncFolder, Truncate, Write
from rove.data.log.segments.damage import Damaged, EntriesGone, TooMuchPending
from rove.data.log.segments.disk_work.commit import commit, retire
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.partition import HEADER_BYTES, Partition
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.errors import DataError, DiskError, SchemaMismatch
from rove.sim.disk import SimDisk
from tests.data.log.entries import SCHEMA, A, disk, filled, garble, header, read_all, reopened, rows, silence

ONE_EACH = LogSettings(segment_entries=1)


def test_a_group_is_rows_then_index_then_mark_each_synced_before_the_next() -> None:
    partition = Partition("p", SCHEMA)
    assert partition.append(header(A, 0), rows(A, 0)) == 0
    group = partition.flush(1)
    assert group is not None
    assert [(type(c), getattr(c, "file", None)) for c in group.commands] == [
        (Write, "0000000000.arrows"),
        (Sync, "0000000000.arrows"),
        (SyncFolder, None),
        (Write, "0000000000.index"),
        (Sync, "0000000000.index"),
        (SyncFolder, None),
        (Publish, "commit"),
    ]
    assert partition.flush(2) is None
    assert partition.committed == 0
    assert partition.synced(group.token) == range(1)


def test_the_rows_are_written_from_the_buffer_they_came_in() -> None:
    partition, payload = Partition("p", SCHEMA), rows(A, 0)
    partition.append(header(A, 0), payload)
    group = partition.flush(1)
    assert group is not None
    write = group.commands[0]
    assert isinstance(write, Write)
    (part,) = (part for part in write.parts if isinstance(part, memoryview))
    assert part.obj is payload


def test_a_sealed_segment_is_an_arrow_stream() -> None:
    folder = disk()
    filled(folder, 3, ONE_EACH)
    table = pa.ipc.open_stream(folder.mapped("0000000001.arrows", 0)).read_all()
    assert table.column("text").to_pylist() == ["s/a"] * 3


def test_empties_that_overlap_are_trimmed_to_what_is_new() -> None:
    partition, folder = Partition("p", SCHEMA), disk()
    partition.append(header(A, 2), rows(A, 2))
    assert partition.append(header(A, 0, 0, through=4)) == 2
    assert partition.append(header(A, 1, 0, through=3)) is None
    commit(partition, folder, 1)
    assert [(e.header.seq, e.header.through) for e, _ in read_all(folder)] == [(2, 2), (0, 1), (3, 4)]
    assert (partition.duplicates, partition.trimmed) == (1, 1)


def test_late_rows_do_not_stand_in_the_way_of_the_seq_they_came_from() -> None:
    partition = Partition("p", SCHEMA)
    assert partition.append(header(A, 5, late=True), rows(A, 5)) == 0
    assert partition.append(header(A, 5), rows(A, 5)) == 1
    assert partition.append(header(A, 5, late=True), rows(A, 5)) is None


@pytest.mark.parametrize(
    ("bad", "payload"),
    [
        (header(A, 0, 3), None),
        (header(A, 0, 0), rows(A, 0)),
        (header(A, 0, 3, through=1), rows(A, 0)),
        (header(A, 0, 3), rows(A, 0)[:-4]),
        (header(A, 0, 3), bytes(64)),
    ],
)
def test_rows_that_do_not_fit_their_header_are_refused(bad: Header, payload: bytes | None) -> None:
    partition = Partition("p", SCHEMA)
    with pytest.raises(DataError, match="`s/a`"):
        partition.append(bad, payload)
    assert partition.append(header(A, 0), rows(A, 0)) == 0


def test_columns_that_need_a_dictionary_are_refused() -> None:
    nested = pa.list_(pa.field("item", pa.dictionary(pa.int8(), pa.string())))
    with pytest.raises(DataError, match="decode it"):
        Partition("p", pa.schema([("x", nested)]))


def test_a_full_disk_acks_nothing_and_goes_on_when_there_is_room() -> None:
    partition, folder = Partition("p", SCHEMA), disk()
    folder.capacity_bytes = 200
    partition.append(header(A, 0), rows(A, 0))
    assert not commit(partition, folder, 1_000_000)
    assert partition.trouble is not None
    assert "full" in partition.trouble
    assert partition.append(header(A, 0), rows(A, 0)) is None
    folder.capacity_bytes = None
    assert not commit(partition, folder, 1_000_001)  # it waits before it tries again
    assert commit(partition, folder, 2_000_000) == range(1)
    assert partition.trouble is None
    assert len(read_all(folder)) == 1


def test_too_much_for_a_slow_disk_is_refused_and_not_taken() -> None:
    partition = Partition("p", SCHEMA, LogSettings(pending_bytes=2 * (len(rows(A, 0)) + HEADER_BYTES)))
    for seq in range(2):
        partition.append(header(A, seq), rows(A, seq))
    with pytest.raises(TooMuchPending, match="seq 2"):
        partition.append(header(A, 2), rows(A, 2))
    commit(partition, disk(), 1)
    assert partition.append(header(A, 2), rows(A, 2)) == 2


def test_a_mark_that_cannot_be_written_costs_no_ack_and_is_written_later() -> None:
    partition, folder = filled(folder := disk(), 1), folder
    partition.append(header(A, 1), rows(A, 1))
    folder.fail_after = 4
    assert commit(partition, folder, 1_000_000) == range(1, 2)
    assert partition.trouble is not None
    assert len(read_all(folder)) == 1
    commit(partition, folder, 9_000_000)
    assert partition.trouble is None
    assert len(read_all(folder)) == 2


def test_an_answer_for_another_group_is_refused() -> None:
    with pytest.raises(DiskError, match="not in flight"):
        Partition("p", SCHEMA).synced(1)


def test_what_all_consumers_have_read_is_deleted_index_first_and_the_open_segment_stays() -> None:
    folder = disk()
    partition = filled(folder, 3, ONE_EACH)
    assert partition.retire(9_999) == []  # nobody has read anything
    partition.consumed("spark", Position(3))
    partition.consumed("audit", Position(1))
    for segment in ("0000000000", "0000000001"):
        remembered, *deletes = partition.retire(9_999)
        assert isinstance(remembered, Replace)
        assert deletes == [Delete(f"{segment}.index"), SyncFolder(), Delete(f"{segment}.arrows")]
        partition.detach("audit")
    assert partition.missed == {}


def test_a_limit_deletes_what_is_needed_and_counts_it() -> None:
    folder = disk()
    partition = filled(folder, 4, LogSettings(segment_entries=1, keep_bytes=1))
    partition.consumed("spark", Position(1))
    assert retire(partition, folder, 9_999) == 3
    assert partition.missed == {"spark": 2}
    old = filled(folder := disk(), 4, LogSettings(segment_entries=1, keep_us=500))
    assert retire(old, folder, 1_502) == 2  # written at 1,000 and 1,001


def test_deleted_segments_are_not_forgotten() -> None:
    folder = disk()
    partition = filled(folder, 5, ONE_EACH)
    partition.consumed("spark", Position(4))
    assert retire(partition, folder, 9_999) == 4
    again = reopened(folder)
    assert again.ledger.frontier.next(A) == 5
    assert again.ledger.counts()[A].born == 50
    assert again.append(header(A, 1), rows(A, 1)) is None
    assert again.consumers == {"spark": 4}


def test_a_reader_goes_on_over_deleted_segments_it_has_read_and_is_told_of_others() -> None:
    folder = disk()
    partition = filled(folder, 4, ONE_EACH)
    fast, slow = Reader(folder), Reader(folder)
    assert len(fast.entries(2)) == 2
    partition.consumed("fast", Position(2))
    assert retire(partition, folder, 9_999) == 2
    assert [e.header.seq for e in fast.entries()] == [2, 3]
    with pytest.raises(EntriesGone) as gone:
        slow.entries()
    assert (gone.value.position, gone.value.first) == (0, 2)


class CountingDisk(SimDisk):
    """Counts how often a file is read."""

    reads = 0

    def read(self, file: str, offset: int, length: int) -> bytes:
        self.reads += 1
        return super().read(file, offset, length)


def test_a_segment_is_read_at_the_same_cost_however_many_others_there_are() -> None:
    costs = []
    for segments in (20, 40):
        folder = CountingDisk(Random(0))
        filled(folder, segments, ONE_EACH)
        folder.reads = 0
        assert [entry.header.seq for entry in Reader(folder).rest()] == [*range(segments)]
        costs.append(folder.reads)
    assert costs[1] < 2.5 * costs[0]


def test_a_record_that_is_damaged_in_index_and_segment_is_named_by_origin_and_seqs() -> None:
    folder = disk()
    filled(folder, 6, LogSettings(segment_entries=3))
    size = folder.sizes()["0000000000.index"]
    garble(folder, "0000000000.index", size - 100)
    silence(folder, 0)
    again = reopened(folder)
    [damage] = again.quarantine
    assert (damage.file, damage.origin, damage.through) == ("0000000000.index", A, damage.seq)
    assert damage.seq in (1, 2)
    assert again.ledger.frontier.next(A) == 6


def test_an_index_that_cannot_be_made_again_is_named_by_what_it_held() -> None:
    folder = disk()
    filled(folder, 6, LogSettings(segment_entries=2))
    folder.execute(Delete("0000000001.index"))
    silence(folder, 1)
    [damage] = reopened(folder).quarantine
    assert (damage.file, damage.origin, damage.seq, damage.through) == ("0000000001.index", A, 2, 3)


def test_a_damaged_record_of_the_open_segment_is_quarantined_and_the_log_goes_on_in_a_new_one() -> None:
    folder = disk()
    partition = filled(folder, 2)
    end = folder.sizes()["0000000000.index"]
    for seq in range(2, 6):
        partition.append(header(A, seq), rows(A, seq))
        commit(partition, folder, 2_000 + seq)
    garble(folder, "0000000000.index", end + 4)  # the CRC of seq 2
    silence(folder, 0)
    again = reopened(folder)
    [damage] = again.quarantine
    assert (damage.origin, damage.seq, damage.through) == (A, 2, 2)
    assert again.append(header(A, 6), rows(A, 6)) == 6
    commit(again, folder, 3_000)
    commit(again, folder, 3_001)
    reader = Reader(folder)
    assert [e.header.seq for e in reader.entries()] == [0, 1, 3, 4, 5, 6]
    assert len(reader.damage) == 1


def test_a_reader_stops_where_an_index_ends_before_its_mark() -> None:
    folder = disk()
    filled(folder, 3)
    folder.execute(Truncate("0000000000.index", folder.sizes()["0000000000.index"] - 8))
    reader = Reader(folder)
    assert [entry.header.seq for entry in reader.entries()] == [0, 1]
    assert len(reader.damage) == 1


def test_damaged_rows_are_named_to_whoever_reads_them_and_the_others_are_read() -> None:
    folder = disk()
    filled(folder, 2)
    reader = Reader(folder)
    first, second = reader.entries()
    garble(folder, "0000000000.arrows", first.offset + first.length - 1)
    with pytest.raises(Damaged, match=r"0000000000\.arrows .*`s/a` seqs 0 to 0"):
        reader.read(first)
    assert reader.read(second) is not None


def test_lost_rows_are_quarantined() -> None:
    folder = disk()
    filled(folder, 2)
    folder.execute(Delete("0000000000.arrows"))
    again = reopened(folder)
    assert [(d.origin, d.seq) for d in again.quarantine[1:]] == [(A, 0), (A, 1)]
    assert again.append(header(A, 2), rows(A, 2)) == 2


def test_a_partition_refuses_other_columns() -> None:
    folder = disk()
    filled(folder, 1)
    with pytest.raises(SchemaMismatch, match="new partition for the new ones"):
        Partition.recover("p", pa.schema([("n", pa.int32())]), folder.sizes(), folder.read)


def test_segments_roll_by_age() -> None:
    folder = disk()
    partition = filled(folder, 1, LogSettings(segment_us=1_000))
    commit(partition, folder, 9_000)
    assert [s.number for s in partition.segments] == [0]
    assert partition.flush(99_000) is None  # an empty segment does not age


def test_columns_may_be_added_and_old_segments_stay_as_they_are() -> None:
    folder = disk()
    filled(folder, 2)
    wider = SCHEMA.append(pa.field("more", pa.int32()))
    partition = Partition.recover("p", wider, folder.sizes(), folder.read)
    commit(partition, folder, 4_000)
    batch = pa.record_batch([pa.array([9]), pa.array(["x"]), pa.array([1], pa.int32())], schema=wider)
    partition.append(header(A, 2, 1), bytes(batch.serialize()))
    commit(partition, folder, 5_000)
    found = [batch for _, batch in read_all(folder)]
    assert [b.schema.names for b in found if b is not None] == [["n", "text"], ["n", "text"], ["n", "text", "more"]]
    assert Partition.recover("p", wider, folder.sizes(), folder.read).committed == 3
