"""`replace`: other values in the place of some. Values are compared as Spark compares them: NaN equals NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rove.model.errors import PlanError
from rove.model.names import quoted, quoted_text
from rove.model.schema import BOOLEAN, STRING, type_name
from rove.plan import build
from rove.plan.expressions.parse import parse_expression
from rove.plan.expressions.types import is_numeric
from rove.plan.operators import Operator, column_of

Value = bool | int | float | str
Given = Value | Sequence[Value] | Mapping[Value, Value | None]


def pairs_of(to_replace: Given, value: Value | Sequence[Value | None] | None) -> list[tuple[Value, Value | None]]:
    """What is replaced by what, from the arguments of PySpark's `replace`."""
    if isinstance(to_replace, Mapping):
        return list(to_replace.items())
    olds = _listed(to_replace, 1)
    news = _listed(value, len(olds))
    if len(olds) != len(news):
        raise PlanError(f"replace got {len(olds)} values, and {len(news)} to put in their place")
    return list(zip(olds, news, strict=True))


def _listed(given: Any, times: int) -> list[Any]:
    """Several values as they are, or one so many times. A number of numpy is one value."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given] * times


def replaced(plan: Operator, pairs: Sequence[tuple[Value, Value | None]], subset: Sequence[str] | None) -> Operator:
    """`replace`. Numbers are replaced in columns of numbers, text in columns of text, booleans in those of booleans."""
    given = [each for pair in pairs for each in pair if each is not None]
    kinds = {bool if isinstance(v, bool) else str if isinstance(v, str) else float for v in given}
    if len(kinds) != 1:
        raise PlanError("replace takes numbers, texts or booleans, one kind of them in one call")
    (kind,) = kinds
    names = set(plan.schema.names if subset is None else [column_of(plan.schema, n).name for n in subset])
    items = []
    for field in plan.schema:
        text, dtype = quoted(field.name), type_name(field.type)
        fits = is_numeric(field.type) if kind is float else field.type == (STRING if kind is str else BOOLEAN)
        if field.name in names and fits:
            whens = " ".join(f"WHEN {_constant(old, dtype)} THEN {_constant(new, dtype)}" for old, new in pairs)
            text = f"CASE {text} {whens} ELSE {text} END"
        items.append(build.Item(parse_expression(text), text, field.name))
    return build.selected(plan, items)


def _constant(value: Value | None, dtype: str) -> str:
    """A value in the type of its column. A number is a double first, as in PySpark."""
    match value:
        case None:
            return f"CAST(NULL AS {dtype})"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted_text(value)
    return f"CAST(CAST({quoted_text(repr(float(value)))} AS DOUBLE) AS {dtype})"
