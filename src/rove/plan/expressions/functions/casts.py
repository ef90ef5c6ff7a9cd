"""`cast` and `try_cast` between Spark's types.

Law: a cast that ANSI Spark refuses raises here too. Pairs that are absent from the table below are left to Spark:
Java prints doubles in its own way, and Arrow parses some texts that Spark does not.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import ArithmeticFault, TypeMismatch
from rove.model.schema import BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID
from rove.model.schema import is_spark_only, type_name
from rove.plan.expressions.functions.masks import any_true
from rove.plan.expressions.tree import Call, Datum, Expr, Literal, literal
from rove.plan.expressions.types import Refused, is_decimal, is_fractional, is_integral, is_numeric

Kernel = Callable[[Datum], Datum]
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def cast(expr: Expr, dtype: pa.DataType, null_on_error: bool = False) -> Expr:
    """The expression as another type; with `null_on_error` a value that cannot be cast becomes null."""
    if expr.dtype == dtype:
        return expr
    if expr.dtype == VOID:
        return literal(None, dtype)
    template = f"{'TRY_CAST' if null_on_error else 'CAST'}({{0}} AS {type_name(dtype)})"
    name = f"{'try_cast' if null_on_error else 'cast'} to {type_name(dtype)}"
    try:
        kernel, fallible = cast_kernel(expr.dtype, dtype)
        if null_on_error and fallible:
            raise Refused(f"try_cast from {type_name(expr.dtype)} to {type_name(dtype)} is left to Spark")
    except Refused as refused:
        return Call(dtype, name, (expr,), refusal=refused.reason, template=template)
    if isinstance(expr, Literal) and not fallible:
        return Literal(dtype, kernel(pa.array([expr.value.as_py()], expr.dtype))[0])
    return Call(dtype, name, (expr,), kernel, fallible, template=template)


def cast_kernel(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    """The kernel for a pair of types, and whether some value can make it raise."""
    if is_spark_only(have) or is_spark_only(want):
        raise Refused(f"a cast from {type_name(have)} to {type_name(want)} is left to Spark")
    for applies, family in _FAMILIES:
        if applies(have, want):
            return family(have, want)
    if pt.is_nested(have) or pt.is_nested(want):
        raise Refused(f"a cast from {type_name(have)} to {type_name(want)} is left to Spark")
    if STRING not in (have, want) and BINARY not in (have, want) and not _castable_in_spark(have, want):
        raise TypeMismatch(f"{type_name(have)} cannot be cast to {type_name(want)}")
    raise Refused(f"a cast from {type_name(have)} to {type_name(want)} is left to Spark")


def _castable_in_spark(have: pa.DataType, want: pa.DataType) -> bool:
    temporal = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    if have in temporal and want in temporal:
        return True
    numbers_and_moments = is_numeric(have) and want == TIMESTAMP or have == TIMESTAMP and is_numeric(want)
    return numbers_and_moments or pt.is_duration(have) or pt.is_duration(want)


def plain(dtype: pa.DataType) -> Kernel:
    """Arrow's own cast, for pairs where it cannot fail."""
    return lambda x: pc.cast(x, dtype, safe=False)


def _integer_to_integer(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    if have.bit_width <= want.bit_width:
        return plain(want), False
    return lambda x: pc.cast(x, want), True


def _integer_to_decimal(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    wide = pa.decimal256(DIGITS[have] + want.scale, want.scale)
    fits = want.precision - want.scale >= DIGITS[have]
    return lambda x: pc.cast(pc.cast(x, wide), want), not fits


def _fraction_to_integer(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    low, high = -(2.0 ** (want.bit_width - 1)), 2.0 ** (want.bit_width - 1)

    def kernel(x: Datum) -> Datum:
        wide = pc.trunc(pc.cast(x, DOUBLE))
        inside = pc.and_(pc.greater_equal(wide, low), pc.less(wide, high))
        if any_true(pc.invert(inside)):  # NaN is not inside either
            raise ArithmeticFault(f"a {type_name(have)} value is outside the range of {type_name(want)}")
        return pc.cast(wide, want, safe=False)

    return kernel, True


def _decimal_to_fraction(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    # Through text: Arrow's direct cast may be off by a bit, its number parser is exact.
    return lambda x: pc.cast(pc.cast(x, STRING), want), False


def rescale(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    """Decimal to decimal, rounding half up where digits go."""
    fits = want.precision - want.scale >= have.precision - have.scale + (1 if want.scale < have.scale else 0)
    if want.scale >= have.scale:
        return lambda x: pc.cast(x, want), not fits
    wide = pa.decimal256(have.precision + 1, have.scale)

    def kernel(x: Datum) -> Datum:
        rounded = pc.round(pc.cast(x, wide), want.scale, round_mode="half_towards_infinity")
        return pc.cast(rounded, want)

    return kernel, not fits


def _decimal_to_integer(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    return lambda x: pc.cast(pc.trunc(x), want), True


def _to_boolean(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    zero = pa.scalar(0).cast(have)
    return lambda x: pc.not_equal(x, zero), False


def _from_boolean(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    if is_decimal(want):
        to_decimal, fallible = _integer_to_decimal(pa.int8(), want)
        return lambda x: to_decimal(pc.cast(x, pa.int8())), fallible
    return plain(want), False


def _plainly(have: pa.DataType, want: pa.DataType) -> tuple[Kernel, bool]:
    return plain(want), False


Applies = Callable[[pa.DataType, pa.DataType], bool]
Family = Callable[[pa.DataType, pa.DataType], tuple[Kernel, bool]]
_FAMILIES: tuple[tuple[Applies, Family], ...] = (
    (lambda a, b: is_integral(a) and is_integral(b), _integer_to_integer),
    (lambda a, b: (is_integral(a) or is_fractional(a)) and is_fractional(b), _plainly),
    (lambda a, b: is_integral(a) and is_decimal(b), _integer_to_decimal),
    (lambda a, b: is_fractional(a) and is_integral(b), _fraction_to_integer),
    (lambda a, b: is_decimal(a) and is_fractional(b), _decimal_to_fraction),
    (lambda a, b: is_decimal(a) and is_decimal(b), rescale),
    (lambda a, b: is_decimal(a) and is_integral(b), _decimal_to_integer),
    (lambda a, b: is_numeric(a) and b == BOOLEAN, _to_boolean),
    (lambda a, b: a == BOOLEAN and is_numeric(b), _from_boolean),
    (lambda a, b: (is_integral(a) or a in (BOOLEAN, DATE)) and b == STRING, _plainly),
    (lambda a, b: a == STRING and b == BINARY, _plainly),
    (lambda a, b: a == DATE and b in (TIMESTAMP, TIMESTAMP_NTZ), _plainly),
    (lambda a, b: {a, b} == {TIMESTAMP, TIMESTAMP_NTZ}, _plainly),
)
