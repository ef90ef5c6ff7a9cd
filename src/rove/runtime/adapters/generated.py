"""Rows made up from a seed.

Law: batch n of a source is a function of the seed, the source's name, its rows a batch and n; nothing else, on any
machine.
"""

from __future__ import annotations

from hashlib import shake_128

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import SetupError
from rove.model.schema import type_name

WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "oak", "pine")
_SHIFTS = 16_384  # places of the pool where a batch may begin
_STRIDE = 7_919  # from one batch to the next; it shares no factor with the places, so all of them have their turn


def columns_made_up(schema: pa.Schema) -> None:
    """Refuse columns of types that cannot be generated."""
    for column in schema:
        if not (_is_moment(column.type) or _is_number(column.type) or column.type in (pa.string(), pa.bool_())):
            raise SetupError(
                f"column `{column.name}` is {type_name(column.type)}, which cannot be generated; numbers, strings, "
                "booleans, dates and timestamps can"
            )


class Maker:
    """Makes the batches of one source.

    Values are drawn once, into a pool a little longer than a batch, and a batch is a slice of it: no copy, and no work
    a row. Where the slice begins differs from batch to batch, so values come again only after thousands of batches.
    Moments are not drawn. They follow one another, which costs an addition a batch.
    """

    def __init__(self, schema: pa.Schema, rows: int, seed: str, start_us: int, step_us: int) -> None:
        self._schema, self._rows, self._start_us, self._step_us = schema, rows, start_us, step_us
        self._drawn: dict[int, pa.Array] = {}
        self._moments: dict[int, pa.DataType] = {}
        for at, column in enumerate(schema):
            if _is_moment(column.type):
                self._moments[at] = column.type
            else:
                self._drawn[at] = _drawn(_noise(f"{seed} {at}", _SHIFTS + rows), column.type)
        self._since = pc.multiply(pa.array(range(rows), pa.int64()), step_us)

    def batch(self, number: int) -> pa.RecordBatch:
        """Batch `number`."""
        begins = number * _STRIDE % _SHIFTS
        arrays = {at: pool.slice(begins, self._rows) for at, pool in self._drawn.items()}
        if self._moments:
            first = pa.scalar(self._start_us + number * self._rows * self._step_us, pa.int64())
            micros = pc.add(self._since, first)
            arrays |= {at: _moments(micros, dtype) for at, dtype in self._moments.items()}
        return pa.RecordBatch.from_arrays([arrays[at] for at in range(len(arrays))], schema=self._schema)


def _noise(seed: str, count: int) -> pa.Array:
    """Random bytes, as small numbers."""
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(shake_128(seed.encode()).digest(count))])


def _drawn(noise: pa.Array, dtype: pa.DataType) -> pa.Array:
    small = pc.bit_wise_and(noise, pa.scalar(0x7F, pa.uint8()))  # fits the smallest integer type
    if dtype == pa.string():
        return pa.array(WORDS).take(pc.bit_wise_and(noise, pa.scalar(0x07, pa.uint8())))
    if dtype == pa.bool_():
        return pc.greater(noise, pa.scalar(127, pa.uint8()))
    if pa.types.is_floating(dtype):
        return pc.divide(pc.cast(small, pa.float64()), 8.0).cast(dtype)  # sums are exact in any order of addition
    if pa.types.is_decimal(dtype):
        digits = dtype.precision - dtype.scale
        return pc.cast(pc.bit_wise_and(small, pa.scalar(0x07 if digits < 3 else 0x7F, pa.uint8())), dtype)
    return small.cast(dtype)


def _moments(micros: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_date(dtype):
        return pc.cast(micros.view(pa.timestamp("us")), dtype, safe=False)
    return micros.view(dtype)  # all timestamps count microseconds


def _is_moment(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype))


def _is_number(dtype: pa.DataType) -> bool:
    decimal = pa.types.is_decimal(dtype) and dtype.precision > dtype.scale
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or decimal)
