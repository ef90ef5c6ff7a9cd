"""A gateway's log written by hand, and Spark's own calls on the source that reads it, without the JVM."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

from rove.cloud.source import RoveDataSource
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.clock import END, MICROS_MIN
from rove.model.ids import Origin
from rove.model.schema import parse_schema
from rove.runtime.disk.disk import LogWriter, open_partition

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
            origin=Origin("s", origin),
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
