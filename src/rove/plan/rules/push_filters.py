"""Moves filters towards the source, so that fewer rows are computed and sent.

A filter that can raise stays above steps that may remove the rows it raises on. A filter that only Spark can run stays
too, because the steps it moved below would then run in Spark as well.
"""

from __future__ import annotations

from rove.plan.expressions.tree import (
    Column,
    Expr,
    Foreign,
    columns_of,
    fallible,
    refusal_of,
    substitute,
    walk,
)
from rove.plan.operators import Aggregate, Filter, Join, Named, Operator, Project, Source, Union
from rove.plan.rules.rewrite import bottom_up


def push_filters(plan: Operator) -> Operator:
    return bottom_up(plan, _push)


def _push(operator: Operator) -> Operator:
    match operator:
        case Filter(input=Project(input=Source(), columns=columns)) if _picks(columns):
            return operator  # picking columns of a source costs nothing, and the filter then copies fewer columns
        case Filter(input=Project(input=below, columns=columns), condition=condition):
            moved = _through(dict(columns), condition)
            if moved is not None:
                return Project(_push(Filter(below, moved)), columns)
        case Filter(input=Union(members=members), condition=condition) if not refusal_of(condition):
            return Union(tuple(_push(Filter(m, condition)) for m in members))
        case Filter(input=Aggregate() as below, condition=condition):
            return _below_aggregate(operator, below, condition)
        case Filter(input=Join() as below, condition=condition) if below.how == "inner" and _movable(condition):
            return _below_join(operator, below, condition)
    return operator


def _picks(columns: tuple[Named, ...]) -> bool:
    return all(isinstance(e, Column) and e.name == name for name, e in columns)


def _movable(condition: Expr) -> bool:
    return not fallible(condition) and not refusal_of(condition)


def _through(columns: dict[str, Expr], condition: Expr) -> Expr | None:
    """The condition over the columns that a projection reads, or None if it cannot be evaluated there."""
    read = {name: columns[name] for name in columns_of(condition)}
    if refusal_of(condition) or any(isinstance(n, Foreign) for n in walk(condition)):
        return None
    if any(not isinstance(e, Column) and (refusal_of(e) or fallible(e)) for e in read.values()):
        return None
    return substitute(condition, read)


def _below_aggregate(operator: Filter, below: Aggregate, condition: Expr) -> Operator:
    """Move a condition on keys below the aggregate: it selects the same groups there."""
    keys = dict(below.keys)
    if below.mode != "whole" or not _movable(condition) or not columns_of(condition):
        return operator
    if not columns_of(condition) <= set(keys):
        return operator
    moved = _through(keys, condition)
    if moved is None:
        return operator
    return Aggregate(
        _push(Filter(below.input, moved)),
        below.window,
        below.time,
        below.keys,
        below.aggregates,
        below.mode,
        below.window_name,
    )


def _below_join(operator: Filter, below: Join, condition: Expr) -> Operator:
    """Move a condition on the columns of one side to that side."""
    names = columns_of(condition)
    if names and names <= set(below.left.schema.names):
        left: Operator = _push(Filter(below.left, condition))
        return Join(left, below.right, below.how, below.left_keys, below.right_keys, below.using, below.condition)
    if names and names <= set(below.right.schema.names):
        right = _push(Filter(below.right, condition))
        return Join(below.left, right, below.how, below.left_keys, below.right_keys, below.using, below.condition)
    return operator
