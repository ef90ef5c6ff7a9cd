"""Taxi traces of one city: recorded ones if they are available, or generated ones in the same form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rove.model.ids import Origin
from rove.model.schema import parse_schema

COLUMNS = "ts timestamp, cab string, lat double, lon double, occupied int"
CABS, EVERY_S, BEGIN_US = 536, 61, 1_211_018_404_000_000
FILE = "cabspotting/points.parquet"


def points(rows: int, data: Path | None) -> tuple[pa.Table, bool]:
    """The first rows in order of time, and whether they are real."""
    schema = parse_schema(COLUMNS)
    if data is not None and (data / FILE).is_file():
        found = pq.read_table(data / FILE).slice(0, rows)
        columns = [found["ts"], found["cab_id"], found["lat"], found["lon"], found["occupied"]]
        return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema), True
    random = np.random.default_rng(3)
    cab = np.arange(rows) % CABS
    ts = BEGIN_US + (np.arange(rows) // CABS * EVERY_S + random.integers(0, EVERY_S, rows)) * 1_000_000
    order = np.argsort(ts, kind="stable")
    made = pa.table(
        [
            pa.array(ts[order]).cast(schema.field("ts").type),
            pa.array([f"cab-{n:03}" for n in range(CABS)]).take(pa.array(cab[order])),
            pa.array(37.75 + random.normal(0, 0.03, rows)),
            pa.array(-122.4 + random.normal(0, 0.03, rows)),
            pa.array((random.random(rows) < 0.4).astype(np.int32)),
        ],
        schema=schema,
    )
    return made, False


def by_cab(table: pa.Table, rows_per_batch: int) -> dict[Origin, list[pa.RecordBatch]]:
    """The batches that each cab sends."""
    ordered = table.take(pc.sort_indices(table, [("cab", "ascending"), ("ts", "ascending")])).combine_chunks()
    found, start = {}, 0
    for count in pc.value_counts(ordered["cab"]).to_pylist():
        part = ordered.slice(start, count["counts"])
        found[Origin("cabs", count["values"])] = part.combine_chunks().to_batches(max_chunksize=rows_per_batch)
        start += count["counts"]
    return found
