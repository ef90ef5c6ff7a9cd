"""Spark 4's ANSI rules for which types can be combined, and their common type.

Law: where Spark casts implicitly and Arrow casts the same way, so do we. Where Spark refuses, we raise `TypeMismatch`.
Where Spark would cast from a string, the edge leaves it to Spark (`Refused`), because such a cast hides bad data.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from rove.model.errors import TypeMismatch
from rove.model.schema import (
    BIGINT,
    DATE,
    DECIMAL_DIGITS_MAX,
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
from rove.plan.expressions.tree import Expr, Literal

INTEGRAL = (TINYINT, SMALLINT, INT, BIGINT)
_INTEGRAL_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
MINIMUM_ADJUSTED_SCALE = 6


class Refused(Exception):
    """Raised by a type rule where the edge leaves an expression to Spark; `dtype` is the result's type if
    known."""

    def __init__(self, reason: str, dtype: pa.DataType | None = None) -> None:
        super().__init__(reason)
        self.reason, self.dtype = reason, dtype


def is_integral(t: pa.DataType) -> bool:
    return t in INTEGRAL


def is_fractional(t: pa.DataType) -> bool:
    return t in (FLOAT, DOUBLE)


def is_decimal(t: pa.DataType) -> bool:
    return bool(pt.is_decimal128(t))


def is_numeric(t: pa.DataType) -> bool:
    return is_integral(t) or is_fractional(t) or is_decimal(t)


def decimal_of(expr: Expr) -> pa.DataType:
    """The decimal type that holds an integral operand: by its digits for a literal, by its type otherwise."""
    if is_decimal(expr.dtype):
        return expr.dtype
    if isinstance(expr, Literal) and expr.value.is_valid:
        return pa.decimal128(max(1, len(str(abs(expr.value.as_py())))), 0)
    return pa.decimal128(_INTEGRAL_DIGITS.get(expr.dtype, 10), 0)


def wider_decimal(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """A decimal that holds every value of both."""
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale
    if digits > DECIMAL_DIGITS_MAX:
        raise Refused(f"{type_name(a)} and {type_name(b)} do not fit one decimal(38) without rounding")
    return pa.decimal128(digits, scale)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type to which `coalesce`, `case`, `in`, comparison and `union` cast their operands."""
    result = VOID
    for t in types:
        result = _common(result, t)
    return result


def _common(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    if is_spark_only(a) or is_spark_only(b):
        raise Refused("one operand has a type that only Spark knows")
    if is_numeric(a) and is_numeric(b):
        return _common_numeric(a, b)
    if STRING in (a, b):
        raise Refused(f"Spark would cast {type_name(b if a == STRING else a)} and string to one type; cast explicitly")
    if {a, b} <= {DATE, TIMESTAMP, TIMESTAMP_NTZ}:
        if {a, b} == {DATE, TIMESTAMP}:
            return TIMESTAMP
        if {a, b} == {DATE, TIMESTAMP_NTZ}:
            return TIMESTAMP_NTZ
        raise Refused("timestamp and timestamp_ntz are combined by Spark's session rules")
    if pt.is_nested(a) and pt.is_nested(b):
        raise Refused(f"{type_name(a)} and {type_name(b)} are combined by Spark only")
    raise TypeMismatch(f"{type_name(a)} and {type_name(b)} have no common type")


def _common_numeric(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if is_integral(a) and is_integral(b):
        return a if a.bit_width >= b.bit_width else b
    if is_decimal(a) or is_decimal(b):
        if is_fractional(a) or is_fractional(b):
            return DOUBLE
        digits_a = a if is_decimal(a) else pa.decimal128(_INTEGRAL_DIGITS[a], 0)
        digits_b = b if is_decimal(b) else pa.decimal128(_INTEGRAL_DIGITS[b], 0)
        return wider_decimal(digits_a, digits_b)
    return DOUBLE  # a float meets an integer or a double
