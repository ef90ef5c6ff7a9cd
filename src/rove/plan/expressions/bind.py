"""Binds sqlglot's syntax tree to a schema and gives a typed tree.

Law: names are resolved ignoring case, as in Spark. Every error points at its place in the text. An expression that the
edge cannot compute becomes a node with the reason, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from math import isinf
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import (
    ArithmeticFault,
    ExpressionError,
    ParseError,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
    nearest,
)
from rove.model.schema import (
    BINARY,
    BOOLEAN,
    STRING,
    UNKNOWN,
    VOID,
    arrow_type,
    is_spark_only,
    type_name,
)
from rove.plan.expressions.arrow import evaluate_constant
from rove.plan.expressions.functions import RULES
from rove.plan.expressions.functions.casts import cast
from rove.plan.expressions.functions.intervals import UNIT_MONTHS, UNIT_US, in_some_fields
from rove.plan.expressions.parse import SHOWN, TYPED, parse_expression, span
from rove.plan.expressions.spark_names import SPARK_FUNCTIONS
from rove.plan.expressions.spark_results import result_type
from rove.plan.expressions.syntax import (
    BINARY_OPERATORS,
    UNARY_OPERATORS,
    ancestors,
    check_precedence,
    number,
    refuse_misplaced,
    refuse_unspoken,
    spark_text,
    unread_argument,
)
from rove.plan.expressions.tree import Call, Column, Expr, Foreign, Literal, literal, refusal_of
from rove.plan.expressions.types import Refused

_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]?\d(:[0-5]?\d(\.\d{1,6})?)?")
_REGION = re.compile(r"\d.* ?[a-z]+/[a-z_/]+$")  # the name of a time zone at the end
_SPECIAL_MOMENTS = ("epoch", "now", "today", "tomorrow", "yesterday")
_WITH_UNIT = {
    "timestampadd": "timestampadd",
    "timestampdiff": "timestampdiff",
    "dateadd": "timestampadd",
    "date_add": "timestampadd",
    "datediff": "timestampdiff",
    "date_diff": "timestampdiff",
}
BOUND_MAX = 1_024  # how many trees are remembered
UNITS = frozenset((*UNIT_US, *UNIT_MONTHS, "dayofyear"))


@lru_cache(BOUND_MAX)
def bind(text: str, schema: pa.Schema) -> Expr:
    """The typed tree of a piece of Spark SQL over the columns of `schema`. The caller strips an alias. A text that was
    bound lately costs one lookup: a plan is written, checked and read on every node, with the same texts."""
    return bind_node(parse_expression(text), schema, text)


def bind_node(node: exp.Expression, schema: pa.Schema, text: str, stars: bool = True) -> Expr:
    """The typed tree of an already parsed expression; `text` is what the user wrote, for errors. Without `stars` a call
    cannot take all columns as arguments, as in GROUP BY."""
    for part in node.walk():
        check_precedence(part, text)
        refuse_misplaced(part, node, text, stars)
        refuse_no_value(part, text)
    binder = _Binder(schema, text)
    found = binder.bind(node)
    if in_some_fields(found):
        return binder.foreign(node, "only Spark has intervals in other fields than DAY TO SECOND", found.dtype)
    return found


def refuse_no_value(node: exp.Expr, text: str) -> None:
    """Refuse a constant that is no value of its type, such as `DATE '2020-13-01'` or `1e400`, as Spark does before any
    row. A cast of such a text raises only where a row needs it."""
    if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower() and isinf(float(node.name)):
        raise TypeMismatch(f"{node.name} is outside the range of double", text, span(node))
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return
    value = node.this
    place = span(value)
    single = (
        node.to.this == exp.DType.FLOAT and place is not None and text[place[1] - 1 : place[1]] in ("f", "F")
    )  # `1e39F`
    if single and isinf(pa.scalar(float(value.name)).cast(pa.float32()).as_py()):
        raise TypeMismatch(f"{value.name} is outside the range of float", text, place)
    if node.meta.get(TYPED):
        if node.to.this == exp.DType.TIME:
            good = _TIME.fullmatch(value.name.strip()) is not None
        else:
            found = _Binder(pa.schema([]), text).bind(node)
            good = isinstance(found, Literal | Foreign)
        if not good:
            raise TypeMismatch(
                f"'{value.name}' is no {node.to.this.value.lower().removesuffix('tz').replace('stampn', 'stamp_ntz')}",
                text,
                span(value),
            )


def as_written(error: ExpressionError, node: exp.Expression) -> ExpressionError:
    """The error without names that Rove made: `u.a` may be the column `__1_a` of a plan, and `sum(a)` be `__0`."""
    reason = error.reason
    for column in node.find_all(exp.Column):
        name, shown = column.parts[0].name, str(column.meta.get(SHOWN, ""))
        if shown and name.startswith("__"):
            reason = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", shown.replace("\\", "\\\\"), reason)
    return type(error)(reason, error.text, error.span) if reason != error.reason else error


class _Binder:
    def __init__(self, schema: pa.Schema, text: str) -> None:
        self.schema, self.text = schema, text
        self.by_lower: dict[str, list[str]] = {}
        for name in schema.names:
            self.by_lower.setdefault(name.lower(), []).append(name)

    def bind(self, node: exp.Expression) -> Expr:
        try:
            return fold(self._bind(node))
        except Refused as refused:
            return self.foreign(node, refused.reason, refused.dtype or UNKNOWN)
        except ExpressionError as error:
            raise as_written(error, node).at(self.text, span(node)) from None

    def _bind(self, node: exp.Expression) -> Expr:
        kind = type(node)
        if unread := unread_argument(node):
            raise Refused(f"`{unread}` in `{spark_text(node)}` is left to Spark")
        if kind in BINARY_OPERATORS:
            found = self._call(BINARY_OPERATORS[kind], node.this, node.expression)
            return RULES["not"]((found,)) if node.args.get("negate") else found
        if kind is exp.Not and isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return self._call("isnotnull", node.this.this)
        if kind in UNARY_OPERATORS:
            return self._call(UNARY_OPERATORS[kind], node.this)
        if handler := _HANDLERS.get(kind):
            return handler(self, node)
        refuse_unspoken(node, self.text)
        return self.foreign(node, f"`{spark_text(node)}` has no form at the edge", UNKNOWN)

    def _call(self, name: str, *nodes: exp.Expression) -> Expr:
        return self._ruled(RULES[name], tuple(self.bind(n) for n in nodes))

    def _ruled(self, rule: Callable[[tuple[Expr, ...]], Expr], args: tuple[Expr, ...]) -> Expr:
        """A call by its rule. A rule that does not take a type that only Spark knows leaves the call to Spark."""
        try:
            return rule(args)
        except TypeMismatch:
            if any(is_spark_only(a.dtype) for a in args):
                raise Refused("an argument has a type that only Spark knows") from None
            raise

    def foreign(self, node: exp.Expression, reason: str, dtype: pa.DataType) -> Expr:
        """A node that only Spark computes. Its columns must exist all the same."""
        refuse_unspoken(node, self.text)
        columns = tuple(b for c in node.find_all(exp.Column) for b in self._roots(c))
        if node.find(exp.Star):
            columns = tuple(Column(field.type, field.name) for field in self.schema)
        return Foreign(dtype, spark_text(node), columns, reason)

    def _roots(self, node: exp.Column) -> list[Column]:
        lambdas = {p.name for a in ancestors(node, exp.Lambda) for p in a.expressions}
        name = node.parts[0].name
        if name in lambdas or (name.lower() in UNITS and name.lower() not in self.by_lower):
            return []
        actual = self._resolve(name, node)
        return [Column(self.schema.field(actual).type, actual)]

    def _resolve(self, name: str, node: exp.Expression) -> str:
        found = self.by_lower.get(name.lower(), [])
        if name in found:
            return name
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownColumn(f"`{name}` is ambiguous: {', '.join(found)}", self.text, span(node))
        raise UnknownColumn(f"no column `{name}`; {nearest(name, self.schema.names)}", self.text, span(node))

    def _column(self, node: exp.Column) -> Expr:
        first, *rest = (part.name for part in node.parts)
        name = self._resolve(first, node)
        found: Expr = Column(self.schema.field(name).type, name)
        for field in rest:
            found = RULES["."]((found, literal(field, STRING)))
        return found

    def _dot(self, node: exp.Dot) -> Expr:
        if not isinstance(node.expression, exp.Identifier):
            raise Refused(f"`{node.sql('spark')}` is a call that only Spark knows")
        return RULES["."]((self.bind(node.this), literal(node.expression.name, STRING)))

    def _bracket(self, node: exp.Bracket) -> Expr:
        (key,) = node.expressions
        return RULES["[]"]((self.bind(node.this), self.bind(key)))

    def _literal(self, node: exp.Literal) -> Expr:
        if node.is_string:
            return literal(node.this, STRING)
        return number(node.this)

    def _negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number(f"-{node.this.this}")  # the positive form of the smallest integer does not fit its type
        if isinstance(node.this, exp.Cast) and isinstance(node.this.this, exp.Literal) and not node.this.this.is_string:
            dtype = arrow_type(node.this.to)
            lowest = pt.is_integer(dtype) and node.this.this.this == str(2 ** (dtype.bit_width - 1))
            if lowest and re.search(r"cast|::|\(", self.text, re.IGNORECASE):
                # `-128Y` is a number, `-CAST(128 AS tinyint)` an error; the parser does not tell them apart.
                raise Refused(f"`{spark_text(node)}` may overflow; write CAST('-{node.this.this.this}' AS …)", dtype)
            return self._cast_literal(f"-{node.this.this.this}", dtype)
        return self._call("negative", node.this)

    def _cast(self, node: exp.Cast) -> Expr:
        try:
            dtype = arrow_type(node.to)
        except ParseError as error:
            raise Refused(f"a cast to {node.to.sql('spark')} is left to Spark") from error
        if isinstance(node.this, exp.Literal) and not isinstance(node, exp.TryCast):
            if not node.this.is_string:
                return self._cast_literal(node.this.this, dtype)
            written = node.this.this.strip().lower()
            if pt.is_temporal(dtype) and (written in _SPECIAL_MOMENTS or _REGION.search(written)):
                raise Refused(f"`{node.this.this}` is a date or time that only Spark knows", dtype)
        if node.to.this in (exp.DataType.Type.VARCHAR, exp.DataType.Type.CHAR) and node.to.expressions:
            raise Refused(f"a cast to {node.to.sql('spark')} is left to Spark", STRING)
        return cast(self.bind(node.this), dtype, null_on_error=isinstance(node, exp.TryCast))

    def _cast_literal(self, digits: str, dtype: pa.DataType) -> Expr:
        """`5L`, `1.5D` and their negatives: a number with a type suffix."""
        if pt.is_integer(dtype):
            value = int(Decimal(digits))
            if not -(2 ** (dtype.bit_width - 1)) <= value < 2 ** (dtype.bit_width - 1):
                raise TypeMismatch(f"{digits} is outside the range of {type_name(dtype)}")
            return literal(value, dtype)
        if pt.is_floating(dtype):
            return cast(literal(digits, STRING), dtype)  # one rounding, from the text
        return cast(number(digits), dtype)

    def _is(self, node: exp.Is) -> Expr:
        value, what = self.bind(node.this), node.expression
        if isinstance(what, exp.Null):
            return RULES["isnull"]((value,))
        if isinstance(what, exp.Boolean):
            return RULES["<=>"]((value, literal(what.this, BOOLEAN)))
        raise Refused(f"`IS {what.sql('spark')}` is left to Spark", BOOLEAN)

    def _not_distinct(self, node: exp.NullSafeNEQ) -> Expr:
        return RULES["not"]((self._call("<=>", node.this, node.expression),))

    def _in(self, node: exp.In) -> Expr:
        return self._call("in", node.this, *node.expressions)

    def _between(self, node: exp.Between) -> Expr:
        return self._call("between", node.this, node.args["low"], node.args["high"])

    def _escape(self, node: exp.Escape) -> Expr:
        name = "ilike" if isinstance(node.this, exp.ILike) else "like"
        return self._call(name, node.this.this, node.this.expression, node.expression)

    def _case(self, node: exp.Case) -> Expr:
        subject = node.this and self.bind(node.this)
        args: list[Expr] = []
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            args.append(fold(RULES["eq"]((subject, condition))) if subject else condition)
            args.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        args.append(self.bind(default) if default else literal(None, VOID))
        return RULES["case"](tuple(args))

    def _if(self, node: exp.If) -> Expr:
        default = node.args.get("false")
        if default is None:
            raise TypeMismatch("if takes 3 arguments, got 2")
        return self._call("if", node.this, node.args["true"], default)

    def _extract(self, node: exp.Extract) -> Expr:
        return RULES["extract"]((literal(node.this.name.lower(), STRING), self.bind(node.expression)))

    def _trim(self, node: exp.Trim) -> Expr:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
        chars = node.args.get("expression")
        if chars is None:
            return self._call(name, node.this)
        return self._call(name, chars, node.this)

    def _substring(self, node: exp.Substring) -> Expr:
        given = [node.this, node.args.get("start"), node.args.get("length")]
        return self._call("substring", *(n for n in given if n is not None))

    def _position(self, node: exp.StrPosition) -> Expr:
        given = [node.args["substr"], node.this, node.args.get("position")]
        return self._call("locate", *(n for n in given if n is not None))

    def _adjacent_strings(self, node: exp.Concat) -> Expr:
        """`'it' 's'`: Spark reads neighbouring string literals as one."""
        return literal("".join(n.this for n in node.expressions), STRING)

    def _function(self, node: exp.Anonymous) -> Expr:
        name = node.name.lower()
        if rule := RULES.get(name):
            if name in _WITH_UNIT and len(node.expressions) == 3:
                unit, *rest = node.expressions
                return RULES[_WITH_UNIT[name]]((literal(unit.name.lower(), STRING), *(self.bind(n) for n in rest)))
            if name == "struct":
                return self._struct(node)
            return self._ruled(rule, tuple(self.bind(n) for n in node.expressions))
        if name in SPARK_FUNCTIONS:
            raise Refused(f"the function `{name}` runs in Spark only", self._result(name, node.expressions))
        raise UnknownFunction(f"no function `{name}`; {_nearest_function(name)}")

    def _result(self, name: str, arguments: list[exp.Expression]) -> pa.DataType:
        """The type of a call that only Spark computes, as far as it is known."""
        try:
            return result_type(name, [self.bind(a).dtype for a in arguments])
        except ExpressionError:
            return UNKNOWN  # a lambda, a star, or an argument that only Spark reads

    def _interval(self, node: exp.Interval) -> Expr:
        unit = node.args.get("unit")
        return RULES["interval"](
            (literal(node.this.name, STRING), literal(unit.sql("spark").lower() if unit else "", STRING))
        )

    def _struct(self, node: exp.Anonymous) -> Expr:
        """`struct(a, b AS c, 1)`: a field's name is its column, its alias, or its position."""
        args: list[Expr] = []
        for i, part in enumerate(node.expressions):
            if part.find(exp.Star):
                raise Refused("a struct of all columns is spelled out by Spark")
            named = isinstance(part, exp.Alias | exp.Column | exp.Dot)
            args += [literal(part.alias_or_name if named else f"col{i + 1}", STRING), self.bind(part)]
        return RULES["named_struct"](tuple(args))

    def _hex(self, node: exp.HexString) -> Expr:
        digits = node.this
        return literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)

    def _overlay(self, node: exp.Overlay) -> Expr:
        given = [node.this, node.expression, node.args.get("from_"), node.args.get("for_")]
        return self._call("overlay", *(n for n in given if n is not None))


