"""The log as Spark reads it: every row once, in an order that its watermark survives, whole or not at all."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.functions import window
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles, ReadMaxRows

from rove.cloud.session import streaming_settings
from rove.cloud.source import RoveDataSource, register, scan
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.clock import END, MICROS_MIN
from rove.model.errors import DiskError, PlanError, SchemaMismatch
from rove.model.schema import WINDOW, parse_schema
from rove.runtime.disk import LogWriter, open_partition

SECOND = 1_000_000
SCHEMA = parse_schema("key string, value bigint, ts timestamp")
ALL = ReadAllAvailable()
Rows = list[dict[str, Any]]


class Gateway:
    """The writer of one output. Times are in seconds; None is a row without one."""

    def __init__(self, path: Path, name: str = "q/out", schema: pa.Schema = SCHEMA, **settings: Any) -> None:
        self.folder, self.schema = path / "log" / name, schema
        self.settings = LogSettings(**settings)
        self.writer: LogWriter = open_partition(self.folder, schema, self.settings)
        self.seqs: dict[str, int] = {}
        self.written: Rows = []

    def write(self, origin: str, seconds: Sequence[float | None], low: float | None = None, told: bool = True) -> None:
        """One batch, and the low watermark it comes with; `told` is whether its header knows its times."""
        micros = [None if s is None else round(s * SECOND) for s in seconds]
        first = len(self.written)
        rows = [{"key": origin, "value": first + n, "ts": m} for n, m in enumerate(micros)]
        self.put(origin, pa.RecordBatch.from_pylist(rows, self.schema), low, [m for m in micros if m is not None], told)
        self.written += rows

    def put(
        self, origin: str, rows: pa.RecordBatch, low: float | None, micros: Sequence[int] = (), told: bool = True
    ) -> None:
        seq = self.seqs[origin] = self.seqs.get(origin, -1) + 1
        header = Header(
            origin=origin,
            seq=seq,
            through=seq,
            rows=rows.num_rows,
            watermark=MICROS_MIN if low is None else micros_of(low),
            event_min=min(micros, default=None) if told else None,
            event_max=max(micros, default=None) if told else None,
            produced_at=1_700_000_000 * SECOND,
        )
        payload = rows.serialize() if rows.num_rows else None
        self.writer.append(header, payload, MICROS_MIN if low is None else micros_of(low))
        self.writer.commit()

    def promise(self, origin: str, low: float) -> None:
        self.put(origin, pa.RecordBatch.from_pylist([], self.schema), low)

    def end(self, origin: str = "a") -> None:
        self.promise(origin, END / SECOND)

    def spoil(self, segment: int, offset: int, suffix: str = "arrows") -> None:
        """Turn a byte that was safe."""
        file = self.folder / f"{segment:010d}.{suffix}"
        data = bytearray(file.read_bytes())
        data[offset] ^= 0xFF
        file.write_bytes(data)


def micros_of(seconds: float) -> int:
    return min(END, round(seconds * SECOND))


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path)
    yield made
    made.writer.close()


def source(path: Path | str, schema: pa.Schema | None = None, **options: str) -> tuple[RoveDataSource, Any]:
    made = RoveDataSource(CaseInsensitiveDict({"path": str(path), "query": "q", **options}))
    return made, made.schema() if schema is None else from_arrow_schema(schema)


class Query:
    """A streaming query without the JVM: Spark's own calls, in its order."""

    def __init__(self, path: Path | str, schema: pa.Schema | None = None, **options: str) -> None:
        made, self.schema = source(path, schema, **options)
        self.stream = made.streamReader(self.schema)
        self.at = self.stream.initialOffset()

    def run(self, limit: Any = ALL) -> Rows:
        """The next micro-batch; nothing if there is none."""
        end = self.stream.latestOffset(self.at, limit)
        found = self.rows(self.at, end)
        self.at = json.loads(json.dumps(end))
        self.stream.commit(self.at)
        return found

    def rows(self, start: Any, end: Any) -> Rows:
        found: Rows = []
        for share in self.stream.partitions(start, end):
            for batch in self.stream.read(pickle.loads(pickle.dumps(share))):
                assert batch.schema.equals(to_arrow_schema(self.schema, timezone="UTC"))
                found += batch.to_pylist()
        return found


def batch(path: Path | str, schema: pa.Schema | None = None, **options: str) -> Rows:
    made, wanted = source(path, schema, **options)
    reader = made.reader(wanted)
    return [row for share in reader.partitions() for found in reader.read(share) for row in found.to_pylist()]


