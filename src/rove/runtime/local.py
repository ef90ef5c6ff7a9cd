"""Plans run in this process, over rows that are already there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from rove.data.pipeline import Emitted, Pipeline
from rove.model.batch import Batch, named
from rove.plan.operators import Operator

Rows = Mapping[str, Mapping[str, list[pa.RecordBatch]]]  # stream → origin → batches in order


@dataclass(frozen=True, slots=True)
class Collected:
    """What came out at one sink."""

    rows: pa.Table
    late: int


def run(plans: Mapping[str, Operator], data: Rows, name: str = "local") -> dict[str, Collected]:
    """Every plan over all rows, to the end; origins take turns. The first batch that cannot be computed raises."""
    pipeline = Pipeline(plans, {stream: list(origins) for stream, origins in data.items()}, name)
    out: dict[str, list[pa.RecordBatch]] = {sink: [] for sink in plans}
    late = dict.fromkeys(plans, 0)

    def take(emitted: list[Emitted]) -> None:
        for each in emitted:
            if each.fault is not None:
                raise each.fault
            if each.late:
                late[each.sink] += each.batch.rows
            elif each.batch.data is not None:
                out[each.sink].append(each.batch.data)

    for stream, batch in in_turns(data):
        take(pipeline.process(stream, batch))
    take(pipeline.finish())
    return {sink: Collected(pa.Table.from_batches(out[sink], plans[sink].schema), late[sink]) for sink in plans}


def in_turns(data: Rows) -> Iterator[tuple[str, Batch]]:
    """One batch of each origin after the other, numbered from 0 by its origin."""
    queues = [(stream, origin, list(batches)) for stream, found in data.items() for origin, batches in found.items()]
    for seq in range(max((len(b) for _, _, b in queues), default=0)):
        for stream, origin, batches in queues:
            if seq < len(batches):
                yield stream, named(origin, seq, batches[seq])
