"""Mathematical functions.

Law: functions that IEEE 754 defines exactly are exact. The transcendental ones come from the C library, and Spark's
from Java's. Each is within one ulp of the true value, so they may differ in the last digit. Domains and nulls are
Spark's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import TypeMismatch
from rove.model.schema import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, STRING, VOID, type_name
from rove.plan.expressions.functions.arithmetic import dividing, operands, refuse_long_decimal, zero_of
from rove.plan.expressions.functions.registry import RULES, arity, coerce, function, simple
from rove.plan.expressions.tree import Call, Datum, Expr, literal
from rove.plan.expressions.types import Refused, is_decimal, is_integral, is_numeric

Kernel = Callable[..., Datum]
_NO_DOUBLE = pa.scalar(None, DOUBLE)


def above(kernel: Kernel, bound: float) -> Kernel:
    """A kernel that gives null at or below the bound, as Spark's logarithms do. NaN stays NaN."""
    return lambda x: kernel(pc.if_else(pc.less_equal(x, bound), _NO_DOUBLE, x))


simple("sqrt", (DOUBLE,), DOUBLE, pc.sqrt)
simple("exp", (DOUBLE,), DOUBLE, pc.exp)
simple("expm1", (DOUBLE,), DOUBLE, pc.expm1)
simple("ln", (DOUBLE,), DOUBLE, above(pc.ln, 0.0))
simple("log2", (DOUBLE,), DOUBLE, above(pc.log2, 0.0))
simple("log10", (DOUBLE,), DOUBLE, above(pc.log10, 0.0))
simple("log1p", (DOUBLE,), DOUBLE, above(pc.log1p, -1.0))
simple("sin", (DOUBLE,), DOUBLE, pc.sin)
simple("cos", (DOUBLE,), DOUBLE, pc.cos)
simple("tan", (DOUBLE,), DOUBLE, pc.tan)
simple("asin", (DOUBLE,), DOUBLE, pc.asin)
simple("acos", (DOUBLE,), DOUBLE, pc.acos)
simple("atan", (DOUBLE,), DOUBLE, pc.atan)
simple("sinh", (DOUBLE,), DOUBLE, pc.sinh)
simple("cosh", (DOUBLE,), DOUBLE, pc.cosh)
simple("tanh", (DOUBLE,), DOUBLE, pc.tanh)
simple("cot", (DOUBLE,), DOUBLE, lambda x: pc.divide(1.0, pc.tan(x)))
simple("sec", (DOUBLE,), DOUBLE, lambda x: pc.divide(1.0, pc.cos(x)))
simple("csc", (DOUBLE,), DOUBLE, lambda x: pc.divide(1.0, pc.sin(x)))
simple("degrees", (DOUBLE,), DOUBLE, lambda x: pc.multiply(x, 180.0 / math.pi))
simple("radians", (DOUBLE,), DOUBLE, lambda x: pc.multiply(x, math.pi / 180.0))
simple("rint", (DOUBLE,), DOUBLE, lambda x: pc.round(x, round_mode="half_to_even"))
simple("hypot", (DOUBLE, DOUBLE), DOUBLE, pc.hypot)
simple("asinh", (DOUBLE,), DOUBLE, pc.asinh)
simple("acosh", (DOUBLE,), DOUBLE, pc.acosh)
simple("atanh", (DOUBLE,), DOUBLE, pc.atanh)
# Zeros lose their sign on the way in, as in Spark.
simple("atan2", (DOUBLE, DOUBLE), DOUBLE, lambda y, x: pc.atan2(pc.add(y, 0.0), pc.add(x, 0.0)))


def _sign(x: Datum) -> Datum:
    zero = pc.equal(x, 0.0)
    return pc.if_else(zero, x, pc.sign(x))  # Arrow forgets the sign of a zero


simple("sign signum", (DOUBLE,), DOUBLE, _sign)


def _power(x: Datum, y: Datum) -> Datum:
    """C says 1 to the power of anything is 1; Java says it is NaN for NaN and for the infinities."""
    undefined = pc.or_(pc.is_nan(y), pc.and_(pc.equal(pc.abs(x), 1.0), pc.is_inf(y)))
    return pc.if_else(undefined, pa.scalar(math.nan), pc.power(x, y))


simple("pow power", (DOUBLE, DOUBLE), DOUBLE, _power)


