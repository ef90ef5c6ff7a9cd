"""Comparison, `in`, `between`, `greatest` and `least`.

Law: NaN equals NaN and is greater than every other number, as in Spark. Arrow's kernels follow IEEE, so the NaN cases
are corrected where an operand can be NaN, and only there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import TypeMismatch
from rove.model.schema import BOOLEAN, VOID, type_name
from rove.plan.expressions.functions.masks import as_array
from rove.plan.expressions.functions.registry import RULES, apply, arity, coerce, function
from rove.plan.expressions.tree import Call, Datum, Expr, Literal, literal
from rove.plan.expressions.types import (
    Refused,
    common_type,
    decimal_of,
    is_decimal,
    is_fractional,
    is_integral,
)

SYMBOLS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_KERNELS = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}


def _greater_nan(a: Datum, b: Datum) -> Datum:
    return pc.or_(pc.greater(a, b), pc.and_(pc.is_nan(a), pc.invert(pc.is_nan(b))))


def _equal_nan(a: Datum, b: Datum) -> Datum:
    return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))


_NAN_KERNELS: dict[str, Callable[[Datum, Datum], Datum]] = {
    "eq": _equal_nan,
    "ne": lambda a, b: pc.invert(_equal_nan(a, b)),
    "gt": _greater_nan,
    "lt": lambda a, b: _greater_nan(b, a),
    "ge": lambda a, b: pc.invert(_greater_nan(b, a)),
    "le": lambda a, b: pc.invert(_greater_nan(a, b)),
}


def comparable(args: tuple[Expr, ...], what: str) -> tuple[Expr, ...]:
    """The operands, cast to one type that has an order, as Spark casts them."""
    if any(is_decimal(a.dtype) for a in args) and not any(is_fractional(a.dtype) for a in args):
        # Beside a decimal, Spark widens an integer literal by its digits, not by its type.
        dtype = common_type([decimal_of(a) if is_integral(a.dtype) else a.dtype for a in args])
    else:
        dtype = common_type([a.dtype for a in args])
    if dtype == VOID:
        raise Refused(f"{what} of untyped nulls is folded by Spark", BOOLEAN)
    if pt.is_map(dtype):
        raise TypeMismatch(f"{what} needs values with an order, not {type_name(dtype)}")
    if pt.is_nested(dtype):
        raise Refused(f"{what} of {type_name(dtype)} values is left to Spark", BOOLEAN)
    return tuple(coerce(a, dtype) for a in args)


def can_be_nan(expr: Expr) -> bool:
    """Whether a value can be NaN: a fractional type, and not a constant other than NaN."""
    if not is_fractional(expr.dtype):
        return False
    if isinstance(expr, Literal) and expr.value.is_valid:
        return math.isnan(expr.value.as_py())
    return True


def _compare(name: str) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(SYMBOLS[name], args, 2)
        a, b = comparable(args, f"`{SYMBOLS[name]}`")
        nan_a, nan_b = can_be_nan(a), can_be_nan(b)
        # IEEE agrees with Spark unless a NaN could be the greater side, or be compared with a NaN.
        ieee = (
            not (nan_a or nan_b)
            or (name in ("eq", "ne") and not (nan_a and nan_b))
            or (name in ("lt", "le") and not nan_b)
            or (name in ("gt", "ge") and not nan_a)
        )
        kernel = _KERNELS[name] if ieee else _NAN_KERNELS[name]
        return Call(BOOLEAN, name, (a, b), kernel, template=f"({{0}} {SYMBOLS[name]} {{1}})")


for _name in SYMBOLS:
    _compare(_name)


@function("<=>", "equal_null")
def null_safe_equal(args: tuple[Expr, ...]) -> Expr:
    arity("<=>", args, 2)
    a, b = comparable(args, "`<=>`")
    equal = _NAN_KERNELS["eq"] if can_be_nan(a) and can_be_nan(b) else pc.equal

    def kernel(x: Datum, y: Datum) -> Datum:
        return pc.coalesce(equal(x, y), pc.and_(pc.is_null(x), pc.is_null(y)))

    return Call(BOOLEAN, "<=>", (a, b), kernel, template="({0} <=> {1})")


@function("between")
def between(args: tuple[Expr, ...]) -> Expr:
    arity("between", args, 3)
    value, low, high = args
    return RULES["and"]((apply("ge", value, low), apply("le", value, high)))


@function("in")
def in_rule(args: tuple[Expr, ...]) -> Expr:
    """`x IN (…)`: true if found, else null if x or an item is null, else false."""
    if len(args) < 2:
        raise TypeMismatch("IN needs at least one value to look for")
    value, *items = comparable(args, "`IN`")
    if not all(isinstance(i, Literal) for i in items):
        raise Refused("IN takes only literals at the edge", BOOLEAN)
    literals = [i.value for i in items if isinstance(i, Literal)]
    known = [v for v in literals if v.is_valid]
    with_null = len(known) < len(literals)
    listed = [v.as_py() for v in known]
    if is_fractional(value.dtype) and 0.0 in listed:
        listed += [0.0, -0.0]  # zeros of both signs are equal, but not the same bits
    values = pa.array(listed, value.dtype)

    def kernel(x: Datum) -> Datum:
        found = pc.is_in(x, value_set=values)
        undecided = pc.is_null(x)
        if with_null:
            undecided = pc.invert(found)
        return pc.if_else(undecided, pa.scalar(None, BOOLEAN), found)

    places = ", ".join(f"{{{i}}}" for i in range(1, len(args)))
    return Call(BOOLEAN, "in", (value, *items), lambda x, *_: kernel(x), template=f"({{0}} IN ({places}))")


def _extreme(name: str, ieee: Callable[..., Datum], nan_wins: bool) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        if len(args) < 2:
            raise TypeMismatch(f"{name} takes at least 2 arguments, got {len(args)}")
        operands = comparable(args, name)
        dtype = operands[0].dtype
        if pt.is_boolean(dtype) or pt.is_binary(dtype):
            raise Refused(f"{name} of {type_name(dtype)} values is left to Spark", dtype)
        kernel = ieee if not is_fractional(dtype) else _nan_extreme(ieee, dtype, nan_wins)
        if pt.is_timestamp(dtype):
            kernel = _as_numbers(ieee, dtype)
        return Call(dtype, name, operands, kernel)


def _as_numbers(kernel: Callable[..., Datum], dtype: pa.DataType) -> Callable[..., Datum]:
    """Compute on plain numbers: Arrow compares timestamps, but has no minimum or maximum of them."""
    return lambda *moments: pc.cast(kernel(*(pc.cast(m, pa.int64()) for m in moments)), dtype)


def _nan_extreme(ieee: Callable[..., Datum], dtype: pa.DataType, nan_wins: bool) -> Callable[..., Datum]:
    nan = pa.scalar(math.nan, dtype)

    def kernel(*values: Datum) -> Datum:
        rows = next(len(v) for v in values if not isinstance(v, pa.Scalar))
        columns = [as_array(v, rows) for v in values]
        nans = [pc.fill_null(pc.is_nan(c), False) for c in columns]
        numbers = ieee(*(pc.if_else(n, pa.scalar(None, dtype), c) for n, c in zip(nans, columns, strict=True)))
        some_nan = nans[0]
        for n in nans[1:]:
            some_nan = pc.or_(some_nan, n)
        if nan_wins:
            return pc.if_else(some_nan, nan, numbers)
        return pc.if_else(pc.and_(some_nan, pc.is_null(numbers)), nan, numbers)

    return kernel


_extreme("greatest", pc.max_element_wise, nan_wins=True)
_extreme("least", pc.min_element_wise, nan_wins=False)


@function("nullif")
def nullif(args: tuple[Expr, ...]) -> Expr:
    arity("nullif", args, 2)
    value = args[0]
    return RULES["if"]((apply("eq", *args), literal(None, value.dtype), value))
