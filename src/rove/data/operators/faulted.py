"""Rows that cannot be computed: finds them, and sets them aside with the reason.

Law: only the rows at fault go; all other rows of their batch are computed. The rows at fault are kept as they were,
with two more columns, and go to the fault table. A batch without a fault costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from msgspec.structs import replace

from rove.model.batch import Batch, Header
from rove.model.errors import DataError
from rove.model.schema import STRING

REASON, OPERATOR = "fault_reason", "fault_operator"
TRIES_MAX = 20_000  # parts of one batch that are tried; each row at fault takes about log2(rows) of them
TEXT_MAX = 500  # characters of a reason

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows `start` to `end`, without `end`, that could not be computed."""

    start: int
    end: int
    error: DataError


@dataclass(frozen=True, slots=True)
class Tried(Generic[T]):
    """The results of the parts of a batch that could be computed, in order, and its rows at fault, in order."""

    results: list[T]
    faults: list[Fault]


def try_parts(compute: Callable[[pa.RecordBatch], T], data: pa.RecordBatch, error: DataError) -> Tried[T]:
    """Halve a batch, which failed with `error`, until the rows at fault are alone. O(rows at fault × log rows) calls.

    If an error is not of single rows, or there are too many of them, the part is at fault as a whole.
    """
    results: list[tuple[int, T]] = []
    faults: list[Fault] = []
    tries = min(TRIES_MAX, error.tries_max)
    parts = [(0, data.num_rows, error)]  # parts that failed
    while parts:
        start, end, why = parts.pop()
        if end - start == 1 or tries < 2 or not why.tries_max:
            faults.append(Fault(start, end, why))
            continue
        middle = (start + end) // 2
        tries -= 2
        for low, high in ((start, middle), (middle, end)):
            try:
                results.append((low, compute(data.slice(low, high - low))))
            except DataError as again:
                parts.append((low, high, again))
    results.sort(key=lambda found: found[0])
    return Tried([result for _, result in results], sorted(faults, key=lambda fault: fault.start))


def rows_outside(data: pa.RecordBatch, faults: list[Fault]) -> pa.RecordBatch | None:
    """The rows that are not at fault; None if there are none."""
    starts = [0, *(fault.end for fault in faults)]
    ends = [*(fault.start for fault in faults), data.num_rows]
    parts = [data.slice(start, end - start) for start, end in zip(starts, ends, strict=True) if start < end]
    return pa.concat_batches(parts) if parts else None


def set_aside(header: Header, data: pa.RecordBatch, faults: list[Fault], operator: str) -> Batch:
    """The rows at fault as they were, with the reason and the operator, under the name of their batch."""
    parts = [data.slice(fault.start, fault.end - fault.start) for fault in faults]
    rows = pa.concat_batches(parts)
    reasons = [str(f.error)[:TEXT_MAX] for f in faults for _ in range(f.start, f.end)]
    columns = [*rows.columns, pa.array(reasons, STRING), pa.array([operator[:TEXT_MAX]] * len(reasons), STRING)]
    aside = pa.RecordBatch.from_arrays(columns, schema=fault_schema(data.schema))
    count = aside.num_rows
    header = replace(header, rows=count, born=count, faulted=count, evicted=0, lost=0, belated=0, late=True)
    return Batch(header, aside)


def fault_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of rows at fault: as they were, the reason, and the operator."""
    taken = set(schema.names)
    for name in (REASON, OPERATOR):
        while name in taken:
            name = f"_{name}"
        taken.add(name)
        schema = schema.append(pa.field(name, STRING))
    return schema
