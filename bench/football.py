"""Generates sensor rows of a football match, as in the DEBS 2013 Grand Challenge, with steps as large as the real ones.

Steps are drawn from Laplace's distribution with the mean size of those in the sample. No distribution with that mean
has more entropy, so these rows do not compress better than real ones. `sample` reads real rows to check that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rove.model.schema import parse_schema

COLUMNS = "sid int, ts bigint, x int, y int, z int, v int, a int, vx int, vy int, vz int, ax int, ay int, az int"
SCHEMA = parse_schema(COLUMNS)
ROW_BYTES = 56
SENSORS = 27
BEGIN_PS, EVERY_PS, JITTER_PS = 10_753_295_594_424_116, 4_812_000_000, 400_000.0
FILE = "debs2013/sample.csv"
UNIT = 10_000
SELECTED = 0.676  # of the rows have vx > 0
STEPS = {  # the mean size of a step from one row of a sensor to its next, and the bounds
    "x": (3.7, 0, 52_483),
    "y": (4.1, -33_960, 33_965),
    "z": (4.5, -700, 700),
    "v": (51_776.0, 0, 6_400_000),
    "a": (707_876.0, 0, 31_300_000),
    "vx": (572.5, -UNIT * (1 - SELECTED) / SELECTED, UNIT),
    "vy": (512.3, -UNIT, UNIT),
    "vz": (551.0, -UNIT, UNIT),
    "ax": (1_236.1, -UNIT, UNIT),
    "ay": (1_011.0, -UNIT, UNIT),
    "az": (636.7, -UNIT, UNIT),
}


def rows(count: int, seed: int = 1) -> pa.RecordBatch:
    """Rows of all sensors, in order of time."""
    random = np.random.default_rng(seed)
    each = -(-count // SENSORS)
    sid = np.repeat(np.arange(SENSORS), each)
    beats = np.tile(np.arange(each), SENSORS) * EVERY_PS + sid * (EVERY_PS // SENSORS)
    ts = BEGIN_PS + beats + random.laplace(0, JITTER_PS, SENSORS * each).astype(np.int64)
    columns = {"sid": sid, "ts": ts}
    for name, (mean, low, high) in STEPS.items():
        walk = np.cumsum(random.laplace(0, mean, (SENSORS, each)), axis=1)
        begin = random.uniform(low, high, (SENSORS, 1))
        columns[name] = _within(begin + walk, low, high).reshape(-1)
    order = np.argsort(ts, kind="stable")[:count]
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[f.name][order]).cast(f.type, safe=False) for f in SCHEMA], schema=SCHEMA
    )


def selected(batches: list[pa.RecordBatch]) -> float:
    """The share of rows with vx > 0."""
    kept = sum(pc.sum(pc.greater(batch["vx"], 0)).as_py() for batch in batches)
    return float(kept / sum(batch.num_rows for batch in batches))


def _within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values that are reflected at their bounds."""
    width = high - low
    return low + width - np.abs((values - low) % (2 * width) - width)


def sample(data: Path | None) -> pa.RecordBatch | None:
    """The real rows, if they are available."""
    if data is None or not (data / FILE).is_file():
        return None
    options = pa.csv.ReadOptions(column_names=SCHEMA.names)
    table = pa.csv.read_csv(
        data / FILE, read_options=options, convert_options=pa.csv.ConvertOptions(column_types=SCHEMA)
    )
    return table.combine_chunks().to_batches()[0]
