"""Syntax that Spark SQL and sqlglot read differently: grouping, numbers, and printing back.

Law: text that the parser and Spark could group differently is refused, not guessed at. Printed text has parentheses
everywhere, so that Spark cannot group it in another way.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pyarrow as pa
from sqlglot import exp

from rove.model.errors import ParseError
from rove.model.schema import BIGINT, DECIMAL_DIGITS_MAX, DOUBLE, INT
from rove.plan.expressions.parse import RoveSpark, span
from rove.plan.expressions.tree import Literal, literal

BINARY_OPERATORS: dict[type[exp.Expression], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.DPipe: "concat",
}
UNARY_OPERATORS: dict[type[exp.Expression], str] = {exp.Not: "not", exp.BitwiseNot: "~"}

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)
_BITS = (
    exp.BitwiseAnd,
    exp.BitwiseXor,
    exp.BitwiseOr,
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
    exp.DPipe,
)


def check_precedence(node: exp.Expr, text: str) -> None:
    """Where the parser and Spark group operators differently, ask for parentheses instead of picking one."""
    sides = (node.args.get("this"), node.args.get("expression"))
    mixed = False
    if isinstance(node, _COMPARISONS):
        mixed = isinstance(sides[1], (*_COMPARISONS, *_PREDICATES)) or isinstance(sides[0], _PREDICATES)
    elif isinstance(node, exp.DPipe):
        mixed = isinstance(sides[1], exp.Add | exp.Sub) or isinstance(sides[0], _BITS[:-1])
    elif isinstance(node, _BITS):
        shifts = (exp.BitwiseLeftShift, exp.BitwiseRightShift)
        alike = shifts if isinstance(node, shifts) else type(node)
        mixed = any(isinstance(side, _BITS) and not isinstance(side, alike) for side in sides)
    if isinstance(node, exp.Array):
        # The parser reads `array(…)[0]` as `ARRAY[0]` and loses what was between the parentheses.
        raise ParseError("put parentheses around the array: `(array(…))[0]`", text)
    if mixed:
        raise ParseError(
            "put parentheses around operators of different kinds that stand side by side", text, span(node)
        )


def spark_text(node: exp.Expression) -> str:
    """The syntax tree as text that Spark reads the same way: every operator in parentheses, functions as written."""
    root = exp.Paren(this=node.copy())
    for part in list(root.walk()):
        operator = isinstance(part, exp.Binary | exp.Unary | exp.Between | exp.In | exp.Is)
        apart = isinstance(part, exp.Dot | exp.Paren | exp.PropertyEQ) or isinstance(
            part.parent, exp.Paren | exp.Escape
        )
        if operator and not apart:
            part.replace(exp.Paren(this=part.copy()))
    shown = root if isinstance(root.this, exp.Binary | exp.Unary | exp.Between | exp.In | exp.Is) else root.this
    shown = root.this if isinstance(root.this, exp.Dot | exp.Paren) else shown
    return str(shown.sql(dialect=RoveSpark, normalize_functions=False))


def number(digits: str) -> Literal:
    """A number without a suffix, with the type Spark gives it: int, bigint, decimal, or double if it has an
    exponent."""
    try:
        value = Decimal(digits)
    except InvalidOperation as error:
        raise ParseError(f"`{digits}` is not a number") from error
    if "e" in digits.lower():
        return literal(float(digits), DOUBLE)
    if "." not in digits:
        for dtype in (INT, BIGINT):
            if -(2 ** (dtype.bit_width - 1)) <= value < 2 ** (dtype.bit_width - 1):
                return literal(int(value), dtype)
    scale = max(0, -int(value.as_tuple().exponent))
    precision = max(len(value.as_tuple().digits), scale)
    if precision > DECIMAL_DIGITS_MAX:
        raise ParseError(f"`{digits}` has more than {DECIMAL_DIGITS_MAX} digits")
    return literal(value, pa.decimal128(max(1, precision), scale))


def ancestors(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The nodes of a kind above a node."""
    found: list[exp.Expression] = []
    above = node.parent
    while above is not None:
        if isinstance(above, kind):
            found.append(above)
        above = above.parent
    return found
