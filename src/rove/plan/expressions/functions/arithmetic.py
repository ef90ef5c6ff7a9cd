"""`+ - * / % div`, negation and bits, with ANSI's errors: overflow and division by zero raise.

Law: the result's type is Spark's; an integer never wraps, a decimal never rounds where Spark would not.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import ArithmeticFault, TypeMismatch
from rove.model.schema import BIGINT, DAY_TIME, DECIMAL_DIGITS_MAX, DOUBLE, INT, VOID, YEAR_MONTH, type_name
from rove.plan.expressions.functions.masks import any_true, both_valid
from rove.plan.expressions.functions.registry import RULES, arity, coerce, function
from rove.plan.expressions.tree import Call, Datum, Expr, Literal
from rove.plan.expressions.types import (
    MINIMUM_ADJUSTED_SCALE,
    Refused,
    common_type,
    decimal_of,
    is_decimal,
    is_fractional,
    is_integral,
    is_numeric,
)

Kernel = Callable[..., Datum]


def operands(symbol: str, args: tuple[Expr, ...]) -> tuple[Expr, Expr, pa.DataType]:
    """Both sides of an arithmetic operator, cast to the type Spark computes in. Decimals keep their own scales."""
    arity(f"`{symbol}`", args, 2)
    a, b = args
    for side in args:
        if not is_numeric(side.dtype) and side.dtype != VOID:
            if pt.is_string(side.dtype):
                raise Refused(f"Spark would cast a string beside `{symbol}`; cast explicitly")
            if pt.is_boolean(side.dtype) or pt.is_nested(side.dtype) or pt.is_binary(side.dtype):
                raise TypeMismatch(f"`{symbol}` needs numbers, got {type_name(a.dtype)} and {type_name(b.dtype)}")
            raise Refused(f"`{symbol}` of {type_name(a.dtype)} and {type_name(b.dtype)} is left to Spark")
    decimals = is_decimal(a.dtype) or is_decimal(b.dtype)
    if decimals and not is_fractional(a.dtype) and not is_fractional(b.dtype) and VOID not in (a.dtype, b.dtype):
        a, b = coerce(a, decimal_of(a)), coerce(b, decimal_of(b))
        return a, b, a.dtype
    dtype = common_type([a.dtype, b.dtype])
    if dtype == VOID:
        raise Refused(f"`{symbol}` of untyped nulls is folded by Spark")
    return coerce(a, dtype), coerce(b, dtype), dtype


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """The decimal type of a result. Past 38 digits Spark drops fraction digits, which Arrow cannot do."""
    if precision <= DECIMAL_DIGITS_MAX:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    kept = max(DECIMAL_DIGITS_MAX - whole, min(scale, MINIMUM_ADJUSTED_SCALE))
    raise Refused("the exact result has more than 38 digits; Spark rounds it", pa.decimal128(DECIMAL_DIGITS_MAX, kept))


def _additive(name: str, symbol: str, checked: Kernel, plain: Kernel) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        if any(pt.is_temporal(a.dtype) or a.dtype == YEAR_MONTH for a in args):
            return RULES[f"temporal_{name}"](args)
        a, b, dtype = operands(symbol, args)
        template = f"({{0}} {symbol} {{1}})"
        if is_decimal(dtype):
            left, right = a.dtype, b.dtype
            scale = max(left.scale, right.scale)
            digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
            result = bounded_decimal(digits, scale)
            return Call(result, name, (a, b), _decimal_kernel(plain, result), template=template)
        if is_fractional(dtype):
            return Call(dtype, name, (a, b), plain, template=template)
        return Call(dtype, name, (a, b), checked, fallible=True, template=template)


_additive("+", "+", pc.add_checked, pc.add)
_additive("-", "-", pc.subtract_checked, pc.subtract)


def _decimal_kernel(plain: Kernel, result: pa.DataType) -> Kernel:
    """Arrow's result type is the same as Spark's, except for the precision of scalars."""
    return lambda a, b: pc.cast(plain(a, b), result)


@function("*")
def multiply(args: tuple[Expr, ...]) -> Expr:
    if any(pt.is_duration(a.dtype) for a in args):
        raise Refused("intervals are multiplied by Spark", DAY_TIME)
    a, b, dtype = operands("*", args)
    if is_decimal(dtype):
        result = bounded_decimal(a.dtype.precision + b.dtype.precision + 1, a.dtype.scale + b.dtype.scale)
        return Call(result, "*", (a, b), _decimal_kernel(pc.multiply, result), template="({0} * {1})")
    if is_fractional(dtype):
        return Call(dtype, "*", (a, b), pc.multiply, template="({0} * {1})")
    return Call(dtype, "*", (a, b), pc.multiply_checked, fallible=True, template="({0} * {1})")


def zero_of(dtype: pa.DataType) -> pa.Scalar:
    """A zero of this type. It is cast from text, because Arrow does not cast an integer to a narrow decimal."""
    return pc.cast(pa.scalar("0"), dtype)


def refuse_zero(dividend: Datum, divisor: Datum) -> None:
    """Division by zero raises, but only where both sides have a value."""
    zero = pc.equal(divisor, zero_of(divisor.type))
    if any_true(zero) and any_true(pc.and_(pc.fill_null(zero, False), both_valid(dividend, divisor))):
        raise ArithmeticFault("division by zero; guard it with `case when`, `nullif` or `try_divide`")


def hide_zero(divisor: Datum) -> Datum:
    """Replace zeros by null, for kernels that would raise on a zero divisor even where the dividend is null."""
    return pc.if_else(pc.equal(divisor, zero_of(divisor.type)), pa.scalar(None, divisor.type), divisor)


def _never_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value.is_valid and expr.value.as_py() != 0


def dividing(kernel: Kernel, divisor: Expr) -> tuple[Kernel, bool]:
    """A kernel that raises on a zero divisor, and whether it can raise. A literal divisor is checked once, here."""
    if _never_zero(divisor):
        return kernel, False

    def checked(a: Datum, b: Datum) -> Datum:
        refuse_zero(a, b)
        return kernel(a, hide_zero(b))

    return checked, True


@function("/")
def divide(args: tuple[Expr, ...]) -> Expr:
    if any(pt.is_duration(a.dtype) for a in args):
        raise Refused("intervals are divided by Spark", DAY_TIME)
    a, b, dtype = operands("/", args)
    if is_decimal(dtype):
        result, kernel = decimal_division(a.dtype, b.dtype)
    else:
        a, b = coerce(a, DOUBLE), coerce(b, DOUBLE)
        result, kernel = DOUBLE, pc.divide
    kernel, fallible = dividing(kernel, b)
    return Call(result, "/", (a, b), kernel, fallible, template="({0} / {1})")


def decimal_division(a: pa.DataType, b: pa.DataType) -> tuple[pa.DataType, Kernel]:
    """Spark's quotient type, rounded half up. One extra digit is computed in 256 bits and then rounded away."""
    scale = max(MINIMUM_ADJUSTED_SCALE, a.scale + b.precision + 1)
    precision = a.precision - a.scale + b.scale + scale
    result = bounded_decimal(precision, scale)
    lifted_scale = scale + 1 + b.scale
    lifted = pa.decimal256(a.precision - a.scale + lifted_scale, lifted_scale)
    if precision + b.precision + 1 > 39:
        raise Refused("Spark rounds such a quotient twice, first to 39 digits", result)
    if lifted.precision + b.precision + 1 > 76:
        raise Refused("the quotient needs more than 76 digits on the way", result)
    divisor = pa.decimal256(b.precision, b.scale)

    def kernel(x: Datum, y: Datum) -> Datum:
        quotient = pc.divide(pc.cast(x, lifted), pc.cast(y, divisor))
        return pc.cast(pc.round(quotient, scale, round_mode="half_towards_infinity"), result, safe=False)

    return result, kernel


