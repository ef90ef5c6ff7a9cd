"""The bounds of the numbers that peers send.

Law: every number of a message is checked before it is used, so that no arithmetic on it can leave 64 bits, which is
all that messages, logs and Arrow can hold. Sums of checked numbers stop at a bound (`saturated`). Numbers on a disk may
have been written before they were checked: a header from there is `mended`, and nothing ends because of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from rove.model.batch import Header, HeaderKind
from rove.model.errors import BadName, ProtocolError
from rove.model.ids import check_origin, checked_name

SEQ_MAX = 2**62  # a bound for numbers and times
BATCH_ROWS_MAX = 2**32  # rows of one batch
HEADER_ROWS_MAX = 2**40  # rows that one header counts; it may stand for many batches
SUM_MAX = 2**48  # where sums of rows stop; so sums over thousands of nodes fit 64 bits too
PACKED_BYTES_MAX = SEQ_MAX  # bytes of rows before packing; credit and the size of a frame bound them further


def counted(header: Header) -> int:
    """The rows of its seqs that a header counts, whatever became of them."""
    return header.born + header.evicted + header.lost + header.faulted + header.belated


def countable(header: Header) -> bool:
    """Whether an origin can give the counts of a header. Pieces of state count no rows. O(1)."""
    counts = (header.born, header.evicted, header.lost, header.faulted, header.belated)
    if min(header.rows, header.packed, *counts) < 0:
        return False
    total = sum(counts)
    if header.state:
        return not total and not header.packed and header.rows <= 1
    # A header that was split keeps its counts under its first number, so one number may count for many batches.
    return header.rows <= BATCH_ROWS_MAX and total <= HEADER_ROWS_MAX and header.packed < PACKED_BYTES_MAX


def mended(header: Header) -> Header:
    """A header from a disk, where it may be from before its numbers were checked. Counts that cannot be are left out;
    its name and its rows stay. O(1)."""
    if countable(header):
        return header
    return replace(header, born=0, evicted=0, lost=0, faulted=0, belated=0)


def saturated(number: int) -> int:
    """A sum of rows within its bounds."""
    return min(max(number, 0), SUM_MAX)


def check_header(header: Header) -> None:
    """Refuse a header that no origin gives: its names and numbers would do harm wherever they are used."""
    if header.kind is not HeaderKind.BATCH:
        raise ProtocolError("malformed", f"a header of kind {header.kind.name}; links carry batches alone")
    try:
        check_origin(header.origin)
        checked_name(header.query, "a query")
    except BadName as error:
        raise ProtocolError("malformed", str(error)) from error
    if not 0 <= header.seq <= header.through < SEQ_MAX:
        raise ProtocolError(
            "malformed", f"`{header.origin}` {header.seq} to {header.through} is not a range of batches"
        )
    if header.rows and header.seq != header.through:
        raise ProtocolError("malformed", f"`{header.origin}` {header.seq} has rows and stands for several batches")
    if header.state and (header.late or header.folded):
        raise ProtocolError("malformed", f"`{header.origin}` {header.seq} is a piece of state and of a table at once")
    if not countable(header):
        raise ProtocolError("malformed", f"`{header.origin}` {header.seq} counts rows that no origin gives")
    numbers = (header.watermark, header.event_min or 0, header.event_max or 0, header.produced_at)
    if any(not -SEQ_MAX <= number <= SEQ_MAX for number in (*numbers, header.stage, header.epoch)):
        raise ProtocolError("malformed", f"`{header.origin}` {header.seq} carries an impossible time or number")


def check_numbers(message: msgspec.Struct) -> None:
    """Refuse a message of a link with a number that no honest peer sends. O(fields)."""
    for field in message.__struct_fields__:
        value = getattr(message, field)
        if isinstance(value, int) and not 0 <= value <= SEQ_MAX:
            raise ProtocolError("malformed", f"`{field}` of {type(message).__name__} is {value}, which cannot be")


def within(numbers: Iterable[int], most: int) -> bool:
    """Whether all numbers are between 0 and the `most`."""
    return all(0 <= number <= most for number in numbers)