@function("log")
def log(args: tuple[Expr, ...]) -> Expr:
    arity("log", args, 1, 2)
    if len(args) == 1:
        return RULES["ln"](args)
    base, value = (coerce(a, DOUBLE) for a in args)

    def kernel(b: Datum, x: Datum) -> Datum:
        outside = pc.or_(pc.less_equal(b, 0.0), pc.less_equal(x, 0.0))
        return pc.if_else(outside, _NO_DOUBLE, pc.divide(pc.ln(x), pc.ln(b)))

    return Call(DOUBLE, "log", (base, value), kernel)


@function("pi")
def pi(args: tuple[Expr, ...]) -> Expr:
    arity("pi", args, 0)
    return literal(math.pi, DOUBLE)


@function("e")
def e(args: tuple[Expr, ...]) -> Expr:
    arity("e", args, 0)
    return literal(math.e, DOUBLE)


@function("isnan")
def is_nan(args: tuple[Expr, ...]) -> Expr:
    """Never null: a null is not NaN."""
    arity("isnan", args, 1)
    value = args[0] if args[0].dtype == FLOAT else coerce(args[0], DOUBLE)
    return Call(BOOLEAN, "isnan", (value,), lambda x: pc.fill_null(pc.is_nan(x), False))


@function("abs")
def absolute(args: tuple[Expr, ...]) -> Expr:
    arity("abs", args, 1)
    dtype = args[0].dtype
    if not is_numeric(dtype):
        if dtype in (STRING, VOID) or pa.types.is_duration(dtype):
            raise Refused(f"abs of {type_name(dtype)} is left to Spark")
        raise TypeMismatch(f"abs needs a number, got {type_name(dtype)}")
    if is_integral(dtype):
        return Call(dtype, "abs", args, pc.abs_checked, fallible=True)
    refuse_long_decimal("abs", dtype)
    return Call(dtype, "abs", args, pc.abs)


@function("pmod")
def positive_modulo(args: tuple[Expr, ...]) -> Expr:
    a, b, dtype = operands("pmod", args)
    if is_decimal(dtype):
        raise Refused("`pmod` of decimals is left to Spark")

    wide = INT if is_integral(dtype) and dtype.bit_width < 32 else dtype  # as in Java, small integers are added as int

    def kernel(x: Datum, y: Datum) -> Datum:
        x, y = pc.cast(x, wide), pc.cast(y, wide)
        rest = pc.remainder(x, y)
        found = pc.if_else(pc.less(rest, zero_of(wide)), pc.remainder(pc.add(rest, y), y), rest)
        return pc.cast(found, dtype)

    checked, fallible = dividing(kernel, b)
    return Call(dtype, "pmod", (a, b), checked, fallible)


_FACTORIALS = pa.array([math.factorial(n) for n in range(21)], BIGINT)


def _factorial(x: Datum) -> Datum:
    inside = pc.and_(pc.greater_equal(x, 0), pc.less_equal(x, 20))
    return _FACTORIALS.take(pc.if_else(inside, x, pa.scalar(None, INT)))


simple("factorial", (INT,), BIGINT, _factorial)


@function("bit_count")
def bit_count(args: tuple[Expr, ...]) -> Expr:
    """The number of ones in 64 bits. A narrower number is widened first, which matters if it is negative."""
    arity("bit_count", args, 1)
    (value,) = args
    if value.dtype == BOOLEAN:
        return Call(INT, "bit_count", args, lambda x: pc.cast(x, INT))
    if not is_integral(value.dtype):
        raise TypeMismatch(f"bit_count needs an integer, got {type_name(value.dtype)}")
    return Call(INT, "bit_count", args, _ones)


def _unsigned(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())


def _ones(x: pa.Array) -> pa.Array:
    """Count the ones of all rows: sum pairs of bits, then groups of four, then bytes."""
    bits = pc.cast(pc.cast(x, BIGINT), pa.uint64(), safe=False)
    half = pc.bit_wise_and(pc.shift_right(bits, _unsigned(1)), _unsigned(0x5555555555555555))
    bits = pc.subtract(bits, half)
    fours = _unsigned(0x3333333333333333)
    bits = pc.add(pc.bit_wise_and(bits, fours), pc.bit_wise_and(pc.shift_right(bits, _unsigned(2)), fours))
    bits = pc.bit_wise_and(pc.add(bits, pc.shift_right(bits, _unsigned(4))), _unsigned(0x0F0F0F0F0F0F0F0F))
    return pc.cast(pc.shift_right(pc.multiply(bits, _unsigned(0x0101010101010101)), _unsigned(56)), INT)


