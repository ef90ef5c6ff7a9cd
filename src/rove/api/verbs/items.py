"""The items that users list in a verb: columns, names of columns and texts, read as entries of a select list.

Law: a string is a name here, never an expression, as in PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rove.api.column import Column, path
from rove.model.errors import PlanError
from rove.model.names import unmarked
from rove.plan import build
from rove.plan.aggregates import AggregateCall
from rove.plan.build import Item
from rove.plan.operators import Operator

INPUT, OTHER = "__input", "__other"  # the streams of a verb that is written as a statement


def calls_of(plan: Operator, aggregates: Sequence[Column], verb: str) -> tuple[AggregateCall, ...]:
    """The aggregates that a verb computes. There must be at least one."""
    if not aggregates:
        raise PlanError(f"{verb} needs at least one aggregate, for example F.max('value')")
    items = [listed_item(a) for a in aggregates]
    return tuple(build.aggregate_call(i.node, plan.schema, i.text, i.name) for i in items)


def flat(values: Sequence[Any]) -> list[Any]:
    """Arguments of a verb as one list: PySpark takes `f(a, b)` and `f([a, b])`."""
    return [v for each in values for v in (each if isinstance(each, list | tuple) else [each])]


def key_names(by: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (by,) if isinstance(by, str) else tuple(by)


def subset_names(value: str | Sequence[str] | None) -> Sequence[str] | None:
    """The names of a `subset`. None stands for all columns."""
    return [value] if isinstance(value, str) else value


def listed_item(
    value: Column | str, types: dict[str, pa.DataType] | None = None, readable: Callable[[str], str] = unmarked
) -> Item:
    """An entry of a select or groupBy list: strings are names, not expressions."""
    if isinstance(value, str):
        return build.item(value if value == "*" or value.endswith(".*") else path(value))
    if not isinstance(value, Column):
        raise PlanError(f"expected a column or a column's name, got {value!r}")
    return column_item(value, value.name, types, readable)


def checked_column(value: Any, verb: str) -> Column:
    """The value, which must be a column. The error names the verb that takes it."""
    if not isinstance(value, Column):
        raise PlanError(
            f"{verb} needs a column, got {value!r}; F.lit(…) makes one of a constant, F.expr(…) one of text"
        )
    return value


def column_item(
    column: Column,
    name: str | None,
    types: dict[str, pa.DataType] | None = None,
    readable: Callable[[str], str] = unmarked,
) -> Item:
    text = readable(column.text)
    found = build.item(text, types)
    return Item(found.node, text, name or found.name, aliased=found.aliased or name is not None)
