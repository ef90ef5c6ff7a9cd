"""Aggregate functions as three pieces of Spark SQL: lift a row, merge states, finish a result.

Law: a row is a state of one. Because lift and finish are expressions, the edge and Spark run the same text, and a
window can be computed in any number of parts: merge is associative and takes rows and partial results alike.

    sum(x) of bigint:   lift  shiftright(x, 32), x & 4294967295     merge  sum, sum     finish  hi * 2^32 + lo
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import TypeMismatch
from rove.model.names import quoted
from rove.model.schema import (
    BIGINT,
    BOOLEAN,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    STRING,
    UNKNOWN,
    VOID,
    is_spark_only,
    type_name,
)
from rove.plan.expressions.bind import bind
from rove.plan.expressions.spark_results import result_type
from rove.plan.expressions.tree import Expr, literal, refusal_of, sql, substitute
from rove.plan.expressions.types import Refused, is_decimal, is_fractional, is_integral, is_numeric


@dataclass(frozen=True, slots=True)
class StateColumn:
    """One column of an aggregate's state; `merge` is sum, min, max, moments (three together) or distinct."""

    name: str
    lift: Expr
    merge: str

    @property
    def dtype(self) -> pa.DataType:
        return self.lift.dtype


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One output of a groupBy: `function(argument) AS name`.

    `partial_refusal` says why the edge cannot even begin it, `final_refusal` why it cannot finish it.
    """

    function: str
    argument: Expr | None
    name: str
    dtype: pa.DataType
    states: tuple[StateColumn, ...] = ()
    finish: str = ""
    partial_refusal: str | None = None
    final_refusal: str | None = None

    @property
    def text(self) -> str:
        """The call as Spark SQL, without its alias."""
        return self.text_over(self._argument)

    @property
    def shown(self) -> str:
        """The call as a user would write it."""
        function, _, distinct = self.function.partition(" ")
        return f"{function}({'DISTINCT ' if distinct else ''}{self._argument})"

    @property
    def _argument(self) -> str:
        return "*" if self.argument is None or self.argument == _EVERY_ROW else sql(self.argument)

    def text_over(self, argument: str) -> str:
        """The call as Spark SQL over an argument that is written otherwise. A call with DISTINCT has a form that
        streaming Spark knows: it refuses DISTINCT in an aggregate."""
        function, _, distinct = self.function.partition(" ")
        return over_set(function, argument, self.dtype) if distinct else f"{function}({argument})"

    @property
    def state_schema(self) -> pa.Schema:
        return pa.schema([(s.name, s.dtype) for s in self.states])

    def finish_expression(self) -> Expr:
        """The result from the state's columns."""
        return bind(self.finish, self.state_schema)


def distinct(function: str) -> str:
    """The name of `function(DISTINCT x)` in `RECIPES`; no user can write this name."""
    return f"{function} distinct"


# DISTINCT changes nothing for these: a value that comes twice has the same effect as one that comes once.
IDEMPOTENT = frozenset(
    "min max any bool_and bool_or every some bit_and bit_or collect_set approx_count_distinct".split()
)
_SETS = {"collect_list": "collect_set", "array_agg": "collect_set"}  # with DISTINCT they are the sets


def without_distinct(function: str) -> str | None:
    """The aggregate without DISTINCT that gives what `function(DISTINCT x)` gives; None if there is none."""
    return function if function in IDEMPOTENT else _SETS.get(function)


def over_set(function: str, argument: str, dtype: pa.DataType) -> str:
    """`function(DISTINCT argument)` of type `dtype` as Spark SQL over the set of all values."""
    values, kind = f"collect_set({argument})", type_name(dtype)
    if function == "count":
        return f"CAST(size({values}) AS BIGINT)"
    if function == "sum":
        none = f"CAST(NULL AS {kind})"
        return f"aggregate({values}, {none}, (a, v) -> CAST(coalesce(a, CAST(0 AS {kind})) + v AS {kind}))"
    if function in ("avg", "mean"):
        if is_decimal(dtype):  # wide enough for every value: the result has four digits more than the values
            total = type_name(pa.decimal128(min(DECIMAL_DIGITS_MAX, dtype.precision + 6), dtype.scale - 4))
            finish = f"CAST(a.s / CAST(a.n AS DECIMAL(12,0)) AS {kind})"
        else:
            total, finish = "DOUBLE", "a.s / a.n"
        zero = f"named_struct('n', 0L, 's', CAST(0 AS {total}))"
        step = f"named_struct('n', a.n + 1L, 's', CAST(a.s + v AS {total}))"
        return f"aggregate({values}, {zero}, (a, v) -> {step}, a -> IF(a.n = 0L, NULL, {finish}))"
    mean = "a.mean + (v - a.mean) / (a.n + 1D)"
    step = f"named_struct('n', a.n + 1D, 'mean', {mean}, 'm2', a.m2 + (v - a.mean) * (v - ({mean})))"
    finish = _MOMENTS[function].format(n="a.n", m2="a.m2")
    return f"aggregate({values}, named_struct('n', 0D, 'mean', 0D, 'm2', 0D), (a, v) -> {step}, a -> {finish})"


