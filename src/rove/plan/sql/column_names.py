"""The name that Spark gives to an expression without an alias.

Law: the name is Spark's, to the letter, or it is not known. A statement whose column has no known name is asked to name
it with AS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import RoveError
from rove.model.names import is_owner
from rove.model.schema import DATE, INT, STRING, TIMESTAMP
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.parse import SHOWN, SPELLED
from rove.plan.expressions.syntax import ancestors
from rove.plan.expressions.types import is_numeric
from rove.plan.sql.constant_names import constant_name, is_typed
from rove.plan.sql.name_table import NAMES

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
_SAME_TYPE = frozenset("any_value first first_value last last_value max min".split())  # as their argument
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")
_TYPES = frozenset("BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE STRING DATE TIMESTAMP".split())
# Functions that Spark writes as they are called. Others have another spelling, or more arguments than were written.
_PLAIN = frozenset(
    """
    abs add_months any any_value array array_contains array_size ascii avg bit_and bit_count
    bit_length bit_or bit_xor bool_and bool_or btrim cardinality ceiling char char_length character_length chr
    coalesce collect_list collect_set concat concat_ws contains corr count count_if covar_pop covar_samp date_add
    date_diff date_format date_from_unix_date date_part date_sub date_trunc day dayname dayofmonth dayofweek
    dayofyear element_at endswith equal_null every factorial first first_value get greatest hour ifnull instr
    isnan kurtosis last last_day last_value lcase least left len length ln lower make_date map_keys map_values max
    max_by mean median min min_by minute mod month monthname named_struct nanvl negative next_day nullif
    nullifzero nvl nvl2 octet_length pmod pow quarter regexp_count regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat reverse right rint second shiftleft shiftright
    shiftrightunsigned sign size skewness some space split_part startswith std stddev stddev_pop stddev_samp sum
    timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp translate
    trunc try_add try_avg try_divide try_element_at try_mod try_multiply try_subtract try_sum try_to_date
    try_to_timestamp ucase unix_date unix_micros unix_millis unix_seconds upper var_pop var_samp variance weekday
    weekofyear width_bucket year zeroifnull
    array_distinct array_position array_remove array_union array_intersect array_except array_max array_min
    array_repeat array_join arrays_overlap arrays_zip bin conv crc32 current_date current_timestamp element_at elt
    encode exists filter find_in_set flatten forall format_number format_string from_utc_timestamp get_json_object
    hash hex initcap levenshtein localtimestamp map map_concat map_contains_key map_entries map_from_arrays
    map_from_entries md5 now parse_json printf rand randn sequence sha sha1 sha2 slice soundex struct
    substring_index to_utc_timestamp typeof unbase64 base64 unhex url_decode url_encode uuid xxhash64
    """.split()
)
_CAPITALS = frozenset(  # Spark writes these in capitals
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot csc degrees exp expm1 floor hypot log10 log1p log2
    power radians sec signum sin sinh sqrt tan tanh
    """.split()
)
_OF_TWO = ("atan2", "hypot", "power")
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
# Functions whose only argument is what Spark names the result by.
_CASTS = frozenset("bigint binary boolean date decimal double float int smallint string timestamp tinyint".split())
# What else Spark calls by other names than the calls, with the numbers of arguments.
_OTHERS = """
approx_count_distinct/1
approx_count_distinct/2 approx_count_distinct($1)
bround/1 bround($1, 0)
bround/2
current_user/0
dateadd/2 date_add($1, $2)
dateadd/3 timestampadd($1, $2, $3)
datediff/3 timestampdiff($1, $2, $3)
datepart/2 datepart($1 FROM $2)
e/0 E()
from_csv/2 from_csv($1)
from_json/2 from_json($1)
from_unixtime/2
log/1 LOG(E(), $1)
log/2 LOG($1, $2)
lpad/2 lpad($1, $2,  )
lpad/3
mode/1
pi/0 PI()
position/2 position($1, $2, 1)
regexp_like/2 REGEXP_LIKE($1, $2)
regexp_replace/4
rlike/2 RLIKE($1, $2)
rpad/2 rpad($1, $2,  )
rpad/3
to_json/1
to_json/2 to_json($1)
unix_timestamp/0 unix_timestamp(current_timestamp(), yyyy-MM-dd HH:mm:ss)
unix_timestamp/2
variant_get/3 variant_get($1, $2)
"""
_HIGHER = frozenset("aggregate array_sort map_filter reduce transform transform_keys transform_values zip_with".split())


