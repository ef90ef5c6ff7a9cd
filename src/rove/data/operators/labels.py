"""Puts the parts of a state into one table, with labels as columns, so that a snapshot is plain Arrow.

Law: `unlabelled(gathered(parts))` returns the parts, in order. A label costs the same for a part of any length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa


def gathered(parts: Iterable[tuple[tuple[Any, ...], pa.RecordBatch]], labels: pa.Schema, schema: pa.Schema) -> pa.Table:
    """The parts, one record batch each, with their labels as the first columns."""
    whole = pa.schema([*(pa.field(f.name, pa.run_end_encoded(pa.int32(), f.type)) for f in labels), *schema])
    batches = []
    for values, part in parts:
        first = [_repeated(pa.array([v], f.type), part.num_rows) for v, f in zip(values, labels, strict=True)]
        batches.append(pa.RecordBatch.from_arrays([*first, *part.columns], schema=whole))
    return pa.Table.from_batches(batches, whole)


def unlabelled(
    table: pa.Table, labels: pa.Schema, schema: pa.Schema
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The parts with their labels. A table keeps the record batches that it was made of."""
    for batch in table.to_batches():
        if batch.num_rows:
            values = tuple(batch.column(i)[0].as_py() for i in range(len(labels)))
            yield values, pa.RecordBatch.from_arrays(batch.columns[len(labels) :], schema=schema)


def _repeated(value: pa.Array, times: int) -> pa.RunEndEncodedArray:
    ends = pa.array([times] if times else [], pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, value.slice(0, len(ends)))
