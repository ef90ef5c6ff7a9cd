"""Syntax that Spark SQL and sqlglot read differently: grouping, numbers, and printing back.

Law: text that the parser and Spark could group differently is refused, not guessed at. Printed text has parentheses
everywhere, so that Spark cannot group it in another way.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import cast

import pyarrow as pa
from sqlglot import exp

from rove.model.errors import ExpressionError, ParseError
from rove.model.schema import BIGINT, DECIMAL_DIGITS_MAX, DOUBLE, INT
from rove.plan.expressions.parse import SHOWN, RoveSpark, given, parse_expression, span
from rove.plan.expressions.tokens import NO_OVER
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


def refuse_misplaced(node: exp.Expr, root: exp.Expr, text: str, stars: bool) -> None:
    """Refuse a part that stands for several columns, or names some, where there is room for one value."""
    above = None if node is root else node.parent
    if isinstance(node, exp.Aliases):
        raise ExpressionError(
            "several names for one value; only functions that make rows have several", text, span(node)
        )
    if isinstance(node, exp.Star):
        holder = above.parent if isinstance(above, exp.Column) and above is not root else above
        if not stars or not isinstance(holder, exp.Anonymous):
            raise ExpressionError("`*` stands for several columns, and here is room for one", text, span(node))
    if isinstance(node, exp.Alias) and above is not None:
        names_field = isinstance(above, exp.Anonymous) and above.name.lower() == "struct"
        if not names_field:
            raise ExpressionError("only a whole entry, or a field of struct(…), has a name with AS", text, span(node))


# The arguments of each kind of node that the binder reads. A node with another argument is left to Spark.
_TWO = frozenset(("this", "expression"))
READS: dict[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys((*BINARY_OPERATORS, *UNARY_OPERATORS), _TWO),
    **{kind: _TWO | {"negate"} for kind in (exp.Like, exp.ILike, exp.RegexpLike)},
    **{
        kind: frozenset(("this",)) for kind in (exp.Paren, exp.RawString, exp.HexString, exp.Boolean, exp.Null, exp.Neg)
    },
    exp.Alias: frozenset(("this", "alias")),
    exp.Column: frozenset(("this", "table", "db", "catalog")),
    exp.Dot: _TWO,
    exp.Bracket: frozenset(("this", "expressions")),
    exp.Literal: frozenset(("this", "is_string")),
    exp.Cast: frozenset(("this", "to")),
    exp.TryCast: frozenset(("this", "to")),
    exp.Is: _TWO,
    exp.NullSafeNEQ: _TWO,
    exp.In: frozenset(("this", "expressions")),
    exp.Between: frozenset(("this", "low", "high")),
    exp.Escape: _TWO,
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.If: frozenset(("this", "true", "false")),
    exp.Extract: _TWO,
    exp.Trim: _TWO | {"position"},
    exp.Substring: frozenset(("this", "start", "length")),
    exp.StrPosition: frozenset(("this", "substr", "position")),
    exp.Overlay: _TWO | {"from_", "for_"},
    exp.Concat: frozenset(("expressions",)),
    exp.Anonymous: frozenset(("this", "expressions")),
    exp.Interval: frozenset(("this", "unit")),
}
_FLAGS = frozenset(
    ("safe", "typed", "coalesce", "is_string", "quoted")
)  # the parser sets these itself, whatever is written
# Kinds of nodes that Spark's own language has, beside those that the binder reads.
_SPOKEN = (
    *READS, exp.All, exp.Any, exp.Aliases, exp.Collate, exp.ColumnDef, exp.DataType, exp.DataTypeParam, exp.Distinct,
    exp.Filter, exp.Identifier, exp.IgnoreNulls, exp.IntervalSpan, exp.Kwarg, exp.Lambda, exp.Order, exp.Ordered,
    exp.PropertyEQ, exp.RespectNulls, exp.Star, exp.Tuple, exp.Var, exp.Where, exp.WithinGroup,
)  # fmt: skip
# Kinds that are printed in another way than they were written, with the same meaning.
_PRINTED_OTHERWISE = (exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.StrPosition, exp.RawString, exp.Concat)
_OPERANDS = (exp.All, exp.Any, exp.Distinct)  # they are no expressions by themselves
_NEVER: dict[type[exp.Expr], str] = {
    exp.Window: NO_OVER,
    exp.Query: "a subquery needs a whole statement: session.sql(…)",
    exp.Exists: "a subquery needs a whole statement: session.sql(…)",
    exp.Placeholder: "a statement has no parameters; write the value",
    exp.Parameter: "a statement has no parameters; write the value",
}
_COUNTER = "monotonically_increasing_id"


def unread_argument(node: exp.Expr) -> str:
    """The name of an argument that the binder would not read; empty if it reads all."""
    reads = READS.get(type(node))
    if reads is None:
        return ""
    extra = (name for name in given(node) if name not in reads and name not in _FLAGS)
    return next(extra, "").strip("_").replace("_", " ").upper()


def refuse_never(node: exp.Expr, text: str) -> None:
    """Refuse what no expression over a stream can have."""
    for part in node.walk():
        for kind, why in _NEVER.items():
            if isinstance(part, kind):
                raise ExpressionError(why, text, span(part) or _parameter(part, text))
        if isinstance(part, exp.Anonymous) and part.name.lower() == _COUNTER:
            raise ExpressionError(f"streaming Spark has no `{_COUNTER}`; use uuid()", text, span(part))


def _parameter(node: exp.Expr, text: str) -> tuple[int, int] | None:
    """Where the first `?`, `:name` or `{}` of a text is, for a node that has no place."""
    found = re.search(r"\?|:\w+|\{[^}]*\}", text) if isinstance(node, exp.Placeholder | exp.Parameter) else None
    return found.span() if found else None


def refuse_unspoken(node: exp.Expr, text: str) -> None:
    """Refuse what Spark does not have, and what would be lost on the way to Spark."""
    refuse_never(node, text)
    for part in node.walk():
        if not isinstance(part, _SPOKEN):
            place = span(part)
            shown = part.sql("spark") if place is None else text[slice(*place)]
            raise ParseError(f"`{shown}` is not read here; use inSpark(…)", text, place)
    if node.find(*_PRINTED_OTHERWISE) or isinstance(node, _OPERANDS):
        return
    try:
        same = _bare(parse_expression(spark_text(cast(exp.Expression, node)))) == _bare(node)
    except ParseError:
        same = False
    if not same:
        raise ParseError(f"Rove cannot hand `{node.sql('spark')}` to Spark unchanged; use inSpark(…)", text, span(node))


def _bare(node: exp.Expr) -> exp.Expr:
    """The tree without parentheses, which only group."""
    root = exp.Paren(this=node.copy())
    for part in list(root.find_all(exp.Paren)):
        if part is not root:
            part.replace(part.this)
    return cast(exp.Expr, root.this)


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


def written(node: exp.Expression) -> str:
    """An expression with the names that the user wrote in the place of those in the plan."""
    root = exp.Paren(this=node.copy())
    for each in [c for c in root.find_all(exp.Column) if SHOWN in c.meta]:
        each.replace(exp.column(str(each.meta[SHOWN])))
    return spark_text(root.this)


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