def spark_name(node: exp.Expression, types: Types | None = None) -> str | None:
    """The name of a column that has this expression; None if only Spark knows it. `types` are those of the columns."""
    if SHOWN in node.meta:
        return str(node.meta[SHOWN])
    match node:
        case exp.Paren():
            return spark_name(node.this, types)
        case exp.Column() | exp.Identifier():
            return node.name
        case exp.Dot() if _is_of_column(node):
            return node.name
        case exp.Cast(this=exp.Column()) if type(node) in (exp.Cast, exp.TryCast):
            return spark_name(node.this)
        case exp.Anonymous(expressions=[argument]) if node.name.lower() in _CASTS:
            return spark_name(argument, types)
        case exp.Anonymous() if node.name.lower() in ("window", "session_window"):
            return node.name.lower()
        case exp.Dot(this=exp.Anonymous() as call) if call.name.lower() in ("window", "session_window"):
            return f"{call.name.lower()}.{node.name}"
    return _Inside(types or {}).name(node)


def _is_of_column(node: exp.Expression) -> bool:
    """Whether a node is a column or a field of one."""
    return _is_of_column(node.this) if isinstance(node, exp.Dot) else isinstance(node, exp.Column)


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
            case exp.Extract():
                return self._joined(f"extract({node.meta.get(SPELLED, node.this.name)} FROM ", node.expression, ")")
            case exp.Identifier() if is_parameter(node):
                return ["namedlambdavariable()"]
            case exp.Substring() if node.args.get("start"):
                given = [node.this, node.args["start"], node.args.get("length") or exp.Literal.number(2**31 - 1)]
                return self._joined(f"{node.meta.get(SPELLED, 'substring')}(", *_commas(given), ")")
            case exp.Trim() if not node.args.get("expression") and not node.args.get("position"):
                return self._joined("trim(", node.this, ")")
            case exp.Trim() if node.args.get("expression"):
                side = str(node.args.get("position") or "BOTH").upper()
                return self._joined(f"TRIM({side} ", node.expression, " FROM ", node.this, ")")
            case exp.Dot() if _is_of_column(node):
                return self._joined(node.this, f".{node.name}")
            case exp.Literal() if node.is_string:
                return [node.name]
            case exp.Literal() | exp.HexString() | exp.Interval():
                return None if (name := constant_name(node)) is None else [name]
            case exp.BitwiseNot():
                return self._joined("~", node.this)
            case exp.Null():
                return ["NULL"]
            case exp.Boolean():
                return ["true" if node.this else "false"]
            case exp.Neg(this=exp.Literal() | exp.Cast() as number) if (name := constant_name(number)) is not None:
                return [f"-{name}"]
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
            case exp.Cast() if is_typed(node):
                return None if (name := constant_name(node)) is None else [name]
            case exp.Cast() if type(node) in (exp.Cast, exp.TryCast):
                dtype = _DECIMAL.sub(r"DECIMAL(\1,\2)", node.to.sql("spark"))
                word = "CAST" if type(node) is exp.Cast else "TRY_CAST"
                known = dtype in _TYPES or dtype.startswith("DECIMAL(")
                return self._joined(f"{word}(", node.this, f" AS {dtype})") if known else None
            case exp.Is(expression=exp.Boolean()):
                return self._joined("(", node.this, " <=> ", node.expression, ")")
            case exp.Case():
                return self._case(node)
            case exp.If() if node.args.get("false") is not None:
                return self._joined("(IF(", *_commas([node.this, node.args["true"], node.args["false"]]), "))")
            case exp.Bracket(expressions=[exp.Literal(is_string=True) as key]) if pt.is_struct(self._known(node.this)):
                return self._joined(node.this, f".{key.name}")
            case exp.Dot() if pt.is_struct(self._known(node.this)):
                return self._joined(node.this, f".{node.name}")
            case exp.Dot() if pt.is_map(self._known(node.this)):
                return self._joined(node.this, f"[{node.name}]")
            case exp.Tuple() if all(isinstance(e, exp.Column) for e in node.expressions):
                return self._joined("named_struct(", *_commas([x for e in node.expressions for x in (e.name, e)]), ")")
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
        if word is not None and isinstance(node, _DATES) and (moved := self._moved(node, word)) is not None:
            return moved
        if word is None or (isinstance(node, _DATES) and not self._is_number(node) and not self._same(node)):
            return None
        return self._joined("(", node.this, f" {word} ", node.expression, ")")

    def _moved(self, node: exp.Expression, word: str) -> list[str] | None:
        """A date or a time that is moved by a length of time, or a date by days."""
        value, by = node.this, node.expression
        if isinstance(by, exp.Interval):
            length, kind = constant_name(by), self._type(value)
            of_months = str(length).endswith(("MONTH", "YEAR"))
            if length is not None and (kind == TIMESTAMP or (kind == DATE and of_months)):
                return self._joined(value, f" {word} {length}")
            days = kind == DATE and str(length).endswith("' DAY") and isinstance(node, exp.Add)
            return self._joined("date_add(", value, f", extractansiintervaldays({length}))") if days else None
        if isinstance(node, exp.Add) and self._type(by) == DATE:
            value, by = by, value
        if self._type(value) == DATE and self._is_number(by):
            return self._joined("date_add(" if isinstance(node, exp.Add) else "date_sub(", value, ", ", by, ")")
        return None

    def _same(self, node: exp.Expression) -> bool:
        """Whether both sides are timestamps, or numbers and texts."""
        kinds = [self._type(side) for side in (node.this, node.expression)]
        if set(kinds) <= {TIMESTAMP, DATE}:
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

    def _known(self, node: exp.Expression) -> pa.DataType:
        return self._type(node) or pa.null()

    def _type(self, node: exp.Expression) -> pa.DataType | None:
        if isinstance(node, exp.Anonymous) and node.name.lower() in _SAME_TYPE and len(node.expressions) == 1:
            return self._type(node.expressions[0])
        if isinstance(node, exp.Column | exp.Identifier) and is_parameter(node):
            return self._type_of_parameter(node)
        try:
            return bind_node(node, pa.schema(list(self.types.items())), "").dtype
        except RoveError:
            return None

    def _type_of_parameter(self, node: exp.Column | exp.Identifier) -> pa.DataType | None:
        """The type of an element of the array that the function with this lambda reads; None if it is another value."""
        function = next(a for a in ancestors(node, exp.Lambda) if node.name in [p.name for p in a.expressions])
        call, place = function.parent, [p.name for p in function.expressions].index(node.name)
        if not isinstance(call, exp.Anonymous):
            return None
        name = call.name.lower()
        if place == 1 and name in ("transform", "filter"):
            return INT
        read = {("zip_with", 1): 1, ("aggregate", 0): 1, ("reduce", 0): 1}.get((name, place), 0)
        found = self._known(call.expressions[read])
        if (name, place) in (("aggregate", 0), ("reduce", 0)):
            return found
        if pt.is_map(found):
            return found.item_type if place else found.key_type
        return found.value_type if pt.is_list(found) else None

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
        if name in _CAPITALS and len(args) == (2 if name in _OF_TWO else 1):
            return self._joined(f"{name.upper()}(", *_commas(args), ")")
        if (more := _MORE.get((name, len(args)))) is not None:
            return self._joined(f"{name}(", *_commas(args), f"{more})")
        if name in _CASTS and len(args) == 1:
            return self._joined(args[0])
        if (template := _templates().get((name, len(args)))) is not None and not any(map(_is_other, args)):
            return self._joined(*(args[int(p) - 1] if n % 2 else p for n, p in enumerate(_NUMBER_OF.split(template))))
        if name in ("aggregate", "reduce") and len(args) == 3:
            args = [*args, "lambdafunction(namedlambdavariable(), namedlambdavariable())"]
        if name not in _PLAIN and not (name in _HIGHER and isinstance(node.expressions[-1], exp.Lambda)):
            return None
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
            return [f"{name}(1)"]
        return self._joined(f"{name}(", *_commas(args), ")")

    def _joined(self, *pieces: str | exp.Expression) -> list[str] | None:
        names = [p if isinstance(p, str) else self.name(p) for p in pieces]
        return None if None in names else [n for n in names if n is not None]


