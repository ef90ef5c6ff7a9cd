"""A conversion, the core of a cast: a kernel that gives null where a value cannot be converted, and whether that can
happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import ArithmeticFault
from rove.model.schema import STRING, type_name
from rove.plan.expressions.tree import Datum

Kernel = Callable[[Datum], Datum]


@dataclass(frozen=True, slots=True)
class Conversion:
    """`convert` is the kernel of `try_cast`; `fallible` says whether it can turn a value into null."""

    convert: Kernel
    fallible: bool = False


def refuse_new_nulls(convert: Kernel, have: pa.DataType, want: pa.DataType) -> Kernel:
    """The kernel of ANSI's `cast`: a new null is an error, which names the first value that could not be cast."""

    def kernel(x: pa.Array) -> pa.Array:
        result = convert(x)
        if result.null_count != x.null_count:
            bad = x.filter(pc.and_(pc.is_null(result), pc.is_valid(x)))
            shown = repr(bad[0].as_py()) if have == STRING else pc.cast(bad.slice(0, 1), STRING)[0].as_py()
            raise ArithmeticFault(
                f"{shown} cannot be cast from {type_name(have)} to {type_name(want)}; use try_cast to get null instead"
            )
        return result

    return kernel


def plain(dtype: pa.DataType) -> Kernel:
    """Arrow's own cast, for pairs where it cannot fail."""
    return lambda x: pc.cast(x, dtype, safe=False)


def between(x: Datum, low: pa.Scalar, high: pa.Scalar) -> Datum:
    """The values within bounds, null elsewhere."""
    return only(pc.and_(pc.greater_equal(x, low), pc.less_equal(x, high)), x)


def only(mask: Datum, x: Datum) -> Datum:
    """The values where `mask` is true, null elsewhere."""
    return pc.if_else(mask, x, pa.scalar(None, x.type))


def rewrite(column: pa.Array, mask: pa.Array, replace: Callable[[str], str | None]) -> pa.Array:
    """Rewrite the texts that `mask` selects in Python, each distinct text once. Free if none is selected."""
    if not mask.true_count:
        return column
    odd = pc.unique(column.filter(mask))
    mended = pa.array([replace(text) for text in odd.to_pylist()], STRING)
    return pc.if_else(mask, mended.take(pc.index_in(column, value_set=odd)), column)