def values(rows: Rows) -> list[int]:
    return [row["value"] for row in rows if not row.get("_heartbeat")]


def beats(rows: Rows) -> list[float]:
    return [row["ts"].timestamp() for row in rows if row.get("_heartbeat")]


# Through Spark itself


@pytest.fixture(scope="module")
def streaming(spark: Any) -> Iterator[Any]:
    """The session with the source, and with what makes micro-batches quick."""
    chosen = {k: v for k, v in streaming_settings().items() if k.endswith((".checkpointFileManagerClass", "Delay"))}
    before = {key: spark.conf.get(key, None) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    register(spark)
    yield spark
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def test_a_stream_has_what_a_batch_has_and_what_was_written_while_the_writer_goes_on(
    streaming: Any, gateway: Gateway, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path), "query": "q", "consumer": "spark"}
    seen: list[tuple[int, Rows]] = []

    def keep(frame: Any, number: int) -> None:
        seen.append((number, frame.toArrow().to_pylist()))

    def started() -> Any:
        frame = streaming.readStream.format("rove").options(**options).load()
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.start()

    gateway.write("a", [1, 2, None])
    query = started()
    for seconds in ([3, 4], [5], []):
        gateway.write("b", seconds)
        query.processAllAvailable()
    query.stop()
    gateway.write("a", [6, 7])
    query = started()
    query.processAllAvailable()
    query.stop()
    got = [row for _, rows in seen for row in rows]
    assert sorted(values(got)) == list(range(8))
    expected = pa.Table.from_pylist(gateway.written, SCHEMA).to_pylist()
    assert sorted(got, key=lambda r: r["value"]) == expected
    whole = streaming.read.format("rove").options(**options).load()
    assert sorted(whole.toArrow().to_pylist(), key=lambda r: r["value"]) == expected
    assert json.loads((gateway.folder / "reader-spark").read_text())["position"] >= 3


def test_a_batch_that_was_planned_and_not_done_is_the_same_after_a_restart(
    streaming: Any, gateway: Gateway, tmp_path: Path
) -> None:
    attempts: list[tuple[int, list[int]]] = []

    def fail_once(frame: Any, number: int) -> None:
        attempts.append((number, sorted(values(frame.toArrow().to_pylist()))))
        if number == 1 and len(attempts) == 2:
            raise RuntimeError("the machine burns")

    def run() -> None:
        options = {"path": str(tmp_path), "query": "q", "time": "ts", "maxRowsPerTrigger": "2"}
        frame = streaming.readStream.format("rove").options(**options).load()
        writer = frame.writeStream.foreachBatch(fail_once).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    gateway.write("a", [1, 3, 5], 0)
    gateway.write("b", [2, 4, 9], 6)
    with pytest.raises(Exception, match="the machine burns"):
        run()
    assert attempts == [(0, [0, 3]), (1, [1, 4])]
    gateway.write("a", [6.5, 7.5], 8)
    run()
    assert attempts[2:] == [(1, [1, 4]), (2, [2, 6]), (3, [7])]


def test_a_window_waits_for_an_origin_that_is_away_and_closes_by_a_heartbeat(
    streaming: Any, gateway: Gateway, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path), "query": "q", "time": "ts", "delay": "2 seconds", "span": "10 seconds"}
    frame = streaming.readStream.format("rove").options(**options, heartbeat="true").load()
    timed = frame.withWatermark("ts", "2 seconds").where("NOT _heartbeat OR ts = TIMESTAMP'0001-01-01 00:00:00'")
    counts = timed.groupBy(window("ts", "10 seconds")).count()
    query = counts.writeStream.format("memory").queryName("windows").outputMode("append").start()

    def closed() -> dict[int, int]:
        query.processAllAvailable()
        rows = streaming.sql("SELECT window.start AS start, count FROM windows").toArrow().to_pylist()
        return {int(row["start"].timestamp()): row["count"] for row in rows}

    gateway.write("near", [1, 8, 12, 25], None)
    assert closed() == {}
    gateway.write("far", [2], 2)
    assert closed() == {}
    gateway.write("near", [31], 2)
    gateway.write("far", [9, 13], 9)
    assert closed() == {}
    gateway.promise("far", 14)
    assert closed() == {0: 4}
    gateway.write("far", [14, 33], END / SECOND)
    assert closed() == {0: 4, 10: 3, 20: 1, 30: 2}
    gateway.write("new", [41], 41)
    gateway.promise("new", 50)
    assert closed() == {0: 4, 10: 3, 20: 1, 30: 2, 40: 1}
    dropped = [op["numRowsDroppedByWatermark"] for p in query.recentProgress for op in p["stateOperators"]]
    query.stop()
    assert sum(dropped) == 0


