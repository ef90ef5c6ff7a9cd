"""`rove.functions`: PySpark's column functions, as text.

Law: names and arguments are those of `pyspark.sql.functions`. A string argument is a column name where PySpark takes it
as a column name, and a literal where PySpark takes it as a literal.

>>> from rove import functions as F
>>> F.round(F.col("price") * 0.908, 2).alias("euro")
Column<round((price * CAST('0.908' AS DOUBLE)), 2) AS euro>
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

from rove.api.arguments import checked
from rove.api.column import Case, Column, Expression, literal, path
from rove.model.errors import WrongKind


@checked
def col(name: str) -> Column:
    """A column by name. A dot selects a field of a struct."""
    return Column("*" if name == "*" else path(name))


column = col


@checked
def lit(value: Any) -> Column:
    """A constant."""
    return value if isinstance(value, Column) else Column(literal(value))


@checked
def expr(text: str) -> Column:
    """Any Spark SQL expression."""
    return Expression(text)


@checked
def when(condition: Column, value: Any) -> Case:
    """The first branch of a CASE. Add more with `.when(…)` and `.otherwise(…)`."""
    return Case(((condition.operand, literal(value)),))


@checked
def window(
    timeColumn: Column | str,
    windowDuration: str,
    slideDuration: str | None = None,
    startTime: str | None = None,
) -> Column:
    """An event-time window to group by: tumbling, or hopping if it slides by less than its length."""
    parts = [_column(timeColumn), literal(windowDuration)]
    if slideDuration or startTime:
        parts.append(literal(slideDuration or windowDuration))
    if startTime:
        parts.append(literal(startTime))
    return Column(f"window({', '.join(parts)})")


@checked
def session_window(timeColumn: Column | str, gapDuration: str) -> Column:
    """A window that ends when no row came for the gap's duration. It runs in Spark."""
    return Column(f"session_window({_column(timeColumn)}, {literal(gapDuration)})")


@checked
def log(arg1: Column | str | float, arg2: Column | str | None = None) -> Column:
    """The natural logarithm of a column, or the logarithm to a base of one: `log(2.0, "x")`."""
    return Column(f"ln({_column(arg1)})" if arg2 is None else f"log({literal(arg1)}, {_column(arg2)})")


@checked
def sort_array(col: Column | str, asc: bool = True) -> Column:
    """The elements of an array in order."""
    return Column(f"sort_array({_column(col)}, {literal(asc)})")


@checked
def count(col: Column | str) -> Column:
    """The number of rows (`"*"`), or the number of values that are not null."""
    return Column(f"count({'*' if isinstance(col, str) and col == '*' else _column(col)})")


@checked
def struct(*cols: Column | str) -> Column:
    """A struct of columns."""
    return Column(f"struct({', '.join(c.sql if isinstance(c, Column) else path(c) for c in cols)})")


@checked
def countDistinct(col: Column | str, *cols: Column | str) -> Column:
    """The exact number of different values. Spark counts them; the edge removes duplicates."""
    return Column(f"count(DISTINCT {', '.join(_column(c) for c in (col, *cols))})")


count_distinct = countDistinct


@checked
def sum_distinct(col: Column | str) -> Column:
    """The sum of the different values. Spark adds them; the edge removes duplicates."""
    return Column(f"sum(DISTINCT {_column(col)})")


@checked
def transform(col: Column | str, f: Callable[..., Column]) -> Column:
    """An array with what a function makes of each element, and of its position if the function takes two arguments."""
    return _over_elements("transform", col, f)


@checked
def filter(col: Column | str, f: Callable[..., Column]) -> Column:
    """The elements of an array for which a function is true."""
    return _over_elements("filter", col, f)


@checked
def exists(col: Column | str, f: Callable[..., Column]) -> Column:
    """Whether a function is true for some element of an array."""
    return _over_elements("exists", col, f)


@checked
def forall(col: Column | str, f: Callable[..., Column]) -> Column:
    """Whether a function is true for all elements of an array."""
    return _over_elements("forall", col, f)


def _over_elements(name: str, col: Column | str, function: Callable[..., Column]) -> Column:
    try:
        count = len(signature(function).parameters)
    except ValueError:
        raise WrongKind(f"F.{name} takes a function of columns, and got {function!r}") from None
    parameters = [f"__{p}" for p in ("x", "y", "z")[:count]]
    body = function(*(Column(p) for p in parameters))
    return Column(f"{name}({_column(col)}, ({', '.join(parameters)}) -> {literal(body)})")


