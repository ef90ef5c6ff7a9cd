"""Tables in Spark: columns before there are rows, a trigger interval, and compaction under a real streaming query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rove.cloud.compaction import compact, listed, spark_rewrite
from rove.cloud.compactor import IDLE_S, Compactor
from rove.cloud.sinks import trigger_ms
from rove.cloud.tables import begin_aside, read_table
from rove.control.asks.requests import CloudQuery, CloudSink

TABLE = CloudSink(kind="table", name="t")


@pytest.mark.parametrize(
    ("sink", "every_ms"),
    [
        (TABLE, 2_000),
        (CloudSink(kind="table", name="t", trigger_ms=0), 0),
        (CloudSink(kind="table", name="t", trigger_ms=500), 500),
        (CloudSink(kind="console"), 0),
    ],
)
def test_a_table_has_an_interval_unless_its_query_says_another(sink: CloudSink, every_ms: int) -> None:
    assert trigger_ms(sink, 2_000) == every_ms


def test_tables_of_rows_set_aside_have_their_columns_before_there_are_rows(spark: Any, tmp_path: Path) -> None:
    begin_aside(tmp_path, CloudQuery(query="q", plan=b"", sink=TABLE, late="tram string, ts timestamp", faults="n int"))
    late, faults = (read_table(spark, tmp_path / name) for name in ("t_late", "t_faults"))
    assert dict(late.dtypes) | {"tram": "string", "ts": "timestamp", "_origin": "string"} == dict(late.dtypes)
    assert dict(faults.dtypes) | {"n": "int", "fault_reason": "string", "fault_operator": "string"} == dict(
        faults.dtypes
    )
    assert (late.count(), faults.count()) == (0, 0)
    spark.createDataFrame([("a", 1)], "tram string, n int").write.parquet(str(tmp_path / "t_late" / "late-1" / "raw"))
    assert read_table(spark, tmp_path / "t_late").count() == 0, "what Spark's sink has not committed is not there"


def fed(spark: Any, folder: Path, first: int, count: int) -> None:
    """Add files, and let a streaming query read each in a micro-batch of its own."""
    (folder / "in").mkdir(exist_ok=True)
    for number in range(first, first + count):
        (folder / "in" / f"{number:03}.json").write_text(json.dumps({"n": number, "ts": "2026-05-04T08:00:00Z"}))
    frame = spark.readStream.schema("n int, ts timestamp").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "state"))
    writer.trigger(availableNow=True).start(str(folder / "t")).awaitTermination()


def rows(spark: Any, table: Path) -> list[int]:
    return sorted(row.n for row in read_table(spark, table).collect())


def test_a_table_of_a_real_query_is_compacted_and_its_query_goes_on(spark: Any, tmp_path: Path) -> None:
    table = tmp_path / "t"
    fed(spark, tmp_path, 0, 12)
    open_reader = read_table(spark, table)
    assert open_reader.count() == 12
    done = compact(table, spark_rewrite(spark), files_min=2)
    assert (done.before, done.after) == (10, 1)
    assert rows(spark, table) == list(range(12))
    assert read_table(spark, table).dtypes == open_reader.dtypes
    assert sorted(row.n for row in open_reader.collect()) == list(range(12)), "a reader that was open goes on"
    fed(spark, tmp_path, 12, 9)
    assert rows(spark, table) == list(range(21))
    assert compact(table, spark_rewrite(spark), files_min=99, grace_s=0).deleted == 10
    assert rows(spark, table) == list(range(21))
    now = 0.0
    compactor = Compactor(spark, tmp_path, 5, lambda: now)
    for now in (0.0, IDLE_S - 1, IDLE_S):
        compactor.look({"t": 21})
        compactor.close()
        assert len(listed(table)) == (12 if now < IDLE_S else 2), "it begins when the query is idle"
    assert rows(spark, table) == list(range(21))


def test_a_table_is_compacted_while_its_query_writes_it(spark: Any, tmp_path: Path) -> None:
    table, files = tmp_path / "t", tmp_path / "in"
    files.mkdir()
    frame = spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(str(files))
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "state"))
    query = writer.start(str(table))

    def write(first: int, count: int) -> None:
        for number in range(first, first + count):
            (files / f"{number:03}.json").write_text(json.dumps({"n": number}))
        query.processAllAvailable()

    def rewrite(old: Sequence[Path], folder: Path, count: int) -> None:
        spark_rewrite(spark)(old, folder, count)
        write(12, 10)  # the sink writes its next compact file

    try:
        write(0, 12)
        done = compact(table, rewrite, files_min=2)
        assert (done.before, done.after, done.hindered) == (10, 1, "")
        assert rows(spark, table) == list(range(22))
        assert len(listed(table)) == 1 + 12
        write(22, 10)
        assert rows(spark, table) == list(range(32))
        assert len(listed(table)) == 1 + 22, "the sink goes on from the new list"
        assert compact(table, spark_rewrite(spark), files_min=99, grace_s=0).deleted == 10
        assert rows(spark, table) == list(range(32))
    finally:
        query.stop()
