"""How Spark writes a constant inside the name of an expression.

Law: a constant is named by its value, not by its text: `5L` is `5`, and `date '2020-1-2'` is `DATE '2020-01-02'`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import RoveError
from rove.model.schema import STRING
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.functions import RULES
from rove.plan.expressions.parse import TYPED
from rove.plan.expressions.tree import Literal, literal

_INTERVAL = re.compile(r"INTERVAL '(-?)(\d+)(.*?)' ((\w+).*)")


def constant_name(node: exp.Expression) -> str | None:
    """What Spark calls a number, a date, a timestamp or bytes; None if it is no such constant, or if it is not
    known."""
    if isinstance(node, exp.Interval):
        return _interval(node)
    if not isinstance(node, exp.HexString | exp.Literal) and not is_typed(node):
        return None
    try:
        bound = bind_node(node, pa.schema([]), "")
    except RoveError:
        return None
    return _value(bound) if isinstance(bound, Literal) else None


def is_typed(node: exp.Expression) -> bool:
    """`DATE '…'`, or a number with letters behind it, which its place in the text counts too. `CAST('1' AS INT)` is a
    call."""
    if not isinstance(node, exp.Cast) or not isinstance(number := node.this, exp.Literal):
        return False
    if number.is_string:  # the parser makes a text without a place of `1.50BD`
        return bool(node.meta.get(TYPED)) or "start" not in number.meta
    return "start" in number.meta and number.meta["end"] - number.meta["start"] == len(number.name)


def _value(bound: Literal) -> str | None:
    dtype, value = bound.dtype, bound.value.as_py()
    if pt.is_integer(dtype) or pt.is_decimal(dtype):
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    if pt.is_floating(dtype):
        return _java(value)
    if pt.is_binary(dtype):
        return f"X'{value.hex().upper()}'"
    match value:
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
            word = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{word} '{moment:%Y-%m-%d %H:%M:%S}{fraction}'" if moment.year >= 1000 else None
        case date():
            return f"DATE '{value.isoformat()}'"
    return None


def _java(value: float) -> str | None:
    """A number as Java prints it: `1000.0`, `1.0E10`. Long ones depend on the version of Java."""
    if not math.isfinite(value):
        return None
    exact = Decimal(repr(value))
    if len(exact.normalize().as_tuple().digits) > 7:
        return None
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(exact, "f")
        return text if "." in text else f"{text}.0"
    digits, _, power = f"{exact:E}".partition("E")
    whole, _, rest = digits.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}E{int(power)}"


def _interval(node: exp.Interval) -> str | None:
    """A constant length of time. Its first field has two digits, unless it is days, months or years."""
    unit = node.args.get("unit")
    try:
        found = RULES["interval"](
            (literal(node.this.name, STRING), literal(unit.sql("spark").lower() if unit else "", STRING))
        )
    except RoveError:
        return None
    parts = _INTERVAL.fullmatch(found.text or "") if isinstance(found, Literal) else None
    if parts is None:
        return None
    sign, first, rest, fields, field = parts.groups()
    first = str(int(first)) if field in ("DAY", "MONTH", "YEAR") else f"{int(first):02}"
    rest = rest.rstrip("0").removesuffix(".") if "." in rest else rest
    return f"INTERVAL '{sign}{first}{rest}' {fields}"
