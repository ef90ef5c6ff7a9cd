"""Takes only the fields that are read out of struct columns before a filter, so that the filter copies just those."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.types as pt

from rove.plan.expressions.tree import Call, Column, Expr, Foreign, walk
from rove.plan.operators import Filter, Named, Operator, Project
from rove.plan.rules.rewrite import bottom_up


def narrow_structs(plan: Operator) -> Operator:
    return bottom_up(plan, _narrow)


def _narrow(operator: Operator) -> Operator:
    match operator:
        case Project(input=Filter(input=below, condition=condition), columns=columns):
            exprs = [condition, *(e for _, e in columns)]
            if any(isinstance(n, Foreign) for e in exprs for n in walk(e)):
                return operator
            whole = {n.name for e in exprs for n in _whole_columns(e)}
            fields = {n: f"{c.name}{n.name}" for e in exprs for n, c in _accesses(e) if c.name not in whole}
            if not fields:
                return operator
            kept: list[Named] = [(n, Column(below.schema.field(n).type, n)) for n in below.schema.names if n in whole]
            narrowed = Project(below, (*kept, *((name, node) for node, name in fields.items())))
            new = tuple((name, _replaced(e, fields)) for name, e in columns)
            return Project(Filter(narrowed, _replaced(condition, fields)), new)
    return operator


def _access(expr: Expr) -> tuple[Call, Column] | None:
    """A field of a struct column, such as `bid.price`, and the column."""
    match expr:
        case Call(name=name, args=(Column() as column,)) if name.startswith(".") and pt.is_struct(column.dtype):
            return expr, column
    return None


def _accesses(expr: Expr) -> list[tuple[Call, Column]]:
    return [found for node in walk(expr) if (found := _access(node))]


def _whole_columns(expr: Expr) -> list[Column]:
    """The columns that an expression reads as a whole, not by one of their fields."""
    if _access(expr):
        return []
    if isinstance(expr, Column):
        return [expr]
    return [c for a in (expr.args if isinstance(expr, Call) else ()) for c in _whole_columns(a)]


def _replaced(expr: Expr, fields: dict[Call, str]) -> Expr:
    if isinstance(expr, Call):
        if expr in fields:
            return Column(expr.dtype, fields[expr])
        args = tuple(_replaced(a, fields) for a in expr.args)
        return expr if args == expr.args else replace(expr, args=args)
    return expr
