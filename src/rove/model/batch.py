"""A batch and its name.

Law: `(origin, seq)` names a batch for ever. Batches with rows are never merged or split after their origin. An empty
batch travels as a header, and neighbouring empty batches merge into one header for `seq … through`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from rove.model.clock import MICROS_MIN
from rove.model.ids import Origin, QueryId


class HeaderKind(IntEnum):
    """The kind of a header. Links carry batches; all other kinds are entries in a node's own folders.

    A batch has rows or is empty; only `Header.rows` says which.
    """

    BATCH = 0
    INPUT = 1  # a batch in the input log of stateful operators, numbered by stage
    EXPECT = 2  # operators wait for its origin from here on, in the input from its stage
    DISMISS = 3  # operators no longer wait for its origin
    KNOW = 4  # operators accept its origin without waiting for it
    GONE = 5  # its origin has ended for good
    SPILLED = 6  # a batch that waits on the disk
    LOW_WATERMARK = 7  # without an origin: the low watermark has advanced
    SEND_STATE = 8  # operators send their state away under its origin, and end here
    AWAIT_STATE = 9  # the operator of its stage goes on with a state that comes under its origin
    STATE = 10  # a piece of state, in the input log of the operator that takes it
    NAME = 11  # the operator of its stage gives its output the name of its origin from here on
    LIFT = 12  # the operator of its stage takes its origin batch by batch, from where it begins
    BEGIN = 13  # its origin begins at a number: one less than its epoch, or anywhere if the epoch is 0
    RELEASE = 14  # the operator of its stage takes no more batches of its origin; they pass by


class Header(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What is known of a batch without its rows. Times are microseconds since 1970, UTC."""

    origin: Origin
    seq: int
    through: int  # the last seq of this header; equal to `seq` unless empty batches were merged
    watermark: int = MICROS_MIN  # the origin's promise that no older event time follows
    stage: int = 0
    query: str = ""
    epoch: int = 0
    rows: int = 0
    event_min: int | None = None
    event_max: int | None = None
    produced_at: int = 0
    born: int = 0  # rows that its seqs had at their origin, without those counted as late, evicted, lost or faulted
    evicted: int = 0  # rows of its seqs that a full store evicted
    lost: int = 0  # rows of its seqs that no node has any more
    late: bool = False  # its rows are set aside for a table of their own: late ones, or `faulted` ones
    packed: int = 0  # bytes of its rows before packing (data/store/packing); 0 if they are not packed
    folded: bool = False  # its rows are states of the window that takes them (data/operators/folded)
    kind: HeaderKind = HeaderKind.BATCH
    faulted: int = 0  # rows of its seqs that could not be computed
    state: bool = False  # its row is a piece of the state of the operator at its stage (data/fragment/migration)
    belated: int = 0  # rows of its seqs that were late for a watermark

    @property
    def at_fault(self) -> bool:
        """Whether its rows are those that could not be computed."""
        return self.late and self.faulted > 0


def without_rows(header: Header) -> Header:
    """The header of a batch whose rows are lost. Its name goes on, so that no operator waits for it."""
    lost = header.lost + header.born
    return replace(header, rows=0, born=0, lost=lost, packed=0, event_min=None, event_max=None)


class Batch(msgspec.Struct, frozen=True):
    """A header, and its rows if it has any."""

    header: Header
    data: pa.RecordBatch | None = None

    @property
    def rows(self) -> int:
        return 0 if self.data is None else int(self.data.num_rows)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as a single record batch, with or without rows."""
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in table.schema], schema=table.schema)


def named(origin: Origin, seq: int, data: pa.RecordBatch | None, watermark: int = MICROS_MIN) -> Batch:
    """A batch with a header of its origin."""
    rows = 0 if data is None else data.num_rows
    header = Header(origin=origin, seq=seq, through=seq, watermark=watermark, rows=rows, born=rows)
    return Batch(header, data if rows else None)


def empty(origin: Origin, seq: int, through: int, watermark: int) -> Batch:
    """A header for batches that have no rows."""
    return Batch(Header(origin=origin, seq=seq, through=through, watermark=watermark))


def merge_empties(batches: Iterable[Batch]) -> list[Batch]:
    """Merge neighbouring empty batches of one origin. Two runs of a query are equal after this."""
    merged: list[Batch] = []
    for batch in batches:
        last = merged[-1] if merged else None
        if (
            last is not None
            and not last.rows
            and not batch.rows
            and last.header.origin == batch.header.origin
            and last.header.through + 1 == batch.header.seq
        ):
            merged[-1] = empty(last.header.origin, last.header.seq, batch.header.through, batch.header.watermark)
        else:
            merged.append(batch)
    return merged


def of_query(header: Header, query: QueryId) -> Header:
    """A header with the name of its query. Batches that operators on their own node made carry none."""
    return header if header.query else replace(header, query=query)