def test_spark_shows_what_is_wrong(streaming: Any, gateway: Gateway, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"no option `tme`.*did you mean `time`"):
        streaming.read.format("rove").options(path=str(tmp_path), query="q", tme="ts").load()


# The same calls, without the JVM


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
    with pytest.raises(DiskError, match="west/log/q/out, which is not among what the options name"):
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
    assert found == [(0, "a", 0, None), (1, "a", 0, None), (2, "b", 0, 2.0)]
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
    header = Header(origin="a", seq=0, through=0, rows=500)
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


def test_damaged_rows_stop_a_query_with_their_name_or_are_passed_over_with_a_note(
    gateway: Gateway, tmp_path: Path
) -> None:
    for second in range(3):
        gateway.write("a", [second], second)
    size = (gateway.folder / "0000000000.arrows").stat().st_size
    gateway.spoil(0, size - 500)
    complaint = r"0000000000.arrows at byte \d+: the rows cannot be read.* `a` seqs 1 to 1.*onDamage=skip"
    with pytest.raises(DiskError, match=complaint):
        Query(tmp_path).run()
    for _ in range(2):
        assert values(Query(tmp_path, onDamage="skip").run()) == [0, 2]
        assert values(batch(tmp_path, onDamage="skip")) == [0, 2]
    (note,) = (gateway.folder / "quarantine").iterdir()
    assert note.name == "0000000000-1.json"
    said = json.loads(note.read_text())
    assert (said["file"], said["origin"], said["seq"], said["through"], said["rows"]) == (
        "0000000000.arrows", "a", 1, 1, 1,
    )  # fmt: skip


