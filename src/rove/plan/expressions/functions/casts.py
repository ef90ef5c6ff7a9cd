"""`cast` and `try_cast` between Spark's types.

Law: a conversion is written once, as its `try_cast`: null where a value cannot be cast. `cast` is the same kernel,
which then raises if a null is new. Pairs of types without a conversion are left to Spark, such as double to string,
because Java prints doubles in its own way.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import ArithmeticFault, TypeMismatch
from rove.model.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    is_spark_only,
    type_name,
)
from rove.plan.expressions.functions import moment_casts, text_casts
from rove.plan.expressions.functions.conversion import Conversion, between, plain, refuse_new_nulls
from rove.plan.expressions.functions.registry import arity, function
from rove.plan.expressions.tree import Call, Datum, Expr, Literal, literal
from rove.plan.expressions.types import Refused, is_decimal, is_fractional, is_integral, is_numeric

DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 19}


def cast(expr: Expr, dtype: pa.DataType, null_on_error: bool = False) -> Expr:
    """The expression as another type; with `null_on_error` a value that cannot be cast becomes null."""
    if expr.dtype == dtype:
        return expr
    if expr.dtype == VOID:
        return literal(None, dtype)
    template = f"{'TRY_CAST' if null_on_error else 'CAST'}({{0}} AS {type_name(dtype)})"
    name = f"{'try_cast' if null_on_error else 'cast'} to {type_name(dtype)}"
    try:
        conversion = find_conversion(expr.dtype, dtype)
    except Refused as refused:
        return Call(dtype, name, (expr,), refusal=refused.reason, template=template)
    fallible = conversion.fallible and not null_on_error
    kernel = refuse_new_nulls(conversion.convert, expr.dtype, dtype) if fallible else conversion.convert
    if isinstance(expr, Literal):
        try:
            return Literal(dtype, kernel(pa.repeat(expr.value, 1))[0])
        except (ArithmeticFault, pa.ArrowInvalid):
            pass  # kept as a call, which raises when a row needs it
    return Call(dtype, name, (expr,), kernel, fallible, template=template)


def find_conversion(have: pa.DataType, want: pa.DataType) -> Conversion:
    """The conversion from one type to another."""
    if is_spark_only(have) or is_spark_only(want) or pt.is_nested(have) or pt.is_nested(want):
        raise Refused(f"a cast from {type_name(have)} to {type_name(want)} is left to Spark")
    for applies, build in _FAMILIES:
        if applies(have, want):
            return build(have, want)
    if STRING not in (have, want) and BINARY not in (have, want) and not _castable_in_spark(have, want):
        raise TypeMismatch(f"{type_name(have)} cannot be cast to {type_name(want)}")
    raise Refused(f"a cast from {type_name(have)} to {type_name(want)} is left to Spark")


def _castable_in_spark(have: pa.DataType, want: pa.DataType) -> bool:
    moments = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
    if (have in moments and want in moments) or (is_numeric(have) and is_numeric(want)):
        return True
    numbers_and_moments = (is_numeric(have) and want == TIMESTAMP) or (have == TIMESTAMP and is_numeric(want))
    return numbers_and_moments or pt.is_duration(have) or pt.is_duration(want)


def _integer_to_integer(have: pa.DataType, want: pa.DataType) -> Conversion:
    if have.bit_width <= want.bit_width:
        return Conversion(plain(want))
    low, high = -(2 ** (want.bit_width - 1)), 2 ** (want.bit_width - 1) - 1
    return Conversion(
        lambda x: pc.cast(between(x, pa.scalar(low, have), pa.scalar(high, have)), want, safe=False), True
    )


def _integer_to_decimal(have: pa.DataType, want: pa.DataType) -> Conversion:
    wide = pa.decimal256(DIGITS[have] + want.scale, want.scale)
    fits = want.precision - want.scale >= DIGITS[have]
    return Conversion(lambda x: _fitted(pc.cast(x, wide), want), not fits)


def _fitted(wide: Datum, want: pa.DataType) -> Datum:
    """A decimal256 of the wanted scale as the wanted decimal, null where it has too many digits."""
    if wide.type.precision > want.precision:
        limit = _power_of_ten(want.precision - want.scale, wide.type.scale)
        wide = pc.if_else(pc.less(pc.abs(wide), limit), wide, pa.scalar(None, wide.type))
    return pc.cast(wide, want)


def _power_of_ten(exponent: int, scale: int) -> pa.Scalar:
    return pc.cast(pa.scalar("1" + "0" * exponent), pa.decimal256(exponent + 1 + scale, scale))


def _fraction_to_integer(have: pa.DataType, want: pa.DataType) -> Conversion:
    """Java compares with the integer bounds as floating-point numbers, so a float of 2⁶³ becomes the greatest
    bigint."""
    low, high = -(2.0 ** (want.bit_width - 1)), 2.0 ** (want.bit_width - 1)
    exact_bounds = want != BIGINT
    top = pa.scalar(2 ** (want.bit_width - 1) - 1, want)

    def convert(x: Datum) -> Datum:
        wide = pc.trunc(pc.cast(x, DOUBLE))
        below = pc.less(wide, high)
        inside = pc.and_(pc.greater_equal(wide, low), below)
        values = pc.cast(pc.if_else(inside, wide, pa.scalar(None, DOUBLE)), want, safe=False)
        return values if exact_bounds else pc.if_else(pc.equal(wide, high), top, values)

    return Conversion(convert, True)


def _decimal_to_fraction(have: pa.DataType, want: pa.DataType) -> Conversion:
    # Cast through text: Arrow's direct cast may be off by one bit, its number parser is exact.
    return Conversion(lambda x: pc.cast(pc.cast(x, STRING), want))


def rescale(have: pa.DataType, want: pa.DataType) -> Conversion:
    """Decimal to decimal, rounding half up where digits are dropped."""
    fits = want.precision - want.scale >= have.precision - have.scale + (1 if want.scale < have.scale else 0)
    if want.scale >= have.scale:
        if fits:
            return Conversion(lambda x: pc.cast(x, want))
        lifted = pa.decimal256(have.precision + want.scale - have.scale, want.scale)
        return Conversion(lambda x: _fitted(pc.cast(x, lifted), want), True)
    wide = pa.decimal256(have.precision + 1, have.scale)
    whole = pa.decimal256(max(1, have.precision + 1 - have.scale + want.scale), want.scale)

    def convert(x: Datum) -> Datum:
        rounded = pc.round(pc.cast(x, wide), want.scale, round_mode="half_towards_infinity")
        return _fitted(pc.cast(rounded, whole), want)

    return Conversion(convert, not fits)


def _decimal_to_integer(have: pa.DataType, want: pa.DataType) -> Conversion:
    whole = pa.decimal256(max(1, have.precision - have.scale), 0)
    low, high = -(2 ** (want.bit_width - 1)), 2 ** (want.bit_width - 1) - 1
    fits = whole.precision < len(str(high))

    def convert(x: Datum) -> Datum:
        cut = pc.cast(pc.trunc(pc.cast(x, pa.decimal256(have.precision, have.scale))), whole)
        if not fits:
            bounds = [pc.cast(pa.scalar(str(b)), pa.decimal256(19, 0)) for b in (low, high)]
            cut = between(cut, *bounds)
        return pc.cast(cut, want)

    return Conversion(convert, not fits)


def _to_boolean(have: pa.DataType, want: pa.DataType) -> Conversion:
    zero = pc.cast(pa.scalar("0"), have)
    return Conversion(lambda x: pc.not_equal(x, zero))


def _from_boolean(have: pa.DataType, want: pa.DataType) -> Conversion:
    if is_decimal(want):
        to_decimal = _integer_to_decimal(TINYINT, want).convert
        return Conversion(lambda x: to_decimal(pc.cast(x, TINYINT)), want.precision == want.scale)
    return Conversion(plain(want))


def _plainly(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(plain(want))


Applies = Callable[[pa.DataType, pa.DataType], bool]
_FAMILIES: tuple[tuple[Applies, Callable[[pa.DataType, pa.DataType], Conversion]], ...] = (
    (lambda a, b: is_integral(a) and is_integral(b), _integer_to_integer),
    (lambda a, b: (is_integral(a) or is_fractional(a)) and is_fractional(b), _plainly),
    (lambda a, b: is_integral(a) and is_decimal(b), _integer_to_decimal),
    (lambda a, b: is_fractional(a) and is_integral(b), _fraction_to_integer),
    (lambda a, b: is_decimal(a) and is_fractional(b), _decimal_to_fraction),
    (lambda a, b: is_decimal(a) and is_decimal(b), rescale),
    (lambda a, b: is_decimal(a) and is_integral(b), _decimal_to_integer),
    (lambda a, b: is_numeric(a) and b == BOOLEAN, _to_boolean),
    (lambda a, b: a == BOOLEAN and is_numeric(b), _from_boolean),
    (lambda a, b: (is_integral(a) or a == BOOLEAN) and b == STRING, _plainly),
    *text_casts.FAMILIES,
    *moment_casts.FAMILIES,
)


def _named(name: str, dtype: pa.DataType) -> None:
    """`int(x)` is `cast(x as int)`."""

    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 1)
        return cast(args[0], dtype)


for _type in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP):
    _named(type_name(_type), _type)
_named("decimal", pa.decimal128(10, 0))
