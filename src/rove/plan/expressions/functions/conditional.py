"""`case`, `if`, `coalesce` and similar functions.

Law: a branch that can raise is computed only for the rows that take it. A branch that cannot raise is computed for all
rows, which costs less than selecting rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import TypeMismatch
from rove.model.schema import BOOLEAN, DOUBLE, FLOAT, VOID
from rove.plan.expressions.functions.masks import as_array, evaluate_where, is_true, true_count
from rove.plan.expressions.functions.registry import RULES, apply, arity, coerce, function
from rove.plan.expressions.tree import Call, Datum, Evaluator, Expr, fallible, literal
from rove.plan.expressions.types import Refused, common_type


@function("case")
def case(args: tuple[Expr, ...]) -> Expr:
    """`case(condition, value, condition, value, …, default)`. The binder adds a null default if there is none."""
    conditions = [coerce(c, BOOLEAN) for c in args[:-1:2]]
    values = [*args[1::2], args[-1]]
    dtype = common_type([v.dtype for v in values])
    if dtype == VOID:
        raise Refused("a case whose branches are all untyped nulls is folded by Spark")
    values = [coerce(v, dtype) for v in values]
    pairs = zip(conditions, values[:-1], strict=True)
    ordered = (*(e for pair in pairs for e in pair), values[-1])
    whens = " ".join(f"WHEN {{{2 * i}}} THEN {{{2 * i + 1}}}" for i in range(len(conditions)))
    template = f"CASE {whens} ELSE {{{len(ordered) - 1}}} END"
    if any(fallible(e) for e in ordered):
        return Call(dtype, "case", ordered, _lazy_case(dtype), lazy=True, template=template)
    return Call(dtype, "case", ordered, _eager_case, template=template)


def _eager_case(*args: Datum) -> Datum:
    result = args[-1]
    for condition, value in reversed(list(zip(args[:-1:2], args[1::2], strict=True))):
        # A null condition counts as false; if_else would make the row null instead.
        result = pc.if_else(pc.fill_null(condition, False), value, result)
    return result


def _lazy_case(dtype: pa.DataType) -> Callable[..., Datum]:
    def kernel(batch: pa.RecordBatch, *args: Evaluator) -> Datum:
        rows = batch.num_rows
        result = pa.nulls(rows, dtype)
        waiting = pa.repeat(pa.scalar(True), rows)
        for condition, value in zip(args[:-1:2], args[1::2], strict=True):
            holds = is_true(evaluate_where(waiting, condition, batch, BOOLEAN), rows)
            result = pc.if_else(holds, evaluate_where(holds, value, batch, dtype), result)
            waiting = pc.and_(waiting, pc.invert(holds))
            if not true_count(waiting):
                return result
        return pc.if_else(waiting, evaluate_where(waiting, args[-1], batch, dtype), result)

    return kernel


@function("if")
def if_rule(args: tuple[Expr, ...]) -> Expr:
    arity("if", args, 3)
    return case(args)


@function("coalesce")
def coalesce(args: tuple[Expr, ...]) -> Expr:
    if not args:
        raise TypeMismatch("coalesce takes at least 1 argument")
    dtype = common_type([a.dtype for a in args])
    if dtype == VOID:
        raise Refused("coalesce of untyped nulls is folded by Spark")
    values = tuple(coerce(a, dtype) for a in args)
    if any(fallible(v) for v in values[1:]):
        return Call(dtype, "coalesce", values, _lazy_coalesce(dtype), lazy=True)
    return Call(dtype, "coalesce", values, lambda *columns: _eager_coalesce(columns))


def _eager_coalesce(columns: Sequence[Datum]) -> Datum:
    if len(columns) == 1:
        return columns[0]
    return pc.coalesce(*columns)


def _lazy_coalesce(dtype: pa.DataType) -> Callable[..., Datum]:
    def kernel(batch: pa.RecordBatch, *args: Evaluator) -> Datum:
        result = as_array(args[0](batch), batch.num_rows)
        for value in args[1:]:
            missing = pc.is_null(result)
            if not true_count(missing):
                break
            result = pc.if_else(missing, evaluate_where(missing, value, batch, dtype), result)
        return result

    return kernel


@function("ifnull", "nvl")
def nvl(args: tuple[Expr, ...]) -> Expr:
    arity("nvl", args, 2)
    return coalesce(args)


@function("nvl2")
def nvl2(args: tuple[Expr, ...]) -> Expr:
    arity("nvl2", args, 3)
    return case((apply("isnotnull", args[0]), args[1], args[2]))


@function("nanvl")
def nanvl(args: tuple[Expr, ...]) -> Expr:
    arity("nanvl", args, 2)
    dtype = FLOAT if all(a.dtype == FLOAT for a in args) else DOUBLE
    value, other = (coerce(a, dtype) for a in args)
    return case((apply("isnan", value), other, value))


@function("zeroifnull")
def zero_if_null(args: tuple[Expr, ...]) -> Expr:
    arity("zeroifnull", args, 1)
    return coalesce((args[0], literal(0, pa.int32())))


@function("nullifzero")
def null_if_zero(args: tuple[Expr, ...]) -> Expr:
    arity("nullifzero", args, 1)
    return RULES["nullif"]((args[0], literal(0, pa.int32())))
