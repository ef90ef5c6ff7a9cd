"""The interface of a running operator.

Law: a Logic is a state machine without IO. `process` takes one batch and returns output. `watermark` says that no older
event time will follow from any of its origins. `snapshot` and `restore` move its state to another object at once;
`beginning`, `pieces`, `begin` and `merge` move it to another node while rows flow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

import msgspec
import pyarrow as pa

from rove.data.operators.pieces import Piece
from rove.model.batch import Batch, Header
from rove.model.clock import END
from rove.model.errors import DataError, StateError
from rove.model.ids import Origin
from rove.model.state import Snapshot


class Output(msgspec.Struct, frozen=True):
    """The output of a step: batches that go on, late rows, and the names of batches that could not be computed, with
    the reason. Rows of the input batch stay in open windows until the watermark `open_until`."""

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

    def beginning(self) -> Snapshot:
        """The part of the state that an operator needs on another node before it can take rows there."""

    def pieces(self) -> Iterator[Piece]:
        """The rest of the state, to be merged in on the other node."""

    def complete_until(self, pane: int) -> int:
        """The watermark up to which all output can be emitted once the state of all panes below this one has
        arrived."""

    def begin(self, snapshot: Snapshot) -> None:
        """Start from the `beginning` of another node's state, and wait for its pieces."""

    def merge(self, snapshot: Snapshot) -> None:
        """Merge in the state of a piece. Pieces come in order."""

    def rename(self, origin: Origin) -> Output:
        """Give the output another name from now on. Returns a header for the numbers below the next one, if any."""


class Stateless(Protocol):
    """A running operator without state: rows in, rows out, the batch's name kept."""

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch: ...


class MovesAtOnce(ABC):
    """An operator whose state is small: all of it is in the beginning, and no piece follows."""

    @abstractmethod
    def snapshot(self) -> Snapshot: ...

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None: ...

    def beginning(self) -> Snapshot:
        return self.snapshot()

    def pieces(self) -> Iterator[Piece]:
        return iter(())

    def complete_until(self, pane: int) -> int:
        return END

    def begin(self, snapshot: Snapshot) -> None:
        self.restore(snapshot)

    def merge(self, snapshot: Snapshot) -> None:
        raise StateError("this state comes at once; a piece of it cannot come later")

    def rename(self, origin: Origin) -> Output:
        raise StateError(f"batches keep their names in this operator; it cannot give them the name of `{origin}`")


class StatelessLogic(MovesAtOnce):
    """A stateless operator behind the interface of a Logic."""

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
    return stepped(header, data, born=data.num_rows, evicted=0, lost=0, faulted=0, belated=0, late=True)


def stepped(header: Header, data: pa.RecordBatch | None, **changes: int | None) -> Batch:
    """Rows after a step, under the name of their batch."""
    rows = 0 if data is None else data.num_rows
    new = msgspec.structs.replace(header, rows=rows, **changes)
    return Batch(new, data if rows else None)