_EVERY_ROW = literal(1, BIGINT)  # what count(*) counts
Recipe = Callable[[str, Expr], AggregateCall]


def aggregate(function: str, argument: Expr | None, name: str) -> AggregateCall:
    """The call under Spark's name for it. Functions that are not in the table run in Spark only."""
    recipe = RECIPES.get(function)
    if recipe is None:
        alone = f"the aggregate `{function}` runs in Spark only"
        dtype = result_type(function, [] if argument is None else [argument.dtype])
        return AggregateCall(function, argument, name, dtype, partial_refusal=alone)
    if argument is None:
        if function != "count":
            raise TypeMismatch(f"{function}(*) means nothing; name a column")
        argument = _EVERY_ROW
    if is_spark_only(argument.dtype):
        if function in _TYPED_SETS:
            raise TypeMismatch("only Spark knows the type of what follows DISTINCT; cast it: DISTINCT CAST(… AS …)")
        reason = refusal_of(argument) or "its argument exists in Spark only"
        dtype = BIGINT if function == distinct("count") else UNKNOWN
        return AggregateCall(function, argument, name, dtype, partial_refusal=reason)
    try:
        call = recipe(name, argument)
    except Refused as refused:
        dtype = refused.dtype or UNKNOWN
        return AggregateCall(function, argument, name, dtype, partial_refusal=refused.reason)
    partial = next((why for s in call.states if (why := refusal_of(s.lift))), None)
    final = call.final_refusal
    if not partial and not final:
        final = refusal_of(call.finish_expression())
    return AggregateCall(function, argument, name, call.dtype, call.states, call.finish, partial, final)


def state_name(name: str, suffix: str) -> str:
    """The column that holds a part of an aggregate's state. The prefix keeps it apart from users' columns."""
    return f"__{name}__{suffix}"


def _ref(name: str, suffix: str) -> str:
    return quoted(state_name(name, suffix))


def _states(name: str, argument: Expr, *lifts: tuple[str, str, str]) -> tuple[StateColumn, ...]:
    """State columns from (suffix, lift text over `x`, merge)."""
    schema = pa.schema([("x", argument.dtype)])
    return tuple(
        StateColumn(state_name(name, suffix), substitute(bind(text, schema), {"x": argument}), merge)
        for suffix, text, merge in lifts
    )


def _count(name: str, argument: Expr) -> AggregateCall:
    lift = "1L" if argument == _EVERY_ROW else "IF(x IS NULL, 0L, 1L)"
    states = _states(name, argument, ("n", lift, "sum"))
    return AggregateCall("count", argument, name, BIGINT, states, _ref(name, "n"))


def _sum(name: str, argument: Expr) -> AggregateCall:
    dtype = argument.dtype
    if not is_numeric(dtype):
        raise _not_a_number("sum", dtype)
    if is_fractional(dtype):
        states = _states(name, argument, ("sum", "CAST(x AS DOUBLE)", "sum"))
        return AggregateCall("sum", argument, name, DOUBLE, states, _ref(name, "sum"))
    if is_decimal(dtype):
        if dtype.precision + 10 > DECIMAL_DIGITS_MAX:
            result = pa.decimal128(DECIMAL_DIGITS_MAX, dtype.scale)
            raise Refused(f"a sum of {type_name(dtype)} could overflow unseen", result)
        result = pa.decimal128(dtype.precision + 10, dtype.scale)
        states = _states(name, argument, ("sum", f"CAST(x AS {type_name(result)})", "sum"))
        return AggregateCall("sum", argument, name, result, states, _ref(name, "sum"))
    if dtype != BIGINT:  # 2^32 rows of the largest int still fit
        states = _states(name, argument, ("sum", "CAST(x AS BIGINT)", "sum"))
        return AggregateCall("sum", argument, name, BIGINT, states, _ref(name, "sum"))
    # Arrow's sums wrap around silently. Sums of the two halves cannot; putting them together is checked once, at the
    # end.
    states = _states(name, argument, ("hi", "shiftright(x, 32)", "sum"), ("lo", "x & 4294967295L", "sum"))
    hi, lo = _ref(name, "hi"), _ref(name, "lo")
    finish = f"({hi} + shiftright({lo}, 32)) * 4294967296L + ({lo} & 4294967295L)"
    return AggregateCall("sum", argument, name, BIGINT, states, finish)


