"""Rows come in the forms that users have them in, and mean the same in each."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rove
from rove.api.local.data import by_origin
from rove.model.errors import SchemaMismatch
from rove.model.schema import parse_schema

SCHEMA = "train string, coach int, ts timestamp, load float, tags array<string>"
ROWS = [
    {"train": "S41", "coach": 1, "ts": datetime(2026, 5, 4, 8, tzinfo=UTC), "load": 0.5, "tags": ["full"]},
    {"train": None, "coach": 2, "ts": datetime(2026, 5, 4, 9, tzinfo=UTC), "load": 1.5, "tags": None},
]
NAIVE = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in ROWS]  # type: ignore[union-attr]


def rows_of(data: Any, schema: str = SCHEMA) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return rove.Session.local().stream("t", schema=schema, data=data).select("*").toArrow().to_pylist()


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        iter(ROWS),
        pa.Table.from_pylist(ROWS),
        pa.Table.from_pylist(ROWS).to_batches(),
        pa.RecordBatch.from_pylist(ROWS),
        pa.Table.from_pylist(ROWS).select(["ts", "tags", "train", "load", "coach"]),
        pa.Table.from_pylist(ROWS).set_column(0, "train", pa.array(["S41", None]).dictionary_encode()),
        pd.DataFrame(ROWS, index=[7, 3]),
        pl.DataFrame(ROWS),
        {"S41": ROWS[:1], "S42": pd.DataFrame(ROWS[1:])},
        [{**row, "ts": row["ts"].isoformat()} for row in ROWS],  # type: ignore[attr-defined]
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
        [tuple(row.values()) for row in ROWS],
        [pa.Table.from_pylist([row]) for row in ROWS],
    ],
    ids=lambda data: type(data).__name__,
)
def test_all_forms_of_data_give_the_same_rows(data: Any) -> None:
    assert rows_of(data) == ROWS


@pytest.mark.parametrize(
    "data",
    [NAIVE, pa.Table.from_pylist(NAIVE), pd.DataFrame(NAIVE), [{**row, "ts": str(row["ts"])} for row in NAIVE]],
    ids=lambda data: type(data).__name__,
)
def test_times_without_a_zone_are_utc_and_that_is_said(data: Any) -> None:
    with pytest.warns(UserWarning, match="the times in `ts` of `t` have no zone; they are taken as UTC") as said:
        found = rove.Session.local().stream("t", schema=SCHEMA, data=data)
    assert said[0].filename == __file__
    assert found.select("*").toArrow().to_pylist() == ROWS


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([{"coach": 2**40}], "column `coach` of `t` is int, and a value is not: Value 1099511627776 too large"),
        (pa.table({"coach": [2**40]}), "column `coach` of `t` is int, and a value does not fit: Integer value 10995"),
        (pa.table({"coach": [1.5]}), "column `coach` of `t` is int, and the data has double"),
        (pa.table({"coach": ["1"]}), "column `coach` of `t` is int, and the data has string"),
        (pa.table({"coach": [1], "trian": [1]}), "`t` has no column `trian`; there are: coach"),
        (pa.table({"train": [1]}), "`t` has no column `train`"),
        (pa.table({}), "data of `t` has 0 columns named `coach`; give: coach int"),
        (pa.table([[1], [2]], names=["coach", "coach"]), "data of `t` has 2 columns named `coach`"),
        ([{"coach": 1, "trian": 2}], "`t` has no column `trian`"),
        ([{"coach": "one"}], "a value is not: Could not convert 'one'"),
        ([{"coach": 1}, {"coach": 1.5}], "column `coach` of `t` is int, and a value is not: 1.5 is not a whole number"),
        (pd.DataFrame({"coach": [1.5, None]}), "column `coach` of `t` is int, and the data has double"),
        ({"S41": [1, 2]}, "data of `t` is list of int; give a pyarrow table, a pandas frame, a list of dicts"),
        ([[1], [2]], "data of `t` is list of list; give a pyarrow table"),
        ({"S41": {"coach": [1], "trian": [1]}}, "`t` has no column `trian`"),
        ([(1, 2)], "a row of `t` has 2 values, and the stream 1 columns"),
        (5, "data of `t` is int; give a pyarrow table"),
        ("rows", "data of `t` is str; give a pyarrow table"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(data: Any, text: str) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        by_origin("t", parse_schema("coach int"), data)
    assert text in str(refused.value)


def test_a_dict_of_columns_is_rows_and_a_dict_of_values_is_one_row() -> None:
    assert rows_of({"a": [1, 2], "b": (3, 4)}, "a int, b int") == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert rows_of({"a": 1, "b": 2}, "a int, b int") == [{"a": 1, "b": 2}]
    assert rows_of({"a": [{"a": 1}]}, "a int") == [{"a": 1}]  # the rows of the device `a`
    assert rows_of({"S41": {"a": [1, 2]}}, "a int") == [{"a": 1}, {"a": 2}]  # the columns of a device
    with pytest.raises(SchemaMismatch, match="different numbers of values: `a` has 1, `b` has 2"):
        rows_of({"a": [1], "b": [1, 2]}, "a int, b int")


def test_integers_of_a_pandas_frame_may_be_missing() -> None:
    frame = pd.DataFrame({"coach": [1, None], "n": [2**53, 1]})
    assert rows_of(frame, "coach int, n bigint") == [{"coach": 1, "n": 2**53}, {"coach": None, "n": 1}]
    assert rows_of([{"coach": 2.0}], "coach int") == [{"coach": 2}]


@pytest.mark.parametrize(
    ("schema", "row", "text"),
    [
        ("a array<int>", {"a": [1, 2.5]}, "2.5 is not a whole number"),
        ("a struct<x: array<bigint>>", {"a": {"x": [0.1]}}, "0.1 is not a whole number"),
        ("a map<string,int>", {"a": {"k": 0.5}}, "0.5 is not a whole number"),
        ("a timestamp", {"a": 1_777_881_602}, "is a number; give a datetime, or a text such as"),
        ("a date", {"a": 20_000}, "is a number; give a datetime"),
    ],
)
def test_a_value_that_would_be_cut_is_refused(schema: str, row: dict[str, Any], text: str) -> None:
    with pytest.raises(SchemaMismatch, match=text):
        by_origin("t", parse_schema(schema), [row])


def test_wide_and_nested_types_are_taken_if_their_values_fit() -> None:
    schema = "a array<int>, b struct<x: smallint, y: string>, d decimal(10,2), e binary"
    rows = [{"a": [1, 2], "b": {"x": 3, "y": "z"}, "d": Decimal("1.50"), "e": b"e"}]
    wide = pa.schema(
        [
            ("a", pa.large_list(pa.int64())),
            ("b", pa.struct([("x", pa.int64()), ("y", pa.large_string())])),
            ("d", pa.decimal128(38, 2)),
            ("e", pa.large_binary()),
        ]
    )
    assert rows_of(pa.Table.from_pylist(rows, wide), schema) == rows
    other = pa.Table.from_pylist([{"b": {"z": 1}}])
    with pytest.raises(SchemaMismatch, match="column `b` of `t` is struct"):
        by_origin("t", parse_schema("b struct<x: smallint>"), other)


def test_no_rows_are_data_too() -> None:
    assert rows_of([]) == []
    assert rows_of(pa.Table.from_pylist(ROWS).slice(0, 0)) == []
