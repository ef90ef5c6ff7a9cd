"""Struct columns of which only some fields are read are taken apart before a filter, so that it copies just those."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.types as pt

from rove.plan.expressions.tree import Call, Column, Expr, Foreign, Literal, walk
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
            fields = {n: f"{n.args[0].name}.{_field(n)}" for e in exprs for n in walk(e) if _is_field(n, whole)}
            if not fields:
                return operator
            names = sorted(n for n in whole)
            kept: list[Named] = [(n, Column(below.schema.field(n).type, n)) for n in below.schema.names if n in names]
            narrowed = Project(below, (*kept, *((name, node) for node, name in fields.items())))
            new = tuple((name, _replaced(e, fields)) for name, e in columns)
            return Project(Filter(narrowed, _replaced(condition, fields)), new)
    return operator


def _field(node: Expr) -> str:
    return str(node.args[1].value.as_py()) if isinstance(node, Call) and isinstance(node.args[1], Literal) else ""


def _is_access(node: Expr) -> bool:
    return (
        isinstance(node, Call) and node.name == "." and isinstance(node.args[0], Column) and pt.is_struct(node.args[0].dtype)
    )


def _is_field(node: Expr, whole: set[str]) -> bool:
    return _is_access(node) and isinstance(node, Call) and isinstance(node.args[0], Column) and node.args[0].name not in whole


def _whole_columns(expr: Expr) -> list[Column]:
    """The columns an expression reads other than by one of their fields."""
    if _is_access(expr):
        return []
    if isinstance(expr, Column):
        return [expr]
    return [c for a in (expr.args if isinstance(expr, Call) else ()) for c in _whole_columns(a)]


def _replaced(expr: Expr, fields: dict[Expr, str]) -> Expr:
    if expr in fields:
        return Column(expr.dtype, fields[expr])
    if isinstance(expr, Call):
        args = tuple(_replaced(a, fields) for a in expr.args)
        return expr if args == expr.args else replace(expr, args=args)
    return expr
