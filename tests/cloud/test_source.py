"""The log as Spark reads it: every row once, in an order in which Spark's watermark drops none."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxFiles, ReadMaxRows

from rove.cloud.source import scan
from rove.model.batch import Header
from rove.model.errors import DiskError, PlanError, SchemaMismatch
from rove.model.ids import Origin
from rove.model.schema import WINDOW, parse_schema
from tests.cloud.gateway_log import ALL, SCHEMA, SECOND, Gateway, Query, batch, beats, source, values


@pytest.mark.parametrize("told", [True, False], ids=["header tells times", "rows tell times"])
def test_rows_are_held_until_the_low_watermark_rises(gateway: Gateway, tmp_path: Path, told: bool) -> None:
    query = Query(tmp_path, time="ts", delay="2 seconds")
    gateway.write("a", [1, 20, None], None, told)
    assert query.run() == []
    gateway.write("b", [3], 3, told)
    assert sorted(values(query.run())) == [0, 2, 3]
    gateway.promise("b", 17)
    assert query.run() == []
    gateway.promise("b", 18)
    assert values(query.run()) == [1]
    assert query.at["at"][str(gateway.folder)]["from"] == 4


def test_offsets_are_small_and_stay_the_same_while_nothing_happens(gateway: Gateway, tmp_path: Path) -> None:
    query = Query(tmp_path, time="ts")
    for second in range(50):
        gateway.write("a", [second, second + 5], second)
    query.run()
    assert len(json.dumps(query.at)) < 100 + len(str(gateway.folder)) + 100
    before = query.at
    assert query.run() == []
    assert query.at == before


def test_an_idle_poll_reads_the_commit_mark_and_nothing_else(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(tmp_path, time="ts")
    gateway.write("a", [1, 50], 10)
    query.run()
    query.run()
    read: list[str] = []
    disk = query.stream._scan._indexes[str(gateway.folder)]._disk
    monkeypatch.setattr(type(disk), "sizes", lambda self: read.append("a listing"))
    original = type(disk).read
    monkeypatch.setattr(type(disk), "read", lambda self, file, *a: read.append(file) or original(self, file, *a))
    query.run()
    assert read == ["commit"]


def test_a_restart_goes_on_from_the_lowest_position_that_holds_rows(gateway: Gateway, tmp_path: Path) -> None:
    query = Query(tmp_path, time="ts")
    for second in range(10):
        gateway.write("a", [second, second + 100], second)
    seen = values(query.run())
    for restart in range(3):
        again = Query(tmp_path, time="ts")
        again.at = query.at
        gateway.promise("a", 102 + 3 * restart)
        seen += values(again.run())
        query = again
    assert sorted(seen) == sorted([*range(0, 20, 2), *range(1, 19, 2)])


def test_the_same_offsets_give_the_same_rows_to_whoever_asks(gateway: Gateway, tmp_path: Path) -> None:
    query, spans = Query(tmp_path, time="ts", delay="1 second"), []
    for second in range(8):
        gateway.write("a", [second, second + 4, None], second)
        start, found = query.at, query.run()
        spans.append((start, query.at, found))
    other = Query(tmp_path, time="ts", delay="1 second")
    for start, end, found in [*spans, *reversed(spans)]:
        assert other.rows(start, end) == found


def test_two_gateways_are_one_stream_whose_slower_one_is_waited_for(tmp_path: Path) -> None:
    east, west = Gateway(tmp_path / "east"), Gateway(tmp_path / "west")
    query = Query(f"{tmp_path / 'east'}, {tmp_path / 'west'}", SCHEMA, time="ts", metadata="true")
    east.write("a", [1, 5], 5)
    assert query.run() == []
    west.write("b", [2, 3], 2)
    assert sorted((row["key"], row["value"]) for row in query.run()) == [("a", 0), ("b", 0)]
    west.promise("b", 9)
    assert sorted((row["key"], row["value"]) for row in query.run()) == [("a", 1), ("b", 1)]


def test_a_gateway_that_is_added_later_is_read_from_its_oldest_entry(tmp_path: Path) -> None:
    east, west = Gateway(tmp_path / "east"), Gateway(tmp_path / "west")
    query = Query(tmp_path / "east")
    east.write("a", [1])
    west.write("b", [2])
    assert len(query.run()) == 1
    both = Query(f"{tmp_path / 'east'},{tmp_path / 'west'}")
    both.at = query.at
    assert [row["key"] for row in both.run()] == ["b"]
    with pytest.raises(DiskError, match="west/log/q/out, which the options do not name"):
        Query(tmp_path / "east").stream.latestOffset(both.at, ALL)


def test_a_heartbeat_carries_event_time_on_alone_or_with_rows(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(scan.time, "monotonic", lambda: now)
    query = Query(tmp_path, time="ts", delay="2 seconds", heartbeat="true")
    gateway.write("a", [1, 20], 3)
    rows = query.run()
    assert (values(rows), beats(rows)) == ([0], [5.0])
    assert rows[1] == {"key": None, "value": None, "ts": rows[1]["ts"], "_heartbeat": True}
    assert rows[0]["_heartbeat"] is False
    gateway.promise("a", 4)
    assert beats(query.run()) == [6.0]
    gateway.promise("a", 5)
    assert query.run() == []  # too soon for a micro-batch of nothing else
    now += 0.11
    assert beats(query.run()) == [7.0]
    gateway.promise("a", 6)
    gateway.end()
    rows = query.run()  # an end is told at once
    assert (values(rows), beats(rows)) == ([1], [22.001])
    assert query.run() == []


def test_a_window_comes_in_the_time_it_starts_and_so_does_its_heartbeat(tmp_path: Path) -> None:
    schema = pa.schema([("window", WINDOW), ("n", pa.int64())])
    gateway = Gateway(tmp_path, schema=schema)
    query = Query(tmp_path, schema.append(pa.field("_heartbeat", pa.bool_())), time="window", heartbeat="true")
    windows = [{"window": {"start": s * SECOND, "end": (s + 10) * SECOND}, "n": s} for s in (0, 10, 20)]
    gateway.put("a", pa.RecordBatch.from_pylist([*windows, {"window": None, "n": 99}], schema), 10)
    rows = query.run()
    assert [row["n"] for row in rows] == [0, 10, 99, None]
    beat = rows[-1]["window"]
    assert (beat["start"].timestamp(), beat["end"].timestamp()) == (10.0, 10.000001)
    gateway.promise("a", 20)
    assert [row["n"] for row in query.run()] == [20, None]


def test_the_end_admits_everything_and_one_who_joins_later_is_waited_for(gateway: Gateway, tmp_path: Path) -> None:
    query = Query(tmp_path, time="ts", delay="1 second", span="10 seconds")
    gateway.write("a", [1, 500], None)
    gateway.end()
    assert values(query.run()) == [0, 1]
    assert query.at["bound"] == 511_001_000
    gateway.write("b", [505, 600], 503)
    assert values(query.run()) == [2]
    gateway.promise("b", 600)
    assert values(query.run()) == [3]


def test_a_row_limit_holds_at_a_backlog_and_rows_come_in_order_of_time(gateway: Gateway, tmp_path: Path) -> None:
    for second in range(0, 60, 2):
        gateway.write("a", [second + n / 10 for n in range(10)], second)
        gateway.write("b", [second + n / 5 for n in range(10)], second)
    gateway.promise("a", 100)
    query = Query(tmp_path, time="ts", maxRowsPerTrigger="45")
    assert query.stream.getDefaultReadLimit() == ReadMaxRows(45)
    batches = []
    while rows := query.run(ReadMaxRows(45)):
        batches.append(rows)
    assert all(len(rows) <= 45 for rows in batches)
    assert sorted(values([row for rows in batches for row in rows])) == list(range(600))
    assert len(batches) < 25
    for earlier, later in pairwise(batches):
        assert max(row["ts"] for row in earlier) < min(row["ts"] for row in later)


def test_without_event_time_a_limit_is_a_position(gateway: Gateway, tmp_path: Path) -> None:
    for second in range(9):
        gateway.write("a", [second] * 10)
    query = Query(tmp_path)
    assert [len(query.run(ReadMaxRows(n))) for n in (25, 5, 40)] == [20, 10, 40]
    assert len(query.run(ReadMaxBytes(1))) == 10
    assert len(query.run()) == 10
    both = Query(tmp_path, maxRowsPerTrigger="50", maxBytesPerTrigger="1")
    assert len(both.run(both.stream.getDefaultReadLimit())) == 10
    with pytest.raises(PlanError, match="limit rows or bytes"):
        query.stream.latestOffset(query.at, ReadMaxFiles(3))


def test_available_now_ends_with_what_was_there_when_it_began(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write("a", [1, 2, 9], 5)
    query = Query(tmp_path, time="ts", heartbeat="true", delay="1 second")
    query.stream.prepareForTriggerAvailableNow()
    gateway.write("a", [3], 20)
    rows = query.run(ReadMaxRows(1)) + query.run(ReadMaxRows(1))
    assert (values(rows), beats(rows)) == ([0, 1], [1.0, 6.0])
    assert query.run(ReadMaxRows(1)) == []
    again = Query(tmp_path, time="ts")
    again.at = query.at
    assert sorted(values(again.run())) == [2, 3]


def test_rows_can_say_whose_they_are(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write("a", [1, 2], None)
    gateway.write("b", [3], 2)
    rows = batch(tmp_path, columns="value", metadata="true")
    found = [(r["value"], r["_origin"], r["_seq"], r["_watermark"] and r["_watermark"].timestamp()) for r in rows]
    assert found == [(0, "s/a", 0, None), (1, "s/a", 0, None), (2, "s/b", 0, 2.0)]
    assert {row["_produced_at"].timestamp() for row in rows} == {1_700_000_000.0}


def test_only_columns_that_are_asked_for_are_read_whole_structs_included(tmp_path: Path) -> None:
    schema = parse_schema(
        "a bigint, w struct<start: timestamp, end: timestamp>, `b, c` array<string>, m map<string,int>"
    )
    gateway = Gateway(tmp_path, schema=schema)
    window = {"start": 0, "end": 10 * SECOND}
    rows = [
        {"a": 1, "w": window, "b, c": ["x", None], "m": [("k", 1)]},
        {"a": None, "w": None, "b, c": None, "m": None},
    ]
    gateway.put("a", pa.RecordBatch.from_pylist(rows, schema), None)
    expected = pa.Table.from_pylist(rows, schema)
    assert batch(tmp_path) == expected.to_pylist()
    for names in (["`b, c`", "a"], ["w"], ["m", " w "]):
        plain = [name.strip(" `") for name in names]
        assert batch(tmp_path, columns=",".join(names)) == expected.select(plain).to_pylist()
    query = Query(tmp_path, columns="a", time="w")
    assert query.run() == []
    gateway.promise("a", 10)
    assert query.run() == [{"a": 1}, {"a": None}]


def test_compressed_rows_are_read_too(gateway: Gateway, tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pylist([{"key": "k" * 50, "value": n, "ts": n} for n in range(500)], SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, SCHEMA, options=options) as stream:
        stream.write_batch(rows)
        end = sink.tell()
    schema_bytes = SCHEMA.serialize().size
    payload = sink.getvalue().slice(schema_bytes, end - schema_bytes)
    header = Header(origin=Origin("a"), seq=0, through=0, rows=500)
    gateway.writer.append(header, payload)
    gateway.writer.commit()
    assert values(batch(tmp_path, columns="value")) == list(range(500))


def test_a_column_that_was_added_is_null_before_and_another_type_is_refused(tmp_path: Path) -> None:
    old = Gateway(tmp_path)
    old.write("a", [1])
    old.writer.close()
    wider = SCHEMA.append(pa.field("speed", pa.float64()))
    new = Gateway(tmp_path, schema=wider)
    new.seqs = dict(old.seqs)
    new.put("a", pa.RecordBatch.from_pylist([{"key": "a", "value": 1, "ts": 0, "speed": 2.5}], wider), None)
    assert [(row["value"], row["speed"]) for row in batch(tmp_path)] == [(0, None), (1, 2.5)]
    other = pa.schema([("speed", pa.int64()), ("value", pa.int64())])
    with pytest.raises(SchemaMismatch, match=r"`speed` is double in .*0000000001.arrows, not bigint"):
        batch(tmp_path, other)


def test_small_entries_travel_together_and_shares_are_even(gateway: Gateway, tmp_path: Path) -> None:
    for n in range(70):
        gateway.write("a", [n] * 1_000, n)
    made, wanted = source(tmp_path, parallelism="3")
    reader = made.reader(wanted)
    sizes = [[found.num_rows for found in reader.read(share)] for share in reader.partitions()]
    assert [sum(rows) for rows in sizes] == [23_000, 24_000, 23_000]
    assert all(size >= 8_192 for rows in sizes for size in rows[:-1])
    query = Query(tmp_path, parallelism="3")
    assert len(query.stream.partitions(query.at, query.stream.latestOffset(query.at, ReadMaxRows(8_000)))) == 1
