"""`round`, `bround`, `ceil` and `floor`.

Law: Spark rounds a double as the decimal number that Java prints for it, half up or half even. So the digits are
rounded here, not the binary value. Results that do not fit their type raise.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import ArithmeticFault, TypeMismatch
from rove.model.schema import BIGINT, DOUBLE, FLOAT, INT, STRING, VOID, type_name
from rove.plan.expressions.functions.arithmetic import Kernel, bounded_decimal
from rove.plan.expressions.functions.masks import any_true
from rove.plan.expressions.functions.registry import arity, coerce, constant, function
from rove.plan.expressions.tree import Call, Datum, Expr, Literal, literal
from rove.plan.expressions.types import Refused, is_decimal, is_fractional, is_integral, is_numeric

PLACES_MAX = 15
_TIE_MARGIN = 1e-3  # a double below 2⁴⁰ is known to a quarter of this
_WIDE = pa.decimal256(76, 50)


def _rounding(name: str, mode: str) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 1, 2)
        value = args[0]
        scale = args[1] if len(args) == 2 else literal(0, INT)
        if not isinstance(scale, Literal):
            raise TypeMismatch(f"the second argument of {name} must be a constant")
        places = constant(coerce(scale, INT), f"the scale of {name}")
        if not isinstance(places, int) or value.dtype in (STRING, VOID):
            raise Refused(f"{name} of these arguments is left to Spark")
        if not is_numeric(value.dtype):
            raise TypeMismatch(f"{name} needs a number, got {type_name(value.dtype)}")
        if is_fractional(value.dtype):
            return Call(value.dtype, name, (value, scale), _fraction(value.dtype, places, mode))
        if is_decimal(value.dtype):
            return _decimal(name, value, scale, places, mode)
        return _integer(name, value, scale, places, mode)


def _fraction(dtype: pa.DataType, places: int, mode: str) -> Kernel:
    """Round doubles. Doubles past 2⁵² are whole, doubles far below the last place are zero, others are rounded by their
    digits."""
    if not 0 <= places <= PLACES_MAX:
        # Java 17 prints doubles past 2⁵³ with other digits, and rounding to tens would show the difference.
        raise Refused(f"doubles are rounded to 0 to {PLACES_MAX} places at the edge", dtype)
    largest, least = 2.0**53, 10.0 ** (-places - 2)

    def by_digits(x: pa.Array) -> pa.Array:
        size = pc.abs(x)
        inside = pc.and_(pc.less(size, largest), pc.greater_equal(size, least))
        # A float is rounded by the digits of the equal double.
        digits = pc.cast(pc.cast(pc.if_else(inside, x, pa.scalar(0.0, dtype)), DOUBLE), STRING)
        exact = pc.cast(pc.if_else(pc.less(size, 1e-25), "0", digits), _WIDE)
        rounded = pc.round(exact, places, round_mode=mode)
        found = pc.cast(pc.cast(rounded, STRING), dtype)
        # Whole already, infinite, or NaN: as it is. A zero that came from digits has no sign.
        return pc.if_else(pc.or_(pc.greater_equal(size, largest), pc.is_nan(x)), x, found)

    if dtype == FLOAT:
        return lambda x, _: by_digits(x)
    power = 10.0**places

    def kernel(x: Datum, _: Datum) -> Datum:
        scaled = pc.multiply(pc.abs(x), power)
        down = pc.floor(scaled)
        off_tie = pc.greater(pc.abs(pc.subtract(pc.subtract(scaled, down), 0.5)), _TIE_MARGIN)
        # Away from a tie the digits agree, and a whole number below 2⁵³ over a power of ten is exact.
        clear = pc.fill_null(pc.and_(off_tie, pc.less(scaled, 2.0**40)), True)
        whole = pc.floor(pc.add(scaled, 0.5))
        size = pc.divide(whole, power)
        signed = pc.if_else(pc.and_(pc.less(x, 0.0), pc.greater(whole, 0.0)), pc.negate(size), size)
        if clear.true_count == len(clear):
            return signed
        rest = pc.invert(clear)
        return pc.replace_with_mask(signed, rest, by_digits(x.filter(rest)))

    return kernel


def _decimal(name: str, value: Expr, scale: Expr, places: int, mode: str) -> Expr:
    have = value.dtype
    kept = max(0, min(places, have.scale))
    whole = have.precision - have.scale + 1
    precision = max(whole, -places + 1) if places < 0 else whole + kept
    result = pa.decimal128(min(38, precision), kept)
    if precision > 38 or have.precision > 37:
        raise Refused(f"{name} of {type_name(have)} needs more than 38 digits", result)
    wide = pa.decimal256(have.precision + 1 + max(0, -places), have.scale)
    exact = pa.decimal256(precision, kept)

    def kernel(x: Datum, _: Datum) -> Datum:
        rounded = pc.round(pc.cast(x, wide), places, round_mode=mode) if places < have.scale else pc.cast(x, wide)
        return pc.cast(pc.cast(rounded, exact), result)

    return Call(result, name, (value, scale), kernel)


def _integer(name: str, value: Expr, scale: Expr, places: int, mode: str) -> Expr:
    dtype = value.dtype
    if places >= 0:
        return Call(dtype, name, (value, scale), lambda x, _: x)
    if places < -30:
        raise Refused(f"integers are rounded to at most 30 places at the edge", dtype)  # noqa: F541
    top = 2 ** (dtype.bit_width - 1)
    low, high = (pc.cast(pa.scalar(str(v)), pa.decimal256(19, 0)) for v in (-top, top - 1))

    def kernel(x: Datum, _: Datum) -> Datum:
        rounded = pc.round(pc.cast(pc.cast(x, BIGINT), pa.decimal256(60, 0)), places, round_mode=mode)
        if any_true(pc.or_(pc.less(rounded, low), pc.greater(rounded, high))):
            raise ArithmeticFault(f"{name} leaves the range of {type_name(dtype)}")
        return pc.cast(rounded, dtype)

    return Call(dtype, name, (value, scale), kernel, fallible=True)


_rounding("round", "half_towards_infinity")
_rounding("bround", "half_to_even")


def _whole(names: tuple[str, ...], kernel: Kernel) -> None:
    @function(*names)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(names[0], args, 1, 2)
        value = args[0]
        if len(args) == 2:
            raise Refused(f"{names[0]} to a number of places is left to Spark")
        if value.dtype in (STRING, VOID):
            raise Refused(f"{names[0]} of {type_name(value.dtype)} is left to Spark", BIGINT)
        if is_integral(value.dtype):
            return Call(BIGINT, names[0], (coerce(value, BIGINT),), lambda x: x)
        if is_decimal(value.dtype):
            have = value.dtype
            result = bounded_decimal(have.precision - have.scale + 1, 0)
            wide = pa.decimal256(have.precision + 1, have.scale)
            exact = pa.decimal256(result.precision, 0)
            return Call(result, names[0], args, lambda x: pc.cast(pc.cast(kernel(pc.cast(x, wide)), exact), result))
        if value.dtype not in (FLOAT, DOUBLE):
            raise TypeMismatch(f"{names[0]} needs a number, got {type_name(value.dtype)}")
        return Call(BIGINT, names[0], (coerce(value, DOUBLE),), lambda x: to_bigint(kernel(x)), fallible=True)


def to_bigint(x: Datum) -> Datum:
    """Whole doubles as bigint; NaN is 0, as Java has it."""
    outside = pc.or_(pc.less(x, -(2.0**63)), pc.greater_equal(x, 2.0**63))
    if any_true(outside):
        raise ArithmeticFault("a double is outside the range of bigint")
    return pc.cast(pc.if_else(pc.is_nan(x), pa.scalar(0.0), x), BIGINT, safe=False)


_whole(("ceil", "ceiling"), pc.ceil)
_whole(("floor",), pc.floor)