def _extreme(function: str) -> Recipe:
    def recipe(name: str, argument: Expr) -> AggregateCall:
        dtype = argument.dtype
        if pt.is_nested(dtype) or pt.is_binary(dtype) or dtype == VOID or pt.is_duration(dtype):
            raise Refused(f"{function} of {type_name(dtype)} values is left to Spark", dtype)
        value, nan = _ref(name, function), _ref(name, "nan")
        if not is_fractional(dtype):
            states = _states(name, argument, (function, "x", function))
            return AggregateCall(function, argument, name, dtype, states, value)
        lifts = ((function, "IF(isnan(x), NULL, x)", function), ("nan", "isnan(x)", "max"))
        a_nan = f"CAST('NaN' AS {type_name(dtype)})"
        finish = (
            f"IF({nan}, {a_nan}, {value})" if function == "max" else f"IF({value} IS NULL AND {nan}, {a_nan}, {value})"
        )
        return AggregateCall(function, argument, name, dtype, _states(name, argument, *lifts), finish)

    return recipe


def _avg(name: str, argument: Expr) -> AggregateCall:
    dtype = argument.dtype
    if not is_numeric(dtype):
        raise _not_a_number("avg", dtype)
    count = ("n", "IF(x IS NULL, 0L, 1L)", "sum")
    total, n = _ref(name, "sum"), _ref(name, "n")
    if not is_decimal(dtype):
        states = _states(name, argument, ("sum", "CAST(x AS DOUBLE)", "sum"), count)
        return AggregateCall("avg", argument, name, DOUBLE, states, f"IF({n} = 0, NULL, {total} / {n})")
    digits, scale = dtype.precision + 10, dtype.scale
    result = pa.decimal128(min(DECIMAL_DIGITS_MAX, dtype.precision + 4), min(DECIMAL_DIGITS_MAX, scale + 4))
    if digits > DECIMAL_DIGITS_MAX:
        raise Refused(f"an average of {type_name(dtype)} needs more digits than a decimal has", result)
    states = _states(name, argument, ("sum", f"CAST(x AS DECIMAL({digits},{scale}))", "sum"), count)
    finish = f"IF({n} = 0, NULL, CAST({total} / CAST({n} AS DECIMAL(12,0)) AS {type_name(result)}))"
    return AggregateCall("avg", argument, name, result, states, finish)


def _variance(function: str, finish: str) -> Recipe:
    """Count, mean and sum of squared distances from the mean. Plain sums of squares would lose the precision of small
    variances of large numbers."""

    def recipe(name: str, argument: Expr) -> AggregateCall:
        if not is_numeric(argument.dtype):
            raise _not_a_number(function, argument.dtype)
        states = _states(
            name,
            argument,
            ("n", "IF(x IS NULL, 0D, 1D)", "moments"),
            ("mean", "coalesce(CAST(x AS DOUBLE), 0D)", "moments"),
            ("m2", "0D", "moments"),
        )
        text = finish.format(n=_ref(name, "n"), m2=_ref(name, "m2"))
        return AggregateCall(function, argument, name, DOUBLE, states, text)

    return recipe


_SAMPLE = "IF({n} > 1D, {m2} / ({n} - 1D), NULL)"
_POPULATION = "IF({n} > 0D, {m2} / {n}, NULL)"


def _approx_count_distinct(name: str, argument: Expr) -> AggregateCall:
    """The edge removes duplicates and Spark counts. Spark's sketch gives the same answer with or without duplicates."""
    dtype = argument.dtype
    if not (is_integral(dtype) or dtype in (STRING, BOOLEAN) or pt.is_temporal(dtype) or is_decimal(dtype)):
        raise Refused(f"approx_count_distinct of {type_name(dtype)} values is left to Spark", BIGINT)
    states = _states(name, argument, ("value", "x", "distinct"))
    why = "Spark's HyperLogLog++ gives the estimate; the edge only removes duplicates"
    finish = _ref(name, "value")
    return AggregateCall("approx_count_distinct", argument, name, BIGINT, states, finish, final_refusal=why)


