"""The name that Spark gives to an expression without an alias.

Law: the name is Spark's, to the letter, or it is not known. A statement whose column has no known name is asked to name
it with AS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import RoveError
from rove.model.names import is_owner
from rove.model.schema import STRING, TIMESTAMP
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.parse import SPELLED
from rove.plan.expressions.syntax import ancestors
from rove.plan.expressions.types import is_numeric

SHOWN = "shown"  # the mark on a node of a statement: how Spark writes it inside the name of an expression
Types = Mapping[str, pa.DataType]  # of columns, by name

_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
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
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_DATES = (exp.Add, exp.Sub)  # over dates and times they have other names
_NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d+)?")
_SHORT = re.compile(r"(?=[\d.]{1,6}[eE])\d+(\.\d+)?[eE][+-]?\d{1,2}")  # long ones depend on the version of Java
_TYPES = frozenset("BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE STRING DATE TIMESTAMP".split())
# Functions that Spark writes as they are called. Others have another spelling, or more arguments than were written.
_PLAIN = frozenset(
    """
    abs add_months any any_value approx_count_distinct array array_contains array_size ascii avg bit_and bit_count
    bit_length bit_or bit_xor bool_and bool_or btrim cardinality ceiling char char_length character_length chr
    coalesce collect_list collect_set concat concat_ws contains corr count count_if covar_pop covar_samp date_add
    date_diff date_format date_from_unix_date date_part date_sub date_trunc day dayname dayofmonth dayofweek
    dayofyear element_at endswith equal_null every factorial first first_value get greatest hour ifnull instr
    isnan kurtosis last last_day last_value lcase least left len length ln lower make_date map_keys map_values max
    max_by mean median min min_by minute mod mode month monthname named_struct nanvl negative next_day nullif
    nullifzero nvl nvl2 octet_length pmod pow quarter regexp_count regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat reverse right rint second shiftleft shiftright
    shiftrightunsigned sign size skewness some space split_part startswith std stddev stddev_pop stddev_samp sum
    timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp translate
    trunc try_add try_avg try_divide try_element_at try_mod try_multiply try_subtract try_sum try_to_date
    try_to_timestamp ucase unix_date unix_micros unix_millis unix_seconds upper var_pop var_samp variance weekday
    weekofyear width_bucket year zeroifnull
    array_distinct current_date current_timestamp exists filter forall get_json_object hash initcap listagg
    map md5 now rand sha2 string_agg struct to_json transform uuid
    """.split()
)
_CAPITALS = frozenset("ceil exp floor log10 power sqrt".split())  # Spark writes these in capitals
# What Spark writes after the arguments, by function and how many arguments were given.
_MORE: dict[tuple[str, int], str] = {
    ("datediff", 2): "",
    ("ltrim", 1): "",
    ("rtrim", 1): "",
    ("trim", 1): "",
    ("replace", 2): ", ",
    ("replace", 3): "",
    ("regexp_extract", 2): ", 1",
    ("regexp_extract", 3): "",
    ("split", 2): ", -1",
    ("percentile", 2): ", 1",
    ("percentile_approx", 2): ", 10000",
    ("approx_percentile", 2): ", 10000",
    ("round", 1): ", 0",
    ("round", 2): "",
    ("sort_array", 1): ", true",
    ("regexp_replace", 3): ", 1",
    ("locate", 2): ", 1",
    ("months_between", 2): ", true",
    ("unix_timestamp", 1): ", yyyy-MM-dd HH:mm:ss",
    ("from_unixtime", 1): ", yyyy-MM-dd HH:mm:ss",
}
_FIRSTS = frozenset("first first_value last last_value any_value".split())  # a second argument is not in their names
_UNITS = {"DAY": "DAY", "DAYS": "DAY", "HOUR": "HOUR", "HOURS": "HOUR", "MINUTE": "MINUTE", "MINUTES": "MINUTE"}


def spark_name(node: exp.Expression, types: Types | None = None) -> str | None:
    """The name of a column that has this expression; None if only Spark knows it. `types` are those of the columns."""
    if SHOWN in node.meta:
        return str(node.meta[SHOWN])
    match node:
        case exp.Paren():
            return spark_name(node.this, types)
        case exp.Column() | exp.Identifier():
            return node.name
        case exp.Dot() if isinstance(node.this, exp.Column | exp.Dot):
            return node.name
        case exp.Cast(this=exp.Column()) if type(node) is exp.Cast:
            return spark_name(node.this)
        case exp.Anonymous() if node.name.lower() in ("window", "session_window"):
            return node.name.lower()
        case exp.Dot(this=exp.Anonymous() as call) if call.name.lower() in ("window", "session_window"):
            return f"{call.name.lower()}.{node.name}"
    return _Inside(types or {}).name(node)


def _java(value: float) -> str:
    """A double as Java prints it: `1000.0`, `1.0E10`."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f")
    digits, _, power = f"{Decimal(repr(value)):E}".partition("E")
    whole, _, rest = digits.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}E{int(power)}"


