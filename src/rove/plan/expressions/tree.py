"""The typed tree of an expression.

Law: a node knows its type, its Spark SQL text, and whether the edge computes it. A node that the edge cannot compute is
still part of the plan; it carries the reason, which `explain()` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rove.model.names import quoted, quoted_text
from rove.model.schema import is_spark_only, type_name

Datum = Any  # a pyarrow Array, or a Scalar that stands for a whole column
Evaluator = Callable[[pa.RecordBatch], Datum]


@dataclass(frozen=True, slots=True)
class Expr:
    """Any node; `dtype` is the Arrow type that stands for Spark's."""

    dtype: pa.DataType


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column of the input, by its exact name."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant. `value` is an Arrow scalar of the literal's type. `text` is its SQL where the value is not enough: a
    date plus an interval written in days is a date, plus one written in hours it is a timestamp.

    Two literals are equal if their values are equal to the bit: -0.0 is not 0.0, and NaN equals NaN.
    """

    value: pa.Scalar = field(compare=False)
    text: str | None = None
    identity: object = field(init=False, repr=False)

    def __post_init__(self) -> None:
        exact = repr(self.value.as_py()) if pa.types.is_floating(self.dtype) else self.value
        object.__setattr__(self, "identity", exact)


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function or operator applied to arguments that already have the types it wants.

    `kernel` takes the evaluated arguments. A `lazy` kernel takes the batch and the arguments' evaluators instead, so
    that a branch that is not taken is not computed. `template` prints the call if it is not written as `name(args)`.
    """

    name: str
    args: tuple[Expr, ...]
    kernel: Callable[..., Datum] | None = field(compare=False, repr=False, default=None)
    fallible: bool = field(compare=False, repr=False, default=False)
    lazy: bool = field(compare=False, repr=False, default=False)
    refusal: str | None = field(compare=False, default=None)
    template: str | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class Foreign(Expr):
    """Text that only Spark understands, with the columns it reads."""

    text: str
    columns: tuple[Column, ...]
    refusal: str


def literal(value: object, dtype: pa.DataType) -> Literal:
    """A constant from a Python value."""
    return Literal(dtype, value if isinstance(value, pa.Scalar) else pa.scalar(value, dtype))


def children(expr: Expr) -> tuple[Expr, ...]:
    """The nodes directly below."""
    match expr:
        case Call():
            return expr.args
        case Foreign():
            return expr.columns
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and all below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def columns_of(expr: Expr) -> frozenset[str]:
    """The names of the columns an expression reads."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, Column))


def refusal_of(expr: Expr) -> str | None:
    """Why the edge does not compute this expression, or None if it does."""
    for node in walk(expr):
        if isinstance(node, Call | Foreign) and node.refusal:
            return node.refusal
        if is_spark_only(node.dtype):
            return f"`{sql(node)}` has type {type_name(node.dtype)}, which only Spark holds"
    return None


def fallible(expr: Expr) -> bool:
    """Whether some row can make the expression raise."""
    return any(isinstance(node, Foreign) or (isinstance(node, Call) and node.fallible) for node in walk(expr))


def substitute(expr: Expr, replacements: Mapping[str, Expr]) -> Expr:
    """The expression with columns replaced. A `Foreign` node is left as it is."""
    match expr:
        case Column(name=name):
            return replacements.get(name, expr)
        case Call(args=args):
            changed = tuple(substitute(a, replacements) for a in args)
            return expr if changed == args else replace(expr, args=changed)
        case _:
            return expr


def sql(expr: Expr) -> str:
    """The expression as Spark SQL text that parses back to the same tree."""
    match expr:
        case Column(name=name):
            return quoted(name)
        case Literal():
            return expr.text or literal_sql(expr.value, expr.dtype)
        case Foreign(text=text):
            return text
        case Call(template=str(template), args=args):
            return template.format(*(sql(a) for a in args))
        case Call(name=name, args=args):
            return f"{name}({', '.join(sql(a) for a in args)})"
    raise TypeError(f"no such node: {expr!r}")


_SUFFIX = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def literal_sql(scalar: pa.Scalar, dtype: pa.DataType) -> str:
    """A constant as SQL of exactly its type."""
    if not scalar.is_valid:
        return "NULL" if pa.types.is_null(dtype) else f"CAST(NULL AS {type_name(dtype)})"
    if pa.types.is_timestamp(dtype):
        moment = _EPOCH + timedelta(microseconds=scalar.value)
        kind = "TIMESTAMP" if dtype.tz else "TIMESTAMP_NTZ"
        return f"{kind}'{moment.replace(tzinfo=None).isoformat(sep=' ')}'"
    if pa.types.is_duration(dtype):
        days, rest = divmod(abs(scalar.value), 86_400_000_000)
        text = f"{days} {timedelta(microseconds=rest)!s:0>8}"
        return f"INTERVAL '{'-' if scalar.value < 0 else ''}{text}' DAY TO SECOND"
    value = scalar.as_py()
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            lowest = value == -(2 ** (dtype.bit_width - 1))
            return f"CAST('{value}' AS {type_name(dtype)})" if lowest else f"{value}{_SUFFIX[dtype]}"
        case float():
            return f"CAST('{value!r}' AS {type_name(dtype)})"
        case Decimal():
            return f"CAST('{value:f}' AS {type_name(dtype)})"
        case str():
            return quoted_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case date():
            return f"DATE'{value.isoformat()}'"
    raise TypeError(f"no SQL text for a literal of type {type_name(dtype)}")