def distinct_value(values: list[exp.Expression]) -> exp.Expression:
    """What `count(DISTINCT a, b)` counts: a struct of its values, null if one of them is null."""
    if len(values) == 1:
        return values[0]
    known = exp.and_(*(exp.Not(this=exp.Is(this=exp.Paren(this=v.copy()), expression=exp.Null())) for v in values))
    fields = [exp.Alias(this=v.copy(), alias=exp.to_identifier(f"v{n}")) for n, v in enumerate(values)]
    return exp.Case(ifs=[exp.If(this=known, true=exp.Anonymous(this="struct", expressions=fields))])


def _count_distinct(name: str, argument: Expr) -> AggregateCall:
    """The edge removes duplicates and Spark counts what is left."""
    dtype = argument.dtype
    if pt.is_struct(dtype) and not any(_holds_fractions(f.type) for f in dtype.fields):
        raise Refused("Spark counts distinct structs", BIGINT)
    if not (is_integral(dtype) or dtype in (STRING, BOOLEAN) or pt.is_temporal(dtype) or is_decimal(dtype)):
        raise TypeMismatch(f"count(DISTINCT …) of {type_name(dtype)} values is not exact over a stream; cast them")
    return _over_set_in_spark("count", name, argument, BIGINT)


def _over_set_in_spark(function: str, name: str, argument: Expr, dtype: pa.DataType) -> AggregateCall:
    """`function(DISTINCT argument)`: the edge removes duplicates, and Spark does the rest."""
    states = _states(name, argument, ("value", "x", "distinct"))
    why = "Spark computes over the distinct values of all places; the edge only removes duplicates"
    return AggregateCall(distinct(function), argument, name, dtype, states, _ref(name, "value"), final_refusal=why)


def _distinct(function: str, plain: Recipe) -> Recipe:
    """`sum(DISTINCT x)` and the like, from the recipe of `sum(x)`, which knows the type of the result."""

    def recipe(name: str, argument: Expr) -> AggregateCall:
        wide = is_decimal(argument.dtype) and argument.dtype.precision + 11 > DECIMAL_DIGITS_MAX
        try:
            dtype = UNKNOWN if wide else plain(name, argument).dtype
        except Refused:
            dtype = UNKNOWN
        if dtype == UNKNOWN:
            what = f"{function}(DISTINCT …) of {type_name(argument.dtype)} values"
            raise TypeMismatch(f"{what} is not exact over a stream; cast them")
        if is_fractional(argument.dtype):
            raise Refused("the edge does not tell fractions apart as Spark does", dtype)
        return _over_set_in_spark(function, name, argument, dtype)

    return recipe


def _holds_fractions(dtype: pa.DataType) -> bool:
    """Whether a value has numbers of which two that are equal differ in their bits, or keys without an order."""
    return (
        pt.is_floating(dtype)
        or pt.is_map(dtype)
        or any(map(_holds_fractions, (dtype.field(i).type for i in range(dtype.num_fields))))
    )


def _not_a_number(function: str, dtype: pa.DataType) -> Exception:
    if pt.is_string(dtype) or dtype == VOID or pt.is_duration(dtype):
        return Refused(f"{function} of {type_name(dtype)} values is left to Spark")
    return TypeMismatch(f"{function} needs a number, got {type_name(dtype)}")


_MOMENTS = {
    "variance": _SAMPLE,
    "var_samp": _SAMPLE,
    "var_pop": _POPULATION,
    "stddev": f"sqrt({_SAMPLE})",
    "std": f"sqrt({_SAMPLE})",
    "stddev_samp": f"sqrt({_SAMPLE})",
    "stddev_pop": f"sqrt({_POPULATION})",
}
_NUMERIC: dict[str, Recipe] = {
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    **{name: _variance(name, finish) for name, finish in _MOMENTS.items()},
}
_TYPED_SETS: dict[str, Recipe] = {distinct(name): _distinct(name, plain) for name, plain in _NUMERIC.items()}
RECIPES: dict[str, Recipe] = {
    "count": _count,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "approx_count_distinct": _approx_count_distinct,
    **_NUMERIC,
    distinct("count"): _count_distinct,
    **_TYPED_SETS,
}

SPARK_AGGREGATES = frozenset(
    """
    any any_value approx_percentile array_agg bit_and bit_or bit_xor bool_and bool_or collect_list collect_set
    corr count_if count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kurtosis last last_value listagg max_by median min_by mode
    percentile percentile_approx percentile_cont percentile_disc product regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some string_agg try_avg try_sum
    """.split()
)

AGGREGATE_NAMES = frozenset(RECIPES) | SPARK_AGGREGATES
