"""Text and a schema become a typed tree; errors point at their place in the text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rove.model.errors import (
    ArithmeticFault,
    EdgeRefusal,
    ParseError,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
)
from rove.model.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, parse_schema
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.bind import bind
from rove.plan.expressions.tree import Foreign, Literal, columns_of, fallible, refusal_of, sql

SCHEMA = parse_schema("Train string, coach int, speed double, tags array<string>, pos struct<lat: double, lon: double>")


def evaluate(text: str, **columns: pa.Array) -> list[object]:
    batch = pa.record_batch(columns)
    return list(compile_expression(bind(text, batch.schema), batch.schema)(batch).to_pylist())


def test_names_are_found_whatever_their_case() -> None:
    assert sql(bind("TRAIN || Pos.LAT", SCHEMA)).startswith("concat(Train")


def test_a_text_that_was_bound_before_is_bound_to_the_columns_of_each_schema() -> None:
    narrow, wide = pa.schema([("x", INT)]), pa.schema([("x", BIGINT)])
    assert [bind("x + 1", each).dtype for each in (narrow, wide, narrow, wide)] == [INT, BIGINT, INT, BIGINT]
    for _ in range(2):
        with pytest.raises(UnknownColumn):
            bind("x + 1", SCHEMA)


def test_an_unknown_column_is_named_with_its_nearest_kin_and_place() -> None:
    with pytest.raises(UnknownColumn, match=r"no column `coch`.*did you mean `coach`") as caught:
        bind("1 + coch", SCHEMA)
    assert str(caught.value).endswith("in: 1 + coch\n          ^^^^")


def test_an_unknown_function_is_named_with_its_nearest_kin() -> None:
    with pytest.raises(UnknownFunction, match=r"no function `uper`; did you mean `upper`"):
        bind("uper(Train)", SCHEMA)


def test_an_unknown_field_names_those_there_are() -> None:
    with pytest.raises(TypeMismatch, match=r"`pos` has no field `lng`; there are: lat, lon"):
        bind("pos.lng", SCHEMA)


def test_a_type_mismatch_points_into_the_text() -> None:
    with pytest.raises(TypeMismatch) as caught:
        bind("coach + 1 > 2 AND tags + 1 > 0", SCHEMA)
    assert caught.value.span is not None
    start, end = caught.value.span
    assert "coach + 1 > 2 AND tags + 1 > 0"[start:end] == "tags + 1"


@pytest.mark.parametrize(
    "text",
    [
        "speed = 1 < coach",
        "Train || coach + 1",
        "coach & 1 << 2",
        "speed > 1 = coach IN (1)",
        "1 +",
        "a b c",
    ],
)
def test_what_the_parser_and_spark_group_differently_is_not_guessed(text: str) -> None:
    with pytest.raises(ParseError):
        bind(text, SCHEMA)


def test_an_element_of_the_result_of_a_call_is_read() -> None:
    assert sql(bind("array(coach, 2)[0]", SCHEMA)) == "(array(coach, 2))[0]"


def test_a_refused_part_keeps_its_columns_and_its_meaning() -> None:
    expr = bind("coach * (1 + soundex(Train))", SCHEMA)
    assert refusal_of(expr)
    assert columns_of(expr) == {"coach", "Train"}
    with pytest.raises(EdgeRefusal, match="to Spark: "):
        compile_expression(expr, SCHEMA)


def test_a_refused_operator_is_printed_in_parentheses() -> None:
    expr = bind("NOT (tags = tags)", SCHEMA)
    assert sql(expr) == "(NOT (tags = tags))"


def test_all_columns_are_read_by_a_star() -> None:
    assert columns_of(bind("to_json(struct(*))", SCHEMA)) == set(SCHEMA.names)


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("1", INT, 1),
        ("3000000000", BIGINT, 3_000_000_000),
        ("1e3", DOUBLE, 1000.0),
        ("-128Y", pa.int8(), -128),
        ("1 + 1", INT, 2),
        ("'it''s'", STRING, "it's"),
        ("'a' 'b'", STRING, "ab"),
        ("\"it''s\"", STRING, "it''s"),
        ("r'\\n'", STRING, "\\n"),
        ("2 > 1", BOOLEAN, True),
        ("X'F'", pa.binary(), b"\x0f"),
        ("CAST('12' AS int)", INT, 12),
    ],
)
def test_constants_are_folded_at_spark_s_types(text: str, dtype: pa.DataType, value: object) -> None:
    expr = bind(text, SCHEMA)
    assert isinstance(expr, Literal)
    assert (expr.dtype, expr.value.as_py()) == (dtype, value)


def test_a_constant_that_raises_waits_for_a_row() -> None:
    expr = bind("1 / 0", SCHEMA)
    assert fallible(expr)
    assert evaluate("if(a > 0, 1 / 0, a)", a=pa.array([-1, None])) == [-1.0, None]
    with pytest.raises(ArithmeticFault, match="division by zero"):
        evaluate("1 / 0", a=pa.array([1]))


def test_a_null_on_the_left_keeps_the_right_from_raising() -> None:
    columns = {"a": pa.array([None, 1]), "b": pa.array([0, 2])}
    assert evaluate("a + 10 / b", **columns) == [None, 6.0]
    assert evaluate("10 / b / a", **columns) == [None, 5.0]
    with pytest.raises(ArithmeticFault):
        evaluate("10 / b + a", **columns)


def test_a_cast_that_fails_names_the_value() -> None:
    with pytest.raises(ArithmeticFault, match=r"'x1' cannot be cast from string to int; use try_cast"):
        evaluate("CAST(a AS int)", a=pa.array(["7", "x1"]))
    assert evaluate("try_cast(a AS int)", a=pa.array(["7", "x1"])) == [7, None]


def test_a_time_without_a_date_is_left_to_spark_loudly() -> None:
    with pytest.raises(ArithmeticFault, match="a time without a date"):
        evaluate("CAST(a AS timestamp)", a=pa.array(["10:30"]))


def test_untyped_nulls_and_empty_batches_and_slices_are_no_trouble() -> None:
    assert evaluate("a + NULL", a=pa.array([1, 2])) == [None, None]
    assert evaluate("coalesce(a, 0) + 1", a=pa.array([], pa.int32())) == []
    assert evaluate("a[1]", a=pa.array([[1], [2, 3], [4, 5]]).slice(1)) == [3, 5]
    assert evaluate("array(a, a + 1)", a=pa.array([1, 2, 3]).slice(2)) == [[3, 4]]
    assert evaluate("upper(a)", a=pa.array(["x", "ß", None]).slice(1)) == ["SS", None]


def test_what_only_spark_knows_is_a_foreign_node() -> None:
    assert isinstance(bind("soundex(Train)", SCHEMA), Foreign)
