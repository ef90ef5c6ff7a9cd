"""What a running operator looks like.

Law: a Logic is a machine without IO. `process` takes one batch and says what comes out, `watermark` hears that no
older event time will follow from any of its origins, `snapshot` and `restore` move it to another object.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import pyarrow as pa

from rove.model.batch import Batch, Header
from rove.model.state import Snapshot


class Output(msgspec.Struct, frozen=True):
    """What a step gave: batches to go on, and rows that came too late, which leave by the side door."""

    batches: tuple[Batch, ...] = ()
    late: tuple[Batch, ...] = ()


NOTHING = Output()


class Logic(Protocol):
    """A running operator with state."""

    def process(self, batch: Batch) -> Output: ...

    def watermark(self, time_us: int) -> Output: ...

    def snapshot(self) -> Snapshot: ...

    def restore(self, snapshot: Snapshot) -> None: ...


class Stateless(Protocol):
    """A running operator without state: rows in, rows out, the batch's name kept."""

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch: ...


class StatelessLogic:
    """A stateless operator seen as a Logic, for those who drive one operator by itself."""

    def __init__(self, step: Stateless) -> None:
        self._step = step

    def process(self, batch: Batch) -> Output:
        if batch.data is None:
            return Output((batch,))
        return Output((renamed(batch.header, self._step.apply(batch.data)),))

    def watermark(self, time_us: int) -> Output:
        return NOTHING

    def snapshot(self) -> Snapshot:
        return Snapshot("stateless")

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("stateless")


def renamed(header: Header, data: pa.RecordBatch, steps: int = 1) -> Batch:
    """Rows that went through stateless steps, under the name they came with."""
    rows = data.num_rows
    new = Header(
        origin=header.origin,
        seq=header.seq,
        through=header.through,
        watermark=header.watermark,
        stage=header.stage + steps,
        query=header.query,
        epoch=header.epoch,
        rows=rows,
        event_min=header.event_min,
        event_max=header.event_max,
        produced_at=header.produced_at,
    )
    return Batch(new, data if rows else None)
