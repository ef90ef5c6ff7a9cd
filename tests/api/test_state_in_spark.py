"""State of the user's own in Spark, as the guide writes it, gives what batch Spark computes over all rows."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rove

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "state-in-spark.md"
START = datetime(2026, 5, 4, 8, tzinfo=UTC)
SILENT = """
SELECT train, ts AS silent_since
FROM (SELECT train, ts, lead(ts) OVER (PARTITION BY train ORDER BY ts) AS next FROM seen)
WHERE next IS NULL OR next > ts + INTERVAL 1 MINUTE
"""


def silences() -> Any:
    """The function of the guide."""
    (code,) = re.findall(r"```python\n(.*?)\n\ndef at\(", GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["silences"]


def rows(train: str, draw: random.Random) -> pa.Table:
    moments = [START]
    while len(moments) < 60:
        moments.append(moments[-1] + timedelta(seconds=draw.choice([1, 10, 59, 60, 61, 200])))
    times = pa.array(moments, pa.timestamp("us", "UTC"))
    return pa.table({"train": [train] * len(moments), "ts": times})


@pytest.mark.slow
def test_state_and_timers_of_event_time_give_what_batch_spark_gives(spark: Any) -> None:
    draw = random.Random(7)
    data = {name: rows(name, draw) for name in ("a", "b")}
    spark.createDataFrame(pa.concat_tables(data.values())).createOrReplaceTempView("seen")
    expected = spark.sql(SILENT).toArrow().to_pylist()
    with rove.Session.local() as session:
        batches = {name: table.to_batches(max_chunksize=8) for name, table in data.items()}
        trains = session.stream("trains", schema="train string, ts timestamp", data=batches)
        query = trains.withWatermark("ts", "5 seconds").inSpark(silences()).writeStream.toTable("quiet")
        query.processAllAvailable(240)
        found = session.table("quiet").to_pylist()
    assert len(expected) > 10
    assert sorted(found, key=str) == sorted(expected, key=str)