def _column(value: Any) -> str:
    return path(value) if isinstance(value, str) else literal(value)


# The kinds of each function's arguments: c is a column (or its name), l a literal, * repeats the last kind.
_SHAPES = {
    "": "current_date current_timestamp curdate now localtimestamp uuid",
    "c": """
        any_value array_agg array_compact array_distinct array_max array_min array_size base64 bit_and bit_or bit_xor
        count_if every explode_outer first_value flatten inline inline_outer last_value map_entries
        posexplode posexplode_outer some to_json unbase64
        abs acos acosh asin asinh atan atanh avg bit_count bit_length bitwise_not bool_and bool_or cardinality cbrt ceil
        ceiling char_length character_length collect_list collect_set cos cosh cot date_from_unix_date day dayname
        dayofmonth dayofweek dayofyear degrees e exp expm1 explode factorial first floor hex hour initcap
        isnan isnotnull isnull kurtosis last last_day lcase length ln log10 log1p log2 lower max mean median min minute
        mode month monthname negate negative octet_length pi positive quarter radians reverse rint second sign signum
        sin sinh size skewness soundex sqrt std stddev stddev_pop stddev_samp sum tan tanh timestamp_micros
        timestamp_millis timestamp_seconds try_avg try_sum ucase unix_date unix_micros unix_millis unix_seconds
        upper
        var_pop var_samp variance weekday weekofyear window_time year ascii crc32 md5 sha1 approx_count_distinct
    """,
    "c*": "array coalesce concat greatest least hash xxhash64 map_keys map_values ltrim rtrim trim btrim",
    "cc": """
        atan2 contains datediff date_diff endswith equal_null hypot ifnull levenshtein max_by min_by
        mod months_between nanvl nullif nvl pmod pow power startswith try_add try_divide try_element_at try_multiply
        try_subtract get left right arrays_overlap array_except array_intersect array_union corr covar_pop covar_samp
    """,
    "ccc": "nvl2 replace",
    "cl": """
        add_months bround date_add date_format date_sub dateadd element_at format_number instr next_day
        approx_percentile array_append array_position array_prepend array_remove array_repeat from_json
        get_json_object listagg sha2 string_agg
        array_contains array_join percentile percentile_approx regexp_like repeat round rlike shiftleft shiftright
        split from_unixtime to_date to_timestamp trunc unix_timestamp regexp_count
    """,
    "cll": "slice lpad regexp_extract regexp_replace rpad substring substr translate split_part",
    "lc": "date_trunc date_part extract locate",
    "lc*": "concat_ws",
}
_SHAPE_OF = {name: shape for shape, names in _SHAPES.items() for name in names.split()}


def _argument(kind: str, value: Any) -> str:
    return _column(value) if kind == "c" else literal(value)


@cache
def _make(name: str, shape: str) -> Callable[..., Column]:
    kinds = shape.rstrip("*")

    def call(*args: Any, **named: Any) -> Column:
        given = [*args, *named.values()]
        if shape.endswith("*") and len(given) == 1 and isinstance(given[0], list | tuple):
            given = list(given[0])
        if given and not kinds:
            raise WrongKind(f"F.{name}() takes no arguments, and got {len(given)}")
        texts = [_argument(kinds[min(i, len(kinds) - 1)], a) for i, a in enumerate(given)]
        return Column(f"{name}({', '.join(texts)})")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Spark's `{name}`."
    return call


_OVER_WINDOWS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")
_OF_USERS = ("udf", "pandas_udf", "arrow_udf", "udtf")


def __getattr__(name: str) -> Callable[..., Column]:
    if (shape := _SHAPE_OF.get(name)) is not None:
        return _make(name, shape)
    instead = f'write it as F.expr("{name}(…)")'
    if name in _OF_USERS:
        instead = "give a function that takes and gives Arrow batches to mapInArrow(…)"
    elif name in _OVER_WINDOWS:
        from rove.plan.expressions.tokens import NO_OVER as instead  # needs the parser
    raise AttributeError(f"rove.functions has no `{name}`; {instead}")


def __dir__() -> list[str]:
    own = (n for n, value in globals().items() if getattr(value, "__module__", "") == __name__)
    return sorted({*_SHAPE_OF, *(n for n in own if not n.startswith("_"))})