def fold(expr: Expr) -> Expr:
    """A call on constants becomes a constant. A call that raises is kept, and raises when a row needs it."""
    if not isinstance(expr, Call) or not all(isinstance(a, Literal) for a in expr.args) or refusal_of(expr):
        return expr
    if pt.is_nested(expr.dtype) or in_some_fields(expr):
        return expr  # no SQL literal stands for a list or a struct, and a new literal would be in all fields
    try:
        return evaluate_constant(expr)
    except ArithmeticFault:
        return expr


def _nearest_function(name: str) -> str:
    known = sorted(n for n in RULES.keys() | SPARK_FUNCTIONS if n.isidentifier())
    return nearest(name, known).rpartition("; ")[2]


_HANDLERS: dict[type[exp.Expression], Callable[[_Binder, Any], Expr]] = {
    exp.Alias: lambda b, n: b.bind(n.this),
    exp.Paren: lambda b, n: b.bind(n.this),
    exp.Column: _Binder._column,
    exp.Dot: _Binder._dot,
    exp.Bracket: _Binder._bracket,
    exp.Literal: _Binder._literal,
    exp.RawString: lambda b, n: literal(n.this, STRING),
    exp.HexString: _Binder._hex,
    exp.Boolean: lambda b, n: literal(n.this, BOOLEAN),
    exp.Null: lambda b, n: literal(None, VOID),
    exp.Neg: _Binder._negative,
    exp.Cast: _Binder._cast,
    exp.TryCast: _Binder._cast,
    exp.Is: _Binder._is,
    exp.NullSafeNEQ: _Binder._not_distinct,
    exp.In: _Binder._in,
    exp.Between: _Binder._between,
    exp.Escape: _Binder._escape,
    exp.Case: _Binder._case,
    exp.If: _Binder._if,
    exp.Extract: _Binder._extract,
    exp.Trim: _Binder._trim,
    exp.Substring: _Binder._substring,
    exp.StrPosition: _Binder._position,
    exp.Overlay: _Binder._overlay,
    exp.Concat: _Binder._adjacent_strings,
    exp.Anonymous: _Binder._function,
    exp.Interval: _Binder._interval,
}