@function("div")
def integral_divide(args: tuple[Expr, ...]) -> Expr:
    a, b, dtype = operands("div", args)
    if not is_integral(dtype):
        raise Refused("`div` of fractions is left to Spark", BIGINT)
    a, b = coerce(a, BIGINT), coerce(b, BIGINT)
    kernel, _ = dividing(pc.divide_checked, b)
    return Call(BIGINT, "div", (a, b), kernel, fallible=True, template="({0} div {1})")


@function("%", "mod")
def remainder(args: tuple[Expr, ...]) -> Expr:
    """The remainder. Its sign is the sign of the dividend, as in C, Java and Arrow."""
    a, b, dtype = operands("%", args)
    if is_decimal(dtype):
        raise Refused("`%` of decimals is left to Spark")
    kernel, fallible = dividing(pc.remainder, b)
    return Call(dtype, "%", (a, b), kernel, fallible, template="({0} % {1})")


@function("negative")
def negate(args: tuple[Expr, ...]) -> Expr:
    arity("negative", args, 1)
    dtype = args[0].dtype
    if dtype == VOID or not (is_numeric(dtype) or dtype == DAY_TIME):
        if pt.is_string(dtype) or dtype in (VOID, YEAR_MONTH):
            raise Refused(f"negation of {type_name(dtype)} is left to Spark")
        raise TypeMismatch(f"`-` needs a number, got {type_name(dtype)}")
    if is_integral(dtype):
        return Call(dtype, "negative", args, pc.negate_checked, fallible=True, template="(- {0})")
    if dtype == DAY_TIME:
        raise Refused("negation of an interval is left to Spark", dtype)
    refuse_long_decimal("negation", dtype)
    return Call(dtype, "negative", args, pc.negate, template="(- {0})")


