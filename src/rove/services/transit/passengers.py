"""Makes up the rows of the trains' door sensors at every call, slightly out of order, as real sensors send them."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from rove.model.schema import parse_schema
from rove.services.transit.timetable import Timetable

SCHEMA = "train string, coach int, ts timestamp, boarding int, alighting int"
COACHES, SEATS, ROWS_PER_BATCH = 4, 40, 24
JITTER_US = 3_000_000
BUSY = 1 / 3  # the part of the ring where most people board


def counted(timetable: Timetable, seed: int) -> dict[str, list[pa.RecordBatch]]:
    """By train, one batch for each call: how many board and alight in each coach, every five seconds for half a
    minute."""
    random, schema = Random(seed), parse_schema(SCHEMA)
    found: dict[str, list[pa.RecordBatch]] = {}
    for train, calls in timetable.items():
        aboard = [random.randrange(SEATS) for _ in range(COACHES)]
        batches = []
        for call in calls:
            rows = []
            for second in range(0, 30, 5):
                for coach in range(COACHES):
                    alighting = random.randrange(min(8, aboard[coach] + 1))
                    boarding = random.randrange(9) if call.place < BUSY else random.randrange(5)
                    aboard[coach] += boarding - alighting
                    moment = call.at_us + second * 1_000_000 + random.randrange(JITTER_US)
                    rows.append((train, coach, moment, boarding, alighting))
            arrays = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), schema, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        found[train] = batches
    return found
