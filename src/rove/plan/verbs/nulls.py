"""`fillna` and `dropna`: verbs that find nulls. NaN counts as null in them, as in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pt

from rove.model.errors import PlanError
from rove.model.names import quoted, quoted_text
from rove.model.schema import BOOLEAN, STRING, type_name
from rove.plan import build
from rove.plan.expressions.parse import parse_expression
from rove.plan.expressions.types import is_numeric
from rove.plan.operators import Operator, column_of

Fill = bool | int | float | str


def filled(plan: Operator, value: Fill | Mapping[str, Fill], subset: Sequence[str] | None) -> Operator:
    """`fillna`."""
    if isinstance(value, Mapping):
        given = {column_of(plan.schema, name).name: each for name, each in value.items()}
    else:
        names = plan.schema.names if subset is None else [column_of(plan.schema, n).name for n in subset]
        given = {name: value for name in names if _fits(value, plan.schema.field(name).type)}
    items = []
    for field in plan.schema:
        text = quoted(field.name)
        if field.name in given:
            text = f"coalesce({_value(field)}, CAST({_constant(given[field.name])} AS {type_name(field.type)}))"
        items.append(build.Item(parse_expression(text), text, field.name))
    return build.selected(plan, items)


def without(plan: Operator, how: str, thresh: int | None, subset: Sequence[str] | None) -> Operator:
    """`dropna`."""
    if how not in ("any", "all"):
        raise PlanError(f"dropna takes how=`any` or `all`, got {how!r}")
    names = plan.schema.names if subset is None else [column_of(plan.schema, n).name for n in subset]
    least = thresh if thresh is not None else len(names) if how == "any" else 1
    counts = [f"IF({_value(plan.schema.field(n))} IS NULL, 0, 1)" for n in names]
    text = f"{' + '.join(counts) or '0'} >= {least}"
    return build.filtered(plan, parse_expression(text), text)


def _value(field: pa.Field) -> str:
    """The column, with a null for NaN."""
    name = quoted(field.name)
    return f"IF(isnan({name}), NULL, {name})" if pt.is_floating(field.type) else name


def _fits(value: Fill, dtype: pa.DataType) -> bool:
    match value:
        case bool():
            return bool(dtype == BOOLEAN)
        case str():
            return bool(dtype == STRING)
        case int() | float():
            return is_numeric(dtype)
    raise PlanError(f"fillna takes a number, a string or a boolean, got {value!r}")


def _constant(value: Fill) -> str:
    """A whole number counts as a double, as in PySpark."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted_text(value) if isinstance(value, str) else f"CAST({quoted_text(repr(float(value)))} AS DOUBLE)"