class _Inside:
    """Names of expressions inside others."""

    def __init__(self, types: Types) -> None:
        self.types = types

    def name(self, node: exp.Expression) -> str | None:
        if SHOWN in node.meta:
            return str(node.meta[SHOWN])
        parts = self._parts(node)
        return None if parts is None else "".join(parts)

    def _parts(self, node: exp.Expression) -> list[str] | None:
        """The pieces of a name; None if one of them is not known."""
        match node:
            case exp.Paren():
                return self._joined(node.this)
            case exp.Column() if len(node.parts) == 1 and is_parameter(node):
                return ["namedlambdavariable()"]
            case exp.Column():
                return [".".join(p.name for p in node.parts if not is_owner(p.name))]
            case exp.Lambda():
                places = [", namedlambdavariable()"] * len(node.expressions)
                return self._joined("lambdafunction(", node.this, *places, ")")
            case exp.IgnoreNulls():
                return self._joined(node.this)
            case exp.Alias():
                return self._joined(node.this, f" AS {node.alias}")
            case exp.Extract() if node.this.name.isupper():
                return self._joined(f"extract({node.this.name} FROM ", node.expression, ")")
            case exp.Identifier() if is_parameter(node):
                return ["namedlambdavariable()"]
            case exp.Substring() if node.args.get("start"):
                given = [node.this, node.args["start"], node.args.get("length") or exp.Literal.number(2**31 - 1)]
                return self._joined(f"{node.meta.get(SPELLED, 'substring')}(", *_commas(given), ")")
            case exp.Trim() if not node.args.get("expression") and not node.args.get("position"):
                return self._joined("trim(", node.this, ")")
            case exp.Literal() if _SHORT.fullmatch(node.name) and not node.is_string:
                return [_java(float(node.name))]
            case exp.Dot() if isinstance(node.this, exp.Column | exp.Dot):
                return self._joined(node.this, f".{node.name}")
            case exp.Literal():
                known = node.is_string or _NUMBER.fullmatch(node.name)
                return [node.name] if known else None
            case exp.Null():
                return ["NULL"]
            case exp.Boolean():
                return ["true" if node.this else "false"]
            case exp.Neg(this=exp.Literal() as number) if not number.is_string:
                return self._joined("-", number)
            case exp.Neg():
                return self._joined("(- ", node.this, ")")
            case exp.Not(this=exp.Is(expression=exp.Null()) as inner):
                return self._joined("(", inner.this, " IS NOT NULL)")
            case exp.Not():
                return self._joined("(NOT ", node.this, ")")
            case exp.NEQ():
                return self._joined("(NOT (", node.this, " = ", node.expression, "))")
            case exp.NullSafeNEQ():
                return self._joined("(NOT (", node.this, " <=> ", node.expression, "))")
            case exp.DPipe():
                return self._joined("concat(", node.this, ", ", node.expression, ")")
            case exp.Is(expression=exp.Null()):
                return self._joined("(", node.this, " IS NULL)")
            case exp.In() if not node.args.get("query"):
                return self._joined("(", node.this, " IN (", *_commas(node.expressions), "))")
            case exp.Between() if not node.args.get("symmetric"):
                return self._joined("between(", *_commas([node.this, node.args["low"], node.args["high"]]), ")")
            case exp.Like() | exp.ILike() | exp.RegexpLike():
                return self._like(node)
            case exp.Cast() if type(node) is exp.Cast and not isinstance(node.this, exp.Literal):
                dtype = node.to.sql("spark")
                return self._joined("CAST(", node.this, f" AS {dtype})") if dtype in _TYPES else None
            case exp.Case():
                return self._case(node)
            case exp.If() if node.args.get("false") is not None:
                return self._joined("(IF(", *_commas([node.this, node.args["true"], node.args["false"]]), "))")
            case exp.Bracket() if not pt.is_struct(self._type(node.this) or pa.struct([])):
                return self._joined(node.this, "[", node.expressions[0], "]")
            case exp.Anonymous():
                return self._call(node)
            case exp.Distinct():
                return self._joined("DISTINCT ", *_commas(node.expressions))
            case exp.Filter():
                return self._joined(node.this, " FILTER (WHERE ", node.expression.this, ")")
        return self._binary(node)

    def _binary(self, node: exp.Expression) -> list[str] | None:
        word = _BINARY.get(type(node))
        if word is not None and isinstance(node, _DATES) and isinstance(node.expression, exp.Interval):
            length = _interval(node.expression)
            plain = length is not None and self._type(node.this) == TIMESTAMP
            return self._joined(node.this, f" {word} {length}") if plain else None
        if word is None or (isinstance(node, _DATES) and not self._is_number(node) and not self._same(node)):
            return None
        return self._joined("(", node.this, f" {word} ", node.expression, ")")

    def _same(self, node: exp.Expression) -> bool:
        """Whether both sides are timestamps, or numbers and texts."""
        kinds = [self._type(side) for side in (node.this, node.expression)]
        if kinds == [TIMESTAMP, TIMESTAMP]:
            return isinstance(node, exp.Sub)
        return all(k is not None and (k == STRING or is_numeric(k)) for k in kinds)

    def _is_number(self, node: exp.Expression) -> bool:
        """Whether an expression is known to be a number."""
        match node:
            case exp.Paren() | exp.Neg():
                return self._is_number(node.this)
            case exp.Add() | exp.Sub():
                return self._is_number(node.this) and self._is_number(node.expression)
            case exp.Anonymous(expressions=[argument]) if node.name.lower() in ("min", "max"):
                return self._is_number(argument)
            case exp.Anonymous() if node.name.lower() in ("count", "sum", "avg"):
                return True
        dtype = self._type(node)
        return dtype is not None and is_numeric(dtype)

    def _type(self, node: exp.Expression) -> pa.DataType | None:
        try:
            return bind_node(node, pa.schema(list(self.types.items())), "").dtype
        except RoveError:
            return None

    def _like(self, node: exp.Expression) -> list[str] | None:
        match node:
            case exp.Like():
                inner = self._joined(node.this, " LIKE ", node.expression)
            case exp.ILike():
                inner = self._joined("ilike(", node.this, ", ", node.expression, ")")
            case _:
                inner = self._joined("RLIKE(", node.this, ", ", node.expression, ")")
        return ["(NOT ", *inner, ")"] if inner and node.args.get("negate") else inner

    def _case(self, node: exp.Case) -> list[str] | None:
        pieces: list[str | exp.Expression] = ["CASE"]
        for branch in node.args["ifs"]:
            when = exp.EQ(this=node.this.copy(), expression=branch.this.copy()) if node.this else branch.this
            pieces += [" WHEN ", when, " THEN ", branch.args["true"]]
        if default := node.args.get("default"):
            pieces += [" ELSE ", default]
        return self._joined(*pieces, " END")

    def _call(self, node: exp.Anonymous) -> list[str] | None:
        name, args = node.name.lower(), node.expressions
        if name in ("isnull", "isnotnull") and len(args) == 1:
            return self._joined("(", args[0], " IS NULL)" if name == "isnull" else " IS NOT NULL)")
        if name in _FIRSTS and len(args) == 2 and isinstance(args[1], exp.Boolean):
            return self._joined(f"{name}(", args[0], ")")
        if name in _CAPITALS and len(args) == (2 if name == "power" else 1):
            return self._joined(f"{name.upper()}(", *_commas(args), ")")
        if (more := _MORE.get((name, len(args)))) is not None:
            return self._joined(f"{name}(", *_commas(args), f"{more})")
        if name not in _PLAIN:
            return None
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
            return [f"{name}(1)"]
        return self._joined(f"{name}(", *_commas(node.expressions), ")")

    def _joined(self, *pieces: str | exp.Expression) -> list[str] | None:
        names = [p if isinstance(p, str) else self.name(p) for p in pieces]
        return None if None in names else [n for n in names if n is not None]


def _interval(node: exp.Interval) -> str | None:
    """A constant length of time as Spark writes it; None if it is not known how."""
    unit, value = str(node.args.get("unit") or "").upper(), node.this.name
    if unit not in _UNITS or not value.isdigit() or int(value) > 99:
        return None
    return f"INTERVAL '{int(value) if _UNITS[unit] == 'DAY' else f'{int(value):02}'}' {_UNITS[unit]}"


def is_parameter(node: exp.Column | exp.Identifier) -> bool:
    """Whether a name is a parameter of a lambda around it."""
    name = (node.parts[0] if isinstance(node, exp.Column) else node).name.lower()
    return any(p.name.lower() == name for a in ancestors(node, exp.Lambda) for p in a.expressions)


def _commas(nodes: list[exp.Expression]) -> list[str | exp.Expression]:
    pieces: list[str | exp.Expression] = []
    for node in nodes:
        pieces += [", ", node] if pieces else [node]
    return pieces