def refuse_long_decimal(what: str, dtype: pa.DataType) -> None:
    """Refuse decimals of more than 34 digits: Spark rounds them to 34 digits when it changes the sign."""
    if is_decimal(dtype) and dtype.precision > 34:
        raise Refused(f"{what} of {type_name(dtype)} is left to Spark, which rounds it to 34 digits", dtype)


@function("positive")
def positive(args: tuple[Expr, ...]) -> Expr:
    arity("positive", args, 1)
    return args[0]


def _bitwise(name: str, kernel: Kernel) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        a, b, dtype = operands(name, args)
        if not is_integral(dtype):
            raise TypeMismatch(
                f"`{name}` needs integers, got {type_name(args[0].dtype)} and {type_name(args[1].dtype)}"
            )
        return Call(dtype, name, (a, b), kernel, template=f"({{0}} {name} {{1}})")


_bitwise("&", pc.bit_wise_and)
_bitwise("|", pc.bit_wise_or)
_bitwise("^", pc.bit_wise_xor)


@function("~")
def bit_not(args: tuple[Expr, ...]) -> Expr:
    arity("~", args, 1)
    if not is_integral(args[0].dtype):
        raise TypeMismatch(f"`~` needs an integer, got {type_name(args[0].dtype)}")
    return Call(args[0].dtype, "~", args, pc.bit_wise_not, template="(~ {0})")


def _shift(name: str, symbol: str, kernel: Kernel) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 2)
        value, by = args
        if not is_integral(value.dtype) or not is_integral(by.dtype):
            raise TypeMismatch(f"{name} needs integers, got {type_name(value.dtype)} and {type_name(by.dtype)}")
        value = value if value.dtype == BIGINT else coerce(value, INT)
        bits = value.dtype.bit_width
        unsigned = pa.uint64() if bits == 64 else pa.uint32()
        mask = pa.scalar(bits - 1, value.dtype)  # as in Java, only the low 5 or 6 bits of the amount count
        narrowed = coerce(by, INT)

        def shifted(x: Datum, amount: Datum) -> Datum:
            # Arrow cannot shift a signed number by all of its value bits, but it can shift an unsigned one.
            steps = pc.cast(pc.bit_wise_and(pc.cast(amount, value.dtype), mask), unsigned)
            moved = kernel(pc.cast(x, unsigned, safe=False), steps)
            if name == "shiftright":  # the sign bit is copied in from the left
                ones = pc.shift_left(
                    pc.subtract(pa.scalar(0, unsigned), pa.scalar(1, unsigned)), _left_over(steps, bits)
                )
                fill = pc.if_else(pc.equal(steps, pa.scalar(0, unsigned)), pa.scalar(0, unsigned), ones)
                moved = pc.if_else(pc.less(x, pa.scalar(0, x.type)), pc.bit_wise_or(moved, fill), moved)
            return pc.cast(moved, value.dtype, safe=False)

        # Printed as a function, because Spark cannot read `>>` after an `array(`.
        known = narrowed.value.as_py() if isinstance(narrowed, Literal) else None
        if known is not None and symbol and known & (bits - 1) < bits - 1:
            steps = pa.scalar(known & (bits - 1), value.dtype)  # the ordinary case is one kernel
            return Call(value.dtype, name, (value, narrowed), lambda x, _: kernel(x, steps))
        return Call(value.dtype, name, (value, narrowed), shifted)


def _left_over(steps: Datum, bits: int) -> Datum:
    """How far the copied sign bits are shifted. Never by the whole width."""
    return pc.if_else(pc.equal(steps, pa.scalar(0, steps.type)), steps, pc.subtract(pa.scalar(bits, steps.type), steps))


_shift("shiftleft", "<<", pc.shift_left)
_shift("shiftright", ">>", pc.shift_right)
_shift("shiftrightunsigned", "", pc.shift_right)
