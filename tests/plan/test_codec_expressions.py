"""Every kind of expression comes back from the wire as the tree it was, with the kernel it had."""

from __future__ import annotations

from decimal import Decimal
from types import FunctionType
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from rove.model.schema import TIMESTAMP
from rove.plan import wire
from rove.plan.codec import decode, encode
from rove.plan.expressions.bind import bind
from rove.plan.expressions.codec import read_expression, same, write_expression
from rove.plan.expressions.functions import RULES
from rove.plan.expressions.functions.casts import cast
from rove.plan.expressions.tree import Call, Column, Expr, Literal, literal, sql, walk
from rove.plan.operators import Project, Source
from rove.plan.stages import Stages
from tests.differential.forms import FORMS
from tests.differential.strategies import schema_of


def alike(a: Any, b: Any) -> bool:
    """Whether two kernels are one function over equal values, as far as can be seen from outside."""
    if a is b:
        return True
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        cells = zip(a.__closure__ or (), b.__closure__ or (), strict=True)
        return a.__code__ is b.__code__ and all(alike(x.cell_contents, y.cell_contents) for x, y in cells)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(alike, a, b))
    return type(a) is type(b) and (repr(a) == repr(b) or repr(a).partition(" at 0x")[0] == repr(b).partition(" at ")[0])


def assert_expression_comes_back(expr: Expr, schema: pa.Schema) -> wire.Expression:
    word = msgspec.msgpack.decode(msgspec.msgpack.encode(write_expression(expr, schema)), type=wire.Expression)
    again = read_expression(word, schema)
    assert same(again, expr)
    for a, b in zip(walk(again), walk(expr), strict=True):
        assert a.dtype == b.dtype
        if isinstance(a, Call) and isinstance(b, Call):
            assert alike(a.kernel, b.kernel), f"{sql(expr)}: another kernel for {a.name}"
    return word


def test_every_form_of_expression_comes_back_with_its_kernel() -> None:
    for form in FORMS:
        schema = schema_of(form.columns)
        assert_expression_comes_back(bind(form.sql, schema), schema)


LITERALS: list[tuple[str, Literal]] = [
    ("null", literal(None, pa.null())),
    ("typed null", literal(None, pa.decimal128(9, 3))),
    ("true", literal(True, pa.bool_())),
    *[
        (f"int{t.bit_width} {v}", literal(v, t))
        for t in (pa.int8(), pa.int16())
        for v in (-(2 ** (t.bit_width - 1)), 0)
    ],
    *[(f"int {v}", literal(v, pa.int32())) for v in (-(2**31), -1, 2**31 - 1)],
    *[(f"bigint {v}", literal(v, pa.int64())) for v in (-(2**63), 5, 2**63 - 1)],
    *[
        (f"{t} {v!r}", literal(v, t))
        for t in (pa.float32(), pa.float64())
        for v in map(float, "0 -0 nan inf -inf 0.1".split())
    ],
    ("least double", literal(5e-324, pa.float64())),
    ("decimal", literal(Decimal("-0.10"), pa.decimal128(3, 2))),
    ("long decimal", literal(Decimal("9" * 38), pa.decimal128(38, 0))),
    ("text", literal("it's \\ `a`\n\t\r\0 ä 😀 {0} %", pa.string())),
    ("empty text", literal("", pa.string())),
    ("binary", literal(b"\x00\xff'", pa.binary())),
    ("date", Literal(pa.date32(), pa.scalar(-1, pa.int32()).cast(pa.date32()))),
    ("date past the calendar", Literal(pa.date32(), pa.scalar(3_000_000, pa.int32()).cast(pa.date32()))),
    ("moment", Literal(TIMESTAMP, pa.scalar(1_709_164_740_000_001, pa.int64()).cast(TIMESTAMP))),
    ("moment past the calendar", Literal(TIMESTAMP, pa.scalar(2**62, pa.int64()).cast(TIMESTAMP))),
    ("local moment", Literal(pa.timestamp("us"), pa.scalar(-1, pa.int64()).cast(pa.timestamp("us")))),
    *[
        (f"duration {v}", Literal(pa.duration("us"), pa.scalar(v, pa.duration("us"))))
        for v in (-1, 86_400_000_001, 2**62)
    ],
    ("a list", literal([1, None], pa.list_(pa.int32()))),
    ("a struct", literal({"x y": 1.5}, pa.struct([("x y", pa.float64())]))),
]


@pytest.mark.parametrize("expr", [e for _, e in LITERALS], ids=[n for n, _ in LITERALS])
def test_a_literal_comes_back_to_the_bit(expr: Literal) -> None:
    assert_expression_comes_back(expr, pa.schema([]))
    source = Source("s", pa.schema([("x", expr.dtype)]))
    stages = Stages.of({"out": Project(source, (("y", expr),))})
    assert decode(encode(stages)) == stages


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL '3' DAY",
        "INTERVAL '100:30' HOUR TO MINUTE",
        "TIMESTAMP'2020-01-01 00:00:00' - INTERVAL '-1.5' SECOND < current_timestamp()",
        "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        "INTERVAL '2' MONTH",
        "INTERVAL '-1-2' YEAR TO MONTH",
    ],
)
def test_an_interval_keeps_how_it_was_written(text: str) -> None:
    assert_expression_comes_back(bind(text, pa.schema([])), pa.schema([]))


def test_a_call_that_was_left_unfolded_stays_so() -> None:
    schema = pa.schema([("x", pa.int32()), ("t", TIMESTAMP)])
    unfolded = Call(pa.int64(), *_parts(cast(Column(pa.int32(), "x"), pa.int64()), literal(1, pa.int32())))
    assert isinstance(assert_expression_comes_back(unfolded, schema), wire.Filled)
    deeper = RULES["+"]((unfolded, cast(Column(pa.int32(), "x"), pa.int64())))
    assert_expression_comes_back(deeper, schema)
    late = Literal(TIMESTAMP, pa.scalar(2**62, pa.int64()).cast(TIMESTAMP))
    assert_expression_comes_back(RULES["gt"]((Column(TIMESTAMP, "t"), late)), schema)


def _parts(call: Expr, argument: Expr) -> tuple[Any, ...]:
    assert isinstance(call, Call)
    return call.name, (argument,), call.kernel, call.fallible, call.lazy, call.refusal, call.template


def test_an_expression_longer_than_a_text_may_be_comes_back_in_parts() -> None:
    schema = pa.schema([("x", pa.string())])
    half = RULES["concat"]((Column(pa.string(), "x"), literal("a" * 60_000, pa.string())))
    both = RULES["concat"]((half, half))
    assert isinstance(assert_expression_comes_back(both, schema), wire.Filled)