def test_damaged_rows_whose_times_nobody_knows_are_met_when_they_are_planned(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write("a", [1], 1, told=False)
    size = (gateway.folder / "0000000000.arrows").stat().st_size
    gateway.spoil(0, size - 10)
    gateway.write("a", [2], 2, told=False)
    with pytest.raises(DiskError, match="onDamage=skip"):
        Query(tmp_path, time="ts").run()
    assert values(Query(tmp_path, time="ts", onDamage="skip").run()) == [1]


def test_a_damaged_index_is_treated_as_damaged_rows_are(gateway: Gateway, tmp_path: Path) -> None:
    for second in range(3):
        gateway.write("a", [second], second)
    size = (gateway.folder / "0000000000.index").stat().st_size
    gateway.spoil(0, size - 150, "index")
    with pytest.raises(DiskError, match=r"0000000000.index at byte \d+: a record is unreadable.*onDamage=skip"):
        Query(tmp_path).run()
    assert values(Query(tmp_path, onDamage="skip").run()) == [0, 2]
    (note,) = (gateway.folder / "quarantine").iterdir()
    assert json.loads(note.read_text())["file"] == "0000000000.index"


def test_a_consumer_says_what_it_needs_no_more_and_the_log_waits_for_it(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, segment_entries=1)
    gateway.write("a", [1, 50], 1)
    gateway.write("a", [2], 2)
    file = gateway.folder / "reader-night"

    def told() -> Any:
        gateway.writer.partition.consumed("night", json.loads(file.read_text())["position"])
        return json.loads(file.read_text())

    query = Query(tmp_path, time="ts", consumer="night")
    assert told() == {"position": 0}
    query.run()
    assert told() == {"position": 0}
    assert gateway.writer.retire() == 0
    gateway.write("a", [60], 50)
    query.run()
    assert told() == {"position": 2}
    assert gateway.writer.retire() == 2
    gateway.promise("a", 70)
    assert len(query.run()) == 1
    assert [p.name for p in gateway.folder.glob("*reader*")] == ["reader-night"]


def test_entries_that_were_deleted_too_early_are_named(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, segment_entries=1, keep_bytes=1)
    query = Query(tmp_path)
    for second in range(4):
        gateway.write("a", [second])
    planned = query.stream.latestOffset(query.at, ALL)
    assert gateway.writer.retire() == 3
    share = query.stream.partitions(query.at, planned)[0]
    with pytest.raises(DiskError, match=r"entries 0 to 0 were deleted before .* new checkpoint"):
        list(query.stream.read(share))
    with pytest.raises(DiskError, match=r"entries 0 to 2 were deleted before .* new checkpoint"):
        Query(tmp_path).stream.latestOffset(query.at, ALL)
    assert values(Query(tmp_path).run()) == [3]


def test_a_log_that_is_shorter_than_the_checkpoint_is_not_taken_for_the_same(gateway: Gateway, tmp_path: Path) -> None:
    query = Query(tmp_path)
    gateway.write("a", [1])
    query.run()
    further = json.loads(json.dumps(query.at))
    further["at"][str(gateway.folder)].update({"from": 7, "to": 7})
    assert query.stream.latestOffset(further, ALL) == further
    with pytest.raises(DiskError, match="ends at 1, and the checkpoint knows it up to 7"):
        query.stream.partitions(query.at, further)


def test_a_long_time_without_rows_moves_the_checkpoint_on(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "ENTRIES_UNSAID_MAX", 3)
    query = Query(tmp_path, time="ts")
    gateway.write("a", [50], 1)
    assert query.run() == []
    assert query.at == query.stream.initialOffset()
    for second in range(3):
        gateway.promise("a", second)
    assert query.run() == []
    assert query.at["at"][str(gateway.folder)]["to"] == 4
    gateway.promise("a", 50)
    assert values(query.run()) == [0]


def test_an_output_is_found_by_itself_if_it_is_the_only_one(tmp_path: Path) -> None:
    Gateway(tmp_path, "q/one").write("a", [1])
    Gateway(tmp_path, "q/late-one").write("b", [2])
    assert [row["key"] for row in batch(tmp_path)] == ["a"]
    assert [row["key"] for row in batch(tmp_path, output="late-one")] == ["b"]
    Gateway(tmp_path, "q/two").write("c", [3])
    with pytest.raises(PlanError, match=r"2 outputs \(one, two\); name one in option `output`"):
        batch(tmp_path)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"path": " "}, "`path` is missing"),
        ({"query": ""}, "`query` is ``"),
        ({"query": "../q"}, "cannot be the name of a file"),
        ({"stream": "r"}, "`query` and `stream` differ"),
        ({"maxRows": "3"}, "no option `maxrows`.*did you mean `maxRowsPerTrigger`"),
        ({"maxRowsPerTrigger": "none"}, "whole number above 0"),
        ({"heartbeat": "yes", "time": "ts"}, "`heartbeat` is `yes`; it is one of: false, true"),
        ({"onDamage": "ignore"}, "one of: stop, skip"),
        ({"delay": "5 seconds"}, "`delay` is about event time"),
        ({"time": "ts", "delay": "soon"}, "`delay` `soon` is not a fixed length of time"),
        ({"time": "key"}, "`key` is string in .*; event time is a timestamp"),
        ({"time": "when"}, "no column `when`"),
        ({"columns": "key,valeu"}, "no column `valeu`.*did you mean `value`"),
        ({"columns": "key,key"}, "names a column twice"),
        ({"columns": "key", "time": "ts", "heartbeat": "true"}, "column `ts` has to be read, too"),
        ({"output": "nowhere"}, "nowhere is not there; there are: out"),
        ({"query": "r"}, "log/r is not there; there are: q"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    gateway: Gateway, tmp_path: Path, options: dict[str, str], complaint: str
) -> None:
    gateway.write("a", [1])
    given = {"path": str(tmp_path), "query": "q", "someone.else": "x", **options}
    made = RoveDataSource(CaseInsensitiveDict(given))
    with pytest.raises((PlanError, DiskError, SchemaMismatch), match=complaint):
        made.streamReader(made.schema())


def test_a_schema_that_is_given_wins_and_is_checked(gateway: Gateway, tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=r"has no segment yet|not there"):
        batch(tmp_path / "..")
    gateway.write("a", [1, None])
    assert batch(tmp_path, pa.schema([("value", pa.int64())])) == [{"value": 0}, {"value": 1}]
    with pytest.raises(SchemaMismatch, match=r"`value` is bigint in .*0000000000.arrows, not int;"):
        batch(tmp_path, pa.schema([("value", pa.int32())]))
    with pytest.raises(PlanError, match=r"no column `_origin` .* set option metadata to true"):
        batch(tmp_path, pa.schema([("_origin", pa.string())]))
    with pytest.raises(PlanError, match="the last column of a schema is `_heartbeat boolean`"):
        Query(tmp_path, SCHEMA, time="ts", heartbeat="true")
    with pytest.raises(SchemaMismatch, match="`ts` has nulls"):
        batch(tmp_path, pa.schema([pa.field("ts", SCHEMA.field("ts").type, nullable=False)]))
