"""The log as a source of Spark itself: streams, restarts, windows that wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.functions import window

from rove.cloud.source import register
from rove.cloud.start.session import streaming_settings
from rove.model.clock import END
from tests.cloud.gateway_log import SCHEMA, SECOND, Gateway, Rows, values
from tests.cloud.patient import begun, patiently


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
    query = begun(started)
    for seconds in ([3, 4], [5], []):
        gateway.write("b", seconds)
        query.processAllAvailable()
    query.stop()
    gateway.write("a", [6, 7])
    query = begun(started)
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
        patiently(run)
    assert attempts == [(0, [0, 3]), (1, [1, 4])]
    gateway.write("a", [6.5, 7.5], 8)
    patiently(run)
    assert attempts[2:] == [(1, [1, 4]), (2, [2, 6]), (3, [7])]


def test_a_window_waits_for_an_origin_that_is_away_and_closes_by_a_heartbeat(
    streaming: Any, gateway: Gateway, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path), "query": "q", "time": "ts", "delay": "2 seconds", "span": "10 seconds"}
    frame = streaming.readStream.format("rove").options(**options, heartbeat="true").load()
    timed = frame.withWatermark("ts", "2 seconds").where("NOT _heartbeat OR ts = TIMESTAMP'0001-01-01 00:00:00'")
    counts = timed.groupBy(window("ts", "10 seconds")).count()
    query = begun(counts.writeStream.format("memory").queryName("windows").outputMode("append").start)

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
