"""Devices that are away, silent or gone, and what that means for windows in Spark.

`pytest tests/e2e/test_absent.py --long-absence` has a device away for a minute (some 3 minutes).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rove
from rove import functions as F
from rove.api.query import Query
from rove.control.asks.requests import Named
from rove.model.ids import NodeId
from rove.runtime.adapters.sources import SourceSpec, generated

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

COLUMNS = "key string, ts timestamp, value bigint"
FAR = NodeId("far")
BATCHES_PER_S, BATCH_ROWS = 10, 20
BEFORE_S, AFTER_S = 4, 10  # that rows flow before a device is away, and after


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """For how long one is away, how late rows may be, and how long the one query waits; the other waits 5 minutes."""

    away_s: int
    delay_s: int
    patience_s: int


SHORT = Times(away_s=11, delay_s=1, patience_s=6)
LONG = Times(away_s=60, delay_s=5, patience_s=30)


@pytest.fixture
def times(request: pytest.FixtureRequest) -> Times:
    return LONG if request.config.getoption("--long-absence") else SHORT


@pytest.fixture
def session(spark: Any, tmp_path: Path) -> Iterator[rove.Session]:
    with rove.Session.local(tmp_path) as found:
        yield found


def sensor(session: rove.Session, node: str, **more: Any) -> SourceSpec:
    """A device whose event time goes as fast as the clock: 20 rows ten times a second."""
    gate = str(session.world.folder / more.pop("gate", "begin"))
    pace: dict[str, Any] = {"rows": BATCH_ROWS, "rate": float(BATCHES_PER_S), "step_us": 5_000}
    more.setdefault("start_us", 1_700_000_000_000_000)
    spec = SourceSpec(stream="s", columns=COLUMNS, node=node, when=gate, **pace, **more)
    session.world.add_device(node, (spec,), (NodeId("edge-1"),))
    return spec


def windowed(session: rove.Session, delay_s: int = 1) -> Any:
    stream = session.stream("s", schema=COLUMNS).withWatermark("ts", f"{delay_s} seconds")
    return stream.groupBy(F.window("ts", "2 seconds"), "key").agg(F.count("*").alias("n"), F.sum("value").alias("v"))


def in_batch(spark: Any, rows: pa.Table) -> list[tuple[Any, ...]]:
    from pyspark.sql import functions as S

    frame = spark.createDataFrame(rows).groupBy(S.window("ts", "2 seconds"), "key")
    return sorted_rows(frame.agg(S.count("*").alias("n"), S.sum("value").alias("v")).toArrow())


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((r["window"]["start"], r["key"], r["n"], r["v"]) for r in table.to_pylist())


def await_(condition: Any, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def running(*queries: Query) -> None:
    await_(lambda: all(q.listed().state == "running" for q in queries), 30, "the queries run")
    await_(lambda: all(q.spark is not None for q in queries), 60, "Spark has said something")


def test_one_who_comes_back_is_waited_for_and_one_who_stays_away_too_long_is_late(
    spark: Any, session: rove.Session, times: Times
) -> None:
    start_us = time.time_ns() // 1_000
    batches = (BEFORE_S + times.away_s + AFTER_S) * BATCHES_PER_S
    near, far = (
        sensor(session, node, batches=batches, seed=n, start_us=start_us) for n, node in enumerate(("near", "far"))
    )
    writer = windowed(session, times.delay_s).writeStream.option("strategy", "cloud_only")
    patient = writer.toTable("patient")
    impatient = (
        writer.option("returnTimeout", f"{times.patience_s} seconds").queryName("impatient").toTable("impatient")
    )
    running(patient, impatient)
    session.world.play()
    time.sleep(BEFORE_S)
    for other in ("edge-1", "coordinator"):
        session.world.cut("far", other)
    time.sleep(times.away_s)
    for other in ("edge-1", "coordinator"):
        session.world.mend("far", other)
    patient.processAllAvailable(120)
    impatient.processAllAvailable(120)

    of_far = pa.Table.from_batches(list(generated(far)))
    rows = pa.concat_tables([pa.Table.from_batches(list(generated(near))), of_far])
    for query in (patient, impatient):
        line = [sum(getattr(a, what) for a in query.accounts) for what in ("produced", "delivered", "late", "lost")]
        assert line[0] == line[1] + line[2] == rows.num_rows
        assert line[3] == 0
        assert query.spark is not None
        assert query.spark.dropped_rows == 0

    assert sorted_rows(session.table("patient")) == in_batch(spark, rows)
    assert sum(line.late for line in patient.accounts) == 0

    late_folder = session.world.folder / "tables" / "impatient_late"
    counted = sum(line.late for line in impatient.accounts)
    await_(lambda: late_rows(spark, late_folder).num_rows == counted, 30, "the late table has all of them")
    late = late_rows(spark, late_folder)
    assert all(origin.startswith("s/far~") for origin in late["_origin"].to_pylist())
    assert counted > BATCH_ROWS * BATCHES_PER_S * (times.away_s - times.delay_s - 3)
    # What is not late is answered, and of all that it made from the first to the last late row nothing is.
    late = late.select(rows.column_names)
    left = Counter(as_tuples(rows)) - Counter(as_tuples(late))
    in_time = pa.Table.from_pylist([dict(zip(rows.column_names, r, strict=True)) for r in left.elements()], rows.schema)
    assert in_time.num_rows + counted == rows.num_rows
    assert sorted_rows(session.table("impatient")) == in_batch(spark, in_time)
    first, last = (found.as_py() for found in pc.min_max(late["ts"]).values())
    assert sorted(as_tuples(late)) == sorted(row for row in as_tuples(of_far) if first <= row[1] <= last)


def as_tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def late_rows(spark: Any, folder: Path) -> pa.Table:
    parts = [part for part in folder.glob("late-*") if (part / "_spark_metadata").is_dir()]
    found = [spark.read.parquet(str(part)).toArrow() for part in parts]
    return pa.concat_tables(found) if found else pa.table({"_origin": pa.array([], pa.string())})


def test_windows_close_when_all_fall_silent_and_when_the_last_one_leaves(spark: Any, session: rove.Session) -> None:
    start_us = time.time_ns() // 1_000
    spec = sensor(session, "near", batches=20, seed=3, start_us=start_us, stays=1, idle=1.0)
    query = windowed(session).writeStream.option("strategy", "cloud_only").toTable("counts")
    running(query)
    session.world.play()
    rows = pa.Table.from_batches(list(generated(spec)))
    await_(lambda: table_rows(session) == in_batch(spark, rows), 40, "silence closes all windows")

    later = time.time_ns() // 1_000 + 30_000_000  # so that it is in time, however long it takes to join
    other = sensor(session, "far", batches=10, seed=4, start_us=later, stays=1, gate="second")
    await_(lambda: session.world.do(lambda net: "counts" in net.worker(FAR).worker.running()), 30, "far takes part")
    (session.world.folder / "second").touch()
    await_(lambda: sum(a.delivered for a in query.accounts) == rows.num_rows + 200, 30, "its rows have arrived")
    rows = pa.concat_tables([rows, pa.Table.from_batches(list(generated(other)))])
    assert table_rows(session) != in_batch(spark, rows)
    for node in ("near", "far"):
        session.world.do(lambda net, node=node: net.stop(NodeId(node)))
        session.ask("remove", Named(name=node), Named)
    await_(lambda: table_rows(session) == in_batch(spark, rows), 40, "the last one who leaves closes all windows")
    assert query.spark is not None
    assert query.spark.dropped_rows == 0


def table_rows(session: rove.Session) -> list[tuple[Any, ...]]:
    try:
        return sorted_rows(session.table("counts"))
    except Exception:
        return []