_NUMBER_OF = re.compile(r"\$(\d)")


@cache
def _templates() -> dict[tuple[str, int], str]:
    """What Spark calls a call, by the function and the number of its arguments: `$1` stands for the first."""
    found: dict[tuple[str, int], str] = {}
    for line in (*NAMES.splitlines(), *_OTHERS.split("\n")):
        call, _, template = line.partition(" ")
        name, _, count = call.partition("/")
        if name:
            places = ", ".join(f"${n + 1}" for n in range(int(count)))
            found[name, int(count)] = template or f"{name}({places})"
    return found


def _is_other(node: exp.Expression) -> bool:
    """Whether an argument is no value."""
    return isinstance(node, exp.Lambda | exp.Star | exp.Distinct)


def is_parameter(node: exp.Column | exp.Identifier) -> bool:
    """Whether a name is a parameter of a lambda around it."""
    name = (node.parts[0] if isinstance(node, exp.Column) else node).name.lower()
    return any(p.name.lower() == name for a in ancestors(node, exp.Lambda) for p in a.expressions)


def _commas(nodes: Sequence[str | exp.Expression]) -> list[str | exp.Expression]:
    pieces: list[str | exp.Expression] = []
    for node in nodes:
        pieces += [", ", node] if pieces else [node]
    return pieces
