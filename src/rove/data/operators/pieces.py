"""The state of an operator in pieces, as it is sent to another node.

Law: pieces arrive in the order of panes. A piece says up to which pane the state is complete with it, so a window can
close before later pieces are there. Rows that arrive meanwhile for a pane whose state is missing are kept behind it,
in their order. So the state is the same as if the operator had never moved, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa

from rove.model.ids import Origin
from rove.model.state import Snapshot

T = TypeVar("T")

PIECE_ROWS = 16_384  # parts are gathered up to this number of rows
PART_ROWS_MAX = 262_144  # a larger part is cut; smaller ones stay whole, because sums are added part by part
PIECE_BYTES_MAX = 16 * 1024 * 1024  # the same for bytes: a link refuses a piece that is too large, and it would be lost
WHOLE = 2**62  # a pane after all others: the state is complete
UNTIL = "until"  # the fact of a piece that names the first pane whose state has not come


class Behind(Generic[T]):
    """Rows for panes whose state has not arrived yet. `until` is the first such pane."""

    def __init__(self) -> None:
        self.until = WHOLE
        self._parts: list[tuple[int, Origin, T]] = []

    def keeps(self, number: int, origin: Origin, part: T) -> bool:
        """Keep a part of a pane whose state has not arrived. False if it has."""
        if number < self.until:
            return False
        self._parts.append((number, origin, part))
        return True

    def come(self, until: int) -> list[tuple[int, Origin, T]]:
        """Note that the state of all panes below `until` has arrived. Returns the parts that were kept for them, in
        order."""
        self.until = until
        ready = [each for each in self._parts if each[0] < until]
        self._parts = [each for each in self._parts if each[0] >= until]
        return ready


class Piece(NamedTuple):
    """A piece of state. After it, the state of all panes below `until` has arrived."""

    until: int
    state: Snapshot


def first_pane(occupied: Iterable[int]) -> int:
    """The first pane with state, `WHOLE` if there is none."""
    return next(iter(occupied), WHOLE)


def pieces(kind: str, occupied: Iterable[int], of: Callable[[int], Mapping[str, pa.Table]]) -> Iterator[Piece]:
    """The state of the `occupied` panes, the oldest first, in pieces of bounded size. `of` gives the tables of a pane;
    a table keeps the record batches that it was made of."""
    until = WHOLE
    for number, following in pairwise((*occupied, WHOLE)):
        parts = [(name, part) for name, table in of(number).items() for part in _parts(table)]
        for place, (name, part) in enumerate(parts, 1):
            until = following if place == len(parts) else number
            yield Piece(until, Snapshot(kind, {UNTIL: until}, {name: part}))
    if until != WHOLE:  # the last pane had no rows
        yield Piece(WHOLE, Snapshot(kind, {UNTIL: WHOLE}))


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """A table in parts of a bounded number of rows and bytes."""
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in table.to_batches():
        for part in _cut(batch):
            if gathered and (rows + part.num_rows > PIECE_ROWS or size + part.nbytes > PIECE_BYTES_MAX):
                yield pa.Table.from_batches(gathered, table.schema)
                gathered, rows, size = [], 0, 0
            gathered.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
    if gathered:
        yield pa.Table.from_batches(gathered, table.schema)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in halves, until each is small enough. One row is not cut."""
    rows = batch.num_rows
    if rows > 1 and (rows > PART_ROWS_MAX or batch.nbytes > PIECE_BYTES_MAX):
        yield from _cut(batch.slice(0, rows // 2))
        yield from _cut(batch.slice(rows // 2))
    elif rows:
        yield batch
