"""The table of functions: Spark's name → the rule that gives a call its type and its kernel.

Law: a rule handles every type. It returns a `Call` with a kernel, raises `TypeMismatch` where Spark refuses too, or
raises `Refused` where Spark has an answer that Arrow kernels cannot give exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rove.model.errors import TypeMismatch
from rove.model.schema import STRING, VOID, is_spark_only, type_name
from rove.plan.expressions.tree import Call, Datum, Expr, Literal, literal
from rove.plan.expressions.types import Refused, is_decimal, is_fractional, is_integral, is_numeric

Rule = Callable[[tuple[Expr, ...]], Expr]
RULES: dict[str, Rule] = {}


def function(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule under Spark's names for it."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


def arity(name: str, args: tuple[Expr, ...], least: int, most: int | None = None) -> None:
    """Refuse a call with too few or too many arguments."""
    most = least if most is None else most
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise TypeMismatch(f"{name} takes {wanted} arguments, got {len(args)}")


def coerce(expr: Expr, dtype: pa.DataType) -> Expr:
    """The argument cast to `dtype`, if Spark casts it implicitly."""
    from rove.plan.expressions.functions.casts import cast

    have = expr.dtype
    if have == dtype:
        return expr
    if have == VOID:
        return literal(None, dtype)
    if is_spark_only(have):
        raise Refused(f"an argument has type {type_name(have)}, which only Spark holds")
    if is_numeric(have) and is_numeric(dtype):
        widens = (
            is_fractional(dtype)
            or (is_integral(have) and is_integral(dtype) and have.bit_width <= dtype.bit_width)
            or (is_decimal(dtype) and (is_integral(have) or is_decimal(have)))
        )
        if widens:
            return cast(expr, dtype)
        raise Refused(f"Spark would narrow {type_name(have)} to {type_name(dtype)} by itself; cast explicitly", dtype)
    if STRING in (have, dtype):
        raise Refused(f"Spark would cast {type_name(have)} to {type_name(dtype)} by itself; cast explicitly", dtype)
    if pa.types.is_date(have) and pa.types.is_timestamp(dtype):
        return cast(expr, dtype)
    if pa.types.is_timestamp(have) and pa.types.is_date(dtype):
        return cast(expr, dtype)
    raise TypeMismatch(f"expected {type_name(dtype)}, got {type_name(have)}")


def apply(name: str, *args: Expr) -> Expr:
    """Use a rule inside another rule. Constants are folded, as when the binder calls the rule."""
    from rove.plan.expressions.bind import fold

    return fold(RULES[name](args))


def constant(expr: Expr, what: str) -> object:
    """The Python value of an argument that must be known when the query is planned."""
    if isinstance(expr, Literal):
        return expr.value.as_py()
    raise Refused(f"{what} must be a literal at the edge")


def simple(
    names: str,
    params: tuple[pa.DataType, ...],
    result: pa.DataType,
    kernel: Callable[..., Datum],
    fallible: bool = False,
) -> None:
    """Register a function of fixed types whose kernel takes the arguments as they are."""
    first, *_ = split = names.split()

    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(first, args, len(params))
        coerced = tuple(coerce(a, p) for a, p in zip(args, params, strict=True))
        return Call(result, first, coerced, kernel, fallible)

    function(*split)(rule)
