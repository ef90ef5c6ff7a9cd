"""An index that was deleted or damaged is made again from its segment, byte for byte, and nothing is lost."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rove.data.log.segments.carrier import Carrier, search
from rove.data.log.segments.commands import Delete, Position, Publish, Replace, SyncFolder, Write
from rove.data.log.segments.disk_work.commit import commit, recovered, retire
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import (
    END_OF_STREAM,
    MARK_FILE,
    Entry,
    Head,
    Line,
    Manifest,
    Mark,
    data_file,
    frame,
    index_file,
    mark_bytes,
    preamble,
)
from rove.data.log.segments.ledger import Ledger
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.errors import DiskError
from rove.sim.disk import HARMS, SimDisk
from tests.data.log.entries import SCHEMA, A, B, disk, filled, garble, header, read_all, reopened, rows, silence

TWO_EACH = LogSettings(segment_entries=2)
INDEXES = ("0000000000.index", "0000000001.index", "0000000002.index")
PLACES = (0.0, 0.05, 0.3, 0.6, 0.9, 0.95)


@dataclass
class Found:
    """All that a partition and its folder say: the indexes byte for byte, the ledger, and every entry with its rows."""

    partition: Partition
    folder: SimDisk
    state: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.state = {
            "end": self.partition.end,
            "committed": self.partition.committed,
            "ledger": msgspec.msgpack.encode(self.partition.ledger.table()),
            "segments": self.partition.segments,
            "consumers": self.partition.consumers,
            "open": (self.partition._open.number, self.partition._open.data_end, self.partition._open.index_end),
            "indexes": {n: self.folder.read(n, 0, 10**7) for n in self.folder.sizes() if n.endswith(".index")},
            "entries": read_all(self.folder, [*self.partition.segments, self.partition._open][0].first),
        }


def opened(folder: SimDisk, settings: LogSettings | None = None) -> Partition:
    return recovered("p", SCHEMA, folder, settings, 10**12)[0]


def three_segments(folder: SimDisk) -> Partition:
    """Three segments of two entries each, of rows and of empty batches."""
    partition = Partition("p", SCHEMA, TWO_EACH)
    for seq in range(6):
        kind = header(A, seq, 0 if seq % 3 == 1 else 3)
        partition.append(kind, rows(A, seq) if kind.rows else None, low=1_000 + seq)
        commit(partition, folder, 1_000 + seq)
    return partition


@pytest.mark.parametrize(("harm", "place"), [*product(HARMS[1:], PLACES), ("deleted", 0.0)])
@pytest.mark.parametrize("index", INDEXES)
def test_an_index_is_made_again_whatever_happened_to_it(index: str, harm: str, place: float) -> None:
    folder = disk()
    before = Found(three_segments(folder), folder)
    folder.harm(index, harm, place)
    again = opened(folder, TWO_EACH)
    assert Found(again, folder).state == before.state
    assert (again.damaged, again.damage, again.trouble) == (0, "", None)
    (said,) = again.mended
    assert said.startswith(f"{index} was damaged or gone; ")
    assert said.endswith(f"made again from {index.replace('index', 'arrows')}")
    assert opened(folder, TWO_EACH).mended == [], "once"


def test_all_indexes_at_once_are_made_again() -> None:
    folder = disk()
    before = Found(three_segments(folder), folder)
    for index in INDEXES:
        folder.execute(Delete(index))
    again = opened(folder, TWO_EACH)
    assert Found(again, folder).state == before.state
    assert (again.damaged, len(again.mended)) == (0, 3)
    assert again.append(header(A, 6), rows(A, 6)) == 6


Act = tuple[str, int, int]
ACTS = st.lists(
    st.tuples(st.sampled_from(["rows", "rows", "late", "empties", "flush", "flush", "retire", "restart"]),
              st.integers(0, 9), st.integers(1, 6)),
    min_size=1, max_size=25,
)  # fmt: skip
DAMAGES = st.lists(st.tuples(st.sampled_from(HARMS), st.integers(0, 9), st.floats(0, 1)), min_size=1, max_size=4)


def made(folder: SimDisk, acts: list[Act], settings: LogSettings) -> Partition:
    partition = Partition("p", SCHEMA, settings)
    for now, (act, seq, more) in enumerate(acts, 1_000_000):
        origin = (A, B)[more % 2]
        match act:
            case "rows" | "late":
                partition.append(header(origin, seq, more, late=act == "late"), rows(origin, seq, more), low=now)
            case "empties":
                partition.append(header(origin, seq, 0, seq + more), low=now)
            case "flush":
                commit(partition, folder, now)
            case "retire":
                partition.consumed("spark", Position(max(0, partition.committed - more)))
                commit(partition, folder, now)
                retire(partition, folder, now)
            case "restart":
                commit(partition, folder, now)
                partition = opened(folder, settings)
    commit(partition, folder, 2_000_000)
    return partition


@given(acts=ACTS, damages=DAMAGES, small=st.booleans())
@example(
    acts=[("rows", 0, 2), ("rows", 0, 2), ("flush", 0, 1), ("retire", 0, 1)], damages=[("deleted", 0, 0.0)], small=True
)
def test_a_log_is_the_same_after_any_damage_of_its_indexes(acts: list[Act], damages: Any, small: bool) -> None:
    settings = LogSettings(segment_entries=3 if small else 1_000)
    folder = SimDisk(random.Random(1))
    made(folder, acts, settings)
    before = Found(opened(folder, settings), folder)
    for harm, which, place in damages:
        if indexes := sorted(file for file in folder.sizes() if file.endswith(".index")):
            folder.harm(indexes[which % len(indexes)], harm, place)
    again = opened(folder, settings)
    assert Found(again, folder).state == before.state
    assert again.damaged == 0


@pytest.mark.parametrize("power", [False, True])
def test_mending_may_be_interrupted_at_any_moment(power: bool) -> None:
    for stops_at in range(12):
        folder = disk()
        before = Found(three_segments(folder), folder)
        for index in INDEXES:
            folder.execute(Delete(index))
        folder.execute(SyncFolder())
        group = reopened(folder).flush(10**12)
        assert group is not None
        for command in group.commands[:stops_at]:
            folder.execute(command)
        if power:
            folder.crash()
        assert Found(opened(folder, TWO_EACH), folder).state == before.state


def test_a_whole_index_is_not_written_again() -> None:
    folder = disk()
    three_segments(folder)
    group = reopened(folder).flush(10**12)
    assert group is not None
    assert not [command for command in group.commands if isinstance(command, Replace)]
    assert isinstance(group.commands[-1], Publish)


def test_a_group_that_a_crash_kept_from_its_index_is_kept_and_is_no_damage() -> None:
    folder = disk()
    partition = filled(folder, 2)
    partition.append(header(A, 2), rows(A, 2))
    group = partition.flush(5_000)
    assert group is not None
    for command in group.commands[:2]:  # the rows are written and synced
        folder.execute(command)
    again = opened(folder)
    assert (again.end, again.mended, again.damaged) == (3, [], 0)
    assert [entry.header.seq for entry, _ in read_all(folder)] == [0, 1, 2]


def test_damaged_rows_are_named_though_the_index_is_whole_again() -> None:
    folder = disk()
    filled(folder, 4, TWO_EACH)
    first = Reader(folder).entries()[0]
    garble(folder, data_file(0), first.offset + first.length - 1)
    folder.execute(Delete(index_file(0)))
    opened(folder, TWO_EACH)
    reader = Reader(folder)
    assert [e.header.seq for e in reader.entries()] == [0, 1, 2, 3]
    with pytest.raises(DiskError, match=r"`s/a` seqs 0 to 0"):
        reader.read(first)


def test_an_entry_that_neither_index_nor_segment_knows_is_named_and_the_others_are_made_again() -> None:
    folder = disk()
    filled(folder, 6, LogSettings(segment_entries=4))
    second = list(search(folder.read, data_file(0), 0))[2]
    garble(folder, data_file(0), second.end - 9)
    folder.execute(Delete(index_file(0)))
    again = opened(folder)
    [damage] = again.quarantine
    assert (damage.file, damage.origin, damage.seq, damage.through) == (index_file(0), A, 1, 1)
    assert len(again.mended) == 1
    reader = Reader(folder)
    assert [e.header.seq for e in reader.entries()] == [0, 2, 3, 4, 5]
    assert [d.file for d in reader.damage] == [index_file(0)]
    assert [d.seq for d in opened(folder).quarantine] == [1]


def test_a_manifest_among_the_rows_is_not_believed() -> None:
    """Somebody sends rows that look like a part of a log. They are found while a damaged manifest is passed over."""
    lines = [Line(header(B, 9, 0), 0, 0, 0)]
    forged = Manifest(segment=0, at=8, position=Position(1), group=Position(1), at_us=1, lines=lines)
    bait = pa.array([Carrier(SCHEMA).pack(frame(forged))], pa.binary()).view(pa.string())
    batch = pa.record_batch([pa.array([1]), bait], SCHEMA.names)
    folder = disk()
    partition = filled(folder, 1)
    partition.append(header(A, 1, 1), bytes(batch.serialize()))
    commit(partition, folder, 2_000)
    partition.append(header(A, 2), rows(A, 2))
    commit(partition, folder, 2_001)
    found = list(search(folder.read, data_file(0), 0))
    assert len(found) == 5
    garble(folder, data_file(0), found[2].end - 9)
    folder.execute(Delete(index_file(0)))
    again = opened(folder)
    assert len(again.quarantine) == 1
    assert [e.header.seq for e in Reader(folder).entries()] == [0, 2]


def test_rows_that_retention_has_half_deleted_do_not_come_back_and_others_do() -> None:
    folder = disk()
    partition = filled(folder, 6, TWO_EACH)
    partition.consumed("spark", Position(2))
    for command in partition.retire(9_999)[:2]:
        folder.execute(command)
    assert sorted(folder.sizes())[0] == data_file(0)
    folder.execute(Delete(index_file(1)))
    again = opened(folder, TWO_EACH)
    assert [segment.number for segment in again.segments] == [1]
    assert data_file(0) not in folder.sizes()
    assert [e.header.seq for e, _ in read_all(folder, 2)] == [2, 3, 4, 5]


def test_the_first_index_is_missed_if_it_cannot_be_made_again() -> None:
    folder = disk()
    filled(folder, 6, TWO_EACH)
    folder.execute(Delete(index_file(0)))
    silence(folder, 0)
    [damage] = opened(folder, TWO_EACH).quarantine
    assert (damage.file, damage.what) == (index_file(0), "the index is gone, and so is what the segment says of itself")
    assert data_file(0) in folder.sizes()


def test_a_log_is_not_open_before_its_index_is_mended() -> None:
    folder = disk()
    before = Found(three_segments(folder), folder)
    folder.execute(Delete(INDEXES[1]))
    folder.capacity_bytes = 0
    with pytest.raises(DiskError, match=r"an index is damaged and cannot be made again: .* disk is full"):
        opened(folder, TWO_EACH)
    folder.capacity_bytes = None
    assert Found(opened(folder, TWO_EACH), folder).state == before.state


COLUMNS = (
    pa.schema([]),
    SCHEMA,
    pa.schema([("l", pa.list_(pa.string())), ("v", pa.string_view()), ("n", pa.null()), ("d", pa.decimal128(9, 2))]),
    pa.schema(
        [("s", pa.struct([("a", pa.bool_()), ("b", pa.map_(pa.string(), pa.int8()))])), ("t", pa.timestamp("us"))]
    ),
)


@pytest.mark.parametrize("schema", COLUMNS)
def test_readers_of_arrow_pass_over_what_a_segment_says_of_itself(schema: pa.Schema) -> None:
    record = frame(Manifest(segment=0, at=8, position=Position(1), group=Position(1), at_us=1, lines=[]))
    packed = Carrier(schema).pack(record)
    some = pa.RecordBatch.from_arrays([pa.nulls(3, kind.type) for kind in schema], schema=schema)
    parts = [schema.serialize(), packed, some.serialize(), packed, packed, some.serialize(), END_OF_STREAM]
    stream = b"".join(bytes(part) for part in parts)
    table = pa.ipc.open_stream(stream).read_all()
    table.validate(full=True)
    assert table.num_rows == (6 if len(schema) else 0)
    assert len(packed) % 8 == 0
    found = list(search(lambda _, at, length: stream[at : at + length], "", 0))
    assert [each.body for each in found] == [record[8 : 8 + len(each.body)] for each in found]
    assert len(found) == 3


def earlier(folder: SimDisk, seqs: int) -> None:
    """A log of the earlier version: its segment says nothing of itself."""
    schema = SCHEMA.serialize().to_pybytes()
    head = Head(
        segment=0,
        position=Position(0),
        data_start=len(schema),
        schema_crc=crc32(schema),
        at_us=1,
        ledger=Ledger().table(),
    )
    data, index = schema, preamble(0, 0) + frame(head)
    for seq in range(seqs):
        some, at = rows(A, seq), Position(seq)
        entry = Entry(
            position=at,
            group=at,
            segment=0,
            offset=len(data),
            length=len(some),
            crc=crc32(some),
            at_us=1,
            header=header(A, seq),
        )
        data, index = data + some, index + frame(entry)
    mark = mark_bytes(Mark(0, len(index), len(data), Position(seqs)))
    for file, content in ((data_file(0), data), (index_file(0), index), (MARK_FILE, mark)):
        folder.execute(Write(file, 0, (content,)))


def test_a_log_of_the_earlier_version_is_read_as_before_and_goes_on_in_a_new_segment() -> None:
    folder = disk()
    earlier(folder, 3)
    partition = opened(folder)
    assert (partition.end, partition.committed, partition.damaged, partition.mended) == (3, 3, 0, [])
    partition.append(header(A, 3), rows(A, 3))
    commit(partition, folder, 10**13)
    assert [(e.segment, e.header.seq) for e, _ in read_all(folder)] == [(0, 0), (0, 1), (0, 2), (1, 3)]
    folder.execute(Delete(index_file(1)))
    again = opened(folder)
    assert (again.end, again.damaged, len(again.mended)) == (4, 0, 1)


def test_a_damaged_index_of_the_earlier_version_is_named_as_before() -> None:
    folder = disk()
    earlier(folder, 3)
    garble(folder, index_file(0), folder.sizes()[index_file(0)] - 100)
    partition = opened(folder)
    assert (partition.damaged, partition.mended, partition.end) == (1, [], 3)
    assert partition.quarantine[0].file == index_file(0)
