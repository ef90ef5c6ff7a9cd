"""Rows made up from a seed.

Law: batch n of a source is a function of the seed, the source's name and n; nothing else, on any machine.
"""

from __future__ import annotations

from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import SetupError
from rove.model.schema import type_name

WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "oak", "pine")
_HASH_BYTES = 64


def columns_made_up(schema: pa.Schema) -> None:
    """Refuse columns of types that cannot be made up."""
    for column in schema:
        if not (_is_moment(column.type) or _is_number(column.type) or column.type in (pa.string(), pa.bool_())):
            raise SetupError(
                f"column `{column.name}` is {type_name(column.type)}, which cannot be generated; numbers, strings, "
                "booleans, dates and timestamps can"
            )


def made_up(schema: pa.Schema, rows: int, number: int, seed: str, start_us: int, step_us: int) -> pa.RecordBatch:
    """Batch `number`: moments follow one another, everything else is drawn."""
    first = number * rows
    arrays = []
    for at, column in enumerate(schema):
        if _is_moment(column.type):
            moments = pa.array(range(start_us + first * step_us, start_us + (first + rows) * step_us, step_us))
            arrays.append(_moments(moments, column.type))
        else:
            arrays.append(_drawn(_noise(f"{seed} {number} {at}", rows), column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _noise(seed: str, count: int) -> pa.Array:
    """Bytes without a pattern, as small numbers."""
    key = blake2b(seed.encode(), digest_size=32).digest()
    blocks = (
        blake2b(n.to_bytes(8, "little"), key=key, digest_size=_HASH_BYTES).digest()
        for n in range(-(-count // _HASH_BYTES))
    )
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(b"".join(blocks))])


def _drawn(noise: pa.Array, dtype: pa.DataType) -> pa.Array:
    small = pc.bit_wise_and(noise, pa.scalar(0x7F, pa.uint8()))  # fits the smallest of the numbers
    if dtype == pa.string():
        return pa.array(WORDS).take(pc.bit_wise_and(noise, pa.scalar(0x07, pa.uint8())))
    if dtype == pa.bool_():
        return pc.greater(noise, pa.scalar(127, pa.uint8()))
    if pa.types.is_floating(dtype):
        return pc.divide(pc.cast(small, pa.float64()), 8.0).cast(dtype)  # exact in every order of addition
    if pa.types.is_decimal(dtype):
        digits = dtype.precision - dtype.scale
        return pc.cast(pc.bit_wise_and(small, pa.scalar(0x07 if digits < 3 else 0x7F, pa.uint8())), dtype)
    return small.cast(dtype)


def _moments(micros: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_date(dtype):
        return pc.cast(pc.cast(micros, pa.timestamp("us")), dtype, safe=False)
    return pc.cast(micros, dtype)


def _is_moment(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype))


def _is_number(dtype: pa.DataType) -> bool:
    decimal = pa.types.is_decimal(dtype) and dtype.precision > dtype.scale
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or decimal)
