"""Three-valued logic and null tests."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.schema import BOOLEAN
from rove.plan.expressions.functions.masks import evaluate_where, is_not_false
from rove.plan.expressions.functions.registry import arity, coerce, function
from rove.plan.expressions.tree import Call, Datum, Evaluator, Expr, fallible


@function("and")
def and_rule(args: tuple[Expr, ...]) -> Expr:
    left, right = (coerce(a, BOOLEAN) for a in args)
    if not fallible(right):
        return Call(BOOLEAN, "and", (left, right), pc.and_kleene, template="({0} AND {1})")
    return Call(BOOLEAN, "and", (left, right), _guarding_and, lazy=True, template="({0} AND {1})")


@function("or")
def or_rule(args: tuple[Expr, ...]) -> Expr:
    left, right = (coerce(a, BOOLEAN) for a in args)
    if not fallible(right):
        return Call(BOOLEAN, "or", (left, right), pc.or_kleene, template="({0} OR {1})")
    return Call(BOOLEAN, "or", (left, right), _guarding_or, lazy=True, template="({0} OR {1})")


@function("not")
def not_rule(args: tuple[Expr, ...]) -> Expr:
    arity("not", args, 1)
    return Call(BOOLEAN, "not", (coerce(args[0], BOOLEAN),), pc.invert, template="(NOT {0})")


@function("isnull")
def is_null_rule(args: tuple[Expr, ...]) -> Expr:
    arity("isnull", args, 1)
    return Call(BOOLEAN, "isnull", args, pc.is_null, template="({0} IS NULL)")


@function("isnotnull")
def is_not_null_rule(args: tuple[Expr, ...]) -> Expr:
    arity("isnotnull", args, 1)
    return Call(BOOLEAN, "isnotnull", args, pc.is_valid, template="({0} IS NOT NULL)")


def _guarding_and(batch: pa.RecordBatch, left: Evaluator, right: Evaluator) -> Datum:
    """AND whose right side can raise: the right side is computed only for rows where the left side is not false."""
    a = left(batch)
    return pc.and_kleene(a, evaluate_where(is_not_false(a, batch.num_rows), right, batch, BOOLEAN))


def _guarding_or(batch: pa.RecordBatch, left: Evaluator, right: Evaluator) -> Datum:
    a = left(batch)
    return pc.or_kleene(a, evaluate_where(is_not_false(pc.invert(a), batch.num_rows), right, batch, BOOLEAN))
