"""The interface of a running operator.

Law: a Logic is a state machine without IO. `process` takes one batch and returns output. `watermark` says that no older
event time will follow from any of its origins. `snapshot` and `restore` move its state to another object.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import pyarrow as pa

from rove.model.batch import Batch, Header
from rove.model.errors import DataError
from rove.model.state import Snapshot


class Output(msgspec.Struct, frozen=True):
    """The output of a step: batches that go on, late rows, and the names of batches that could not be computed, with
    the reason. Rows of the batch that came in are in open windows until the watermark `open_until`."""

    batches: tuple[Batch, ...] = ()
    late: tuple[Batch, ...] = ()
    faults: tuple[tuple[Batch, DataError], ...] = ()
    open_until: int | None = None


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
    """A stateless operator as a Logic, for driving it by itself."""

    def __init__(self, step: Stateless) -> None:
        self._step = step

    def process(self, batch: Batch) -> Output:
        data = None if batch.data is None else self._step.apply(batch.data)
        return Output((stepped(batch.header, data),))

    def watermark(self, time_us: int) -> Output:
        return NOTHING

    def snapshot(self) -> Snapshot:
        return Snapshot("stateless")

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.expect("stateless")


def late_rows(header: Header, data: pa.RecordBatch, which: pa.Array) -> Batch:
    """The late rows of a batch, under its name. They are counted as late."""
    data = data.filter(which)
    return stepped(header, data, born=data.num_rows, evicted=0, lost=0, faulted=0, late=True)


def stepped(header: Header, data: pa.RecordBatch | None, **changes: int | None) -> Batch:
    """Rows after a step, under the name of their batch."""
    rows = 0 if data is None else data.num_rows
    new = msgspec.structs.replace(header, rows=rows, **changes)
    return Batch(new, data if rows else None)