@function("width_bucket")
def width_bucket(args: tuple[Expr, ...]) -> Expr:
    arity("width_bucket", args, 4)
    if not all(is_numeric(a.dtype) for a in args):
        raise Refused("width_bucket is for numbers at the edge", BIGINT)
    value, low, high = (coerce(a, DOUBLE) for a in args[:3])
    count = coerce(args[3], BIGINT)
    return Call(BIGINT, "width_bucket", (value, low, high, count), _bucket)


def _bucket(value: Datum, low: Datum, high: Datum, count: Datum) -> Datum:
    known = pc.and_(pc.greater(count, 0), pc.less(count, 2**63 - 1))
    for bound in (low, high):
        known = pc.and_(known, pc.is_finite(bound))
    known = pc.and_(pc.and_(known, pc.not_equal(low, high)), pc.invert(pc.is_nan(value)))
    buckets = pc.cast(count, DOUBLE, safe=False)
    rising = pc.less(low, high)
    size = pc.if_else(rising, pc.subtract(high, low), pc.subtract(low, high))
    ahead = pc.if_else(rising, pc.subtract(value, low), pc.subtract(low, value))
    before = pc.less(ahead, 0.0)
    past = pc.if_else(rising, pc.greater_equal(value, high), pc.less_equal(value, high))
    inside = pc.and_(pc.and_(known, pc.invert(before)), pc.invert(past))
    place = pc.divide(pc.multiply(buckets, ahead), size)
    found = pc.add(pc.cast(pc.floor(pc.if_else(inside, place, _NO_DOUBLE)), BIGINT, safe=False), 1)
    found = pc.if_else(before, pa.scalar(0, BIGINT), pc.if_else(past, pc.add(count, 1), found))
    return pc.if_else(known, found, pa.scalar(None, BIGINT))


def _trying(name: str, symbol: str) -> None:
    """Register `try_add` and the like: the operator, with null in place of an error."""

    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 2)
        if not all(is_numeric(a.dtype) for a in args):
            raise Refused(f"{name} is for numbers at the edge")
        found = RULES[symbol](args)
        if not isinstance(found, Call) or found.refusal or not found.args:
            raise Refused(f"{name} of these types is left to Spark", found.dtype)
        if not found.fallible:
            return Call(found.dtype, name, found.args, found.kernel)
        if is_decimal(found.dtype):
            raise Refused(f"{name} of decimals is left to Spark", found.dtype)
        return Call(found.dtype, name, found.args, _TRIED[symbol](found.dtype))


def _wide(kernel: Kernel) -> Callable[[pa.DataType], Kernel]:
    """Compute in decimals that cannot overflow, then cast back. Null where the result does not fit."""
    digits = pa.decimal256(19, 0)

    def build(dtype: pa.DataType) -> Kernel:
        top = 2 ** (dtype.bit_width - 1)
        low, high = (pc.cast(pa.scalar(str(v)), digits) for v in (-top, top - 1))

        def run(x: Datum, y: Datum) -> Datum:
            exact = kernel(pc.cast(pc.cast(x, BIGINT), digits), pc.cast(pc.cast(y, BIGINT), digits))
            inside = pc.and_(pc.greater_equal(exact, low), pc.less_equal(exact, high))
            return pc.cast(pc.if_else(inside, exact, pa.scalar(None, exact.type)), dtype)

        return run

    return build


def _without_zero(kernel: Kernel) -> Callable[[pa.DataType], Kernel]:
    from rove.plan.expressions.functions.arithmetic import hide_zero

    return lambda dtype: lambda x, y: kernel(x, hide_zero(y))


_TRIED: dict[str, Callable[[pa.DataType], Kernel]] = {
    "+": _wide(pc.add),
    "-": _wide(pc.subtract),
    "*": _wide(pc.multiply),
    "/": _without_zero(pc.divide),
    "%": _without_zero(pc.remainder),
}
for _name, _symbol in (("add", "+"), ("subtract", "-"), ("multiply", "*"), ("divide", "/"), ("mod", "%")):
    _trying(f"try_{_name}", _symbol)
