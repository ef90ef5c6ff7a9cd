"""Compiles a typed tree to one function over a record batch.

Law: compile once; then a batch costs one kernel call for each node and nothing per row. Arrow's errors about the data
(overflow, division by zero, a failed cast) are raised as `ArithmeticFault` with the expression that caused them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import ArithmeticFault, EdgeRefusal, PlanError
from rove.plan.expressions.functions.masks import as_array, evaluate_where
from rove.plan.expressions.remainders import remainder_test
from rove.plan.expressions.tree import (
    Call,
    Column,
    Datum,
    Evaluator,
    Expr,
    Foreign,
    Literal,
    fallible,
    refusal_of,
    sql,
)


def compile_expression(expr: Expr, schema: pa.Schema) -> Evaluator:
    """A function from a batch of `schema` to a column (an Arrow Array) of `expr.dtype`."""
    if reason := refusal_of(expr):
        raise EdgeRefusal(f"the edge leaves `{sql(expr)}` to Spark: {reason}")
    evaluate = _column(expr, schema)
    return evaluate if isinstance(expr, Column) else guarded(evaluate, expr)


def guarded(evaluate: Evaluator, expr: Expr) -> Evaluator:
    """Turn Arrow's errors into ours. A try block costs nothing unless it catches."""

    def run(batch: pa.RecordBatch) -> Datum:
        try:
            return evaluate(batch)
        except pa.ArrowInvalid as error:
            raise ArithmeticFault(f"{error} in `{sql(expr)}`") from error

    return run


def evaluate_constant(expr: Expr) -> Literal:
    """The value of an expression without columns, or `ArithmeticFault` if it has none."""
    row = pa.record_batch({"_": pa.nulls(1)})
    value = compile_expression(expr, row.schema)(row)[0]
    return Literal(expr.dtype, value)


def _column(expr: Expr, schema: pa.Schema) -> Evaluator:
    """As `_compile`, but a constant comes out as a whole column."""
    if not isinstance(expr, Literal):
        return _compile(expr, schema)
    longest = pa.repeat(expr.value, 0)

    def constant(batch: pa.RecordBatch) -> Datum:
        nonlocal longest
        if len(longest) < batch.num_rows:
            longest = pa.repeat(expr.value, batch.num_rows)
        return longest.slice(0, batch.num_rows)  # shorter columns are slices of the longest so far

    return constant


def _compile(expr: Expr, schema: pa.Schema) -> Evaluator:
    match expr:
        case Column(name=name):
            index = schema.get_field_index(name)
            if index < 0:
                raise PlanError(f"column `{name}` is not in {schema.names}")
            return methodcaller("column", index)
        case Literal(value=value):
            return lambda batch: value
        case Call(name="eq" | "ne") if (test := remainder_test(expr)) is not None:
            return _apply(test.kernel(), (test.value,), (_compile(test.value, schema),))
        case Call(args=args, kernel=kernel, lazy=lazy) if kernel is not None:
            # Kernels want at least one whole column, or they would answer with a scalar.
            constant = all(isinstance(a, Literal) for a in args)
            inputs = tuple((_column if constant else _compile)(a, schema) for a in args)
            if lazy:
                return _apply_lazily(kernel, inputs)
            order = evaluation_order(expr.name, len(args))
            if any(fallible(args[i]) for i in order[1:]):
                return _apply_in_order(expr.name, kernel, inputs, order, tuple(a.dtype for a in args))
            return _apply(kernel, args, inputs)
        case Foreign() | Call():
            raise EdgeRefusal(f"`{sql(expr)}` runs in Spark only")
    raise PlanError(f"no such node: {expr!r}")


# Spark computes every argument of these functions. For all others it stops at the first argument that is null.
_COMPUTES_ALL = frozenset(["concat", "concat_ws", "greatest", "least", "named_struct", "array", "in", "<=>"])
_DIVISOR_FIRST = frozenset(["/", "%", "div", "pmod", "try_divide", "try_mod"])
_TRIED_DIVISIONS = frozenset(["try_divide", "try_mod"])  # for these, a zero divisor stops Spark as a null does


def evaluation_order(name: str, arguments: int) -> tuple[int, ...]:
    """The order in which Spark computes arguments and stops at the first null. Of length one if no null stops it."""
    if name in _COMPUTES_ALL:
        return (0,) if arguments else ()
    return (1, 0) if name in _DIVISOR_FIRST else tuple(range(arguments))


def _apply_in_order(
    name: str,
    kernel: Callable[..., Datum],
    inputs: tuple[Evaluator, ...],
    order: tuple[int, ...],
    types: tuple[pa.DataType, ...],
) -> Evaluator:
    """An argument that can raise is computed only for rows on which the arguments before it are not null.

    As long as no argument has nulls, all rows are computed and nothing is masked.
    """
    stops_at_zero = 1 if name in _TRIED_DIVISIONS else None
    zero = pc.cast(pa.scalar("0"), types[1]) if stops_at_zero else None

    def run(batch: pa.RecordBatch) -> Datum:
        values: dict[int, Datum] = {}
        alive: pa.Array | None = None
        for i in order:
            if alive is None:
                value = as_array(inputs[i](batch), batch.num_rows)
            else:
                value = evaluate_where(alive, inputs[i], batch, types[i])
            values[i] = value
            if value.null_count:
                alive = pc.is_valid(value) if alive is None else pc.and_(alive, pc.is_valid(value))
            if i == stops_at_zero:
                divides = pc.fill_null(pc.not_equal(value, zero), False)
                alive = divides if alive is None else pc.and_(alive, divides)
        return kernel(*(values[i] for i in range(len(inputs))))

    return run


def _apply_lazily(kernel: Callable[..., Datum], inputs: tuple[Evaluator, ...]) -> Evaluator:
    return lambda batch: kernel(batch, *inputs)


def _apply(kernel: Callable[..., Datum], args: tuple[Expr, ...], inputs: tuple[Evaluator, ...]) -> Evaluator:
    """Apply a kernel. The common shapes are written out, because a call in Python costs as much as a small kernel."""
    call = arrow_call(kernel)
    match inputs:
        case (a,) if call is not None:
            return lambda batch: call([a(batch)])
        case (a,):
            return lambda batch: kernel(a(batch))
        case (a, b) if call is not None:
            if isinstance(args[1], Literal) and not isinstance(args[0], Literal):
                value = args[1].value
                return lambda batch: call([a(batch), value])
            return lambda batch: call([a(batch), b(batch)])
        case (a, b):
            return lambda batch: kernel(a(batch), b(batch))
    return lambda batch: kernel(*(f(batch) for f in inputs))


def arrow_call(kernel: Callable[..., Datum]) -> Callable[[list[Datum]], Datum] | None:
    """Arrow's own function behind a kernel of `pyarrow.compute`, without the wrapper in Python; None if there is more
    to it."""
    about = getattr(kernel, "__arrow_compute_function__", None)
    if about is None or about["options_class"]:
        return None
    call: Callable[[list[Datum]], Datum] = pc.get_function(about["name"]).call
    return call
