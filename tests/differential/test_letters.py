"""Upper and lower case agree with Spark's ICU on every letter there is."""

from __future__ import annotations

import pyarrow as pa

from rove.plan.expressions.functions.letters import lower, upper

CODES = [c for c in range(0x20000) if not 0xD800 <= c < 0xE000]


def test_every_letter_has_spark_s_case(spark) -> None:
    letters = pa.array([chr(c) for c in CODES])
    table = spark.createDataFrame(pa.table({"a": letters})).selectExpr("upper(a) AS u", "lower(a) AS l").toArrow()
    assert upper(letters).to_pylist() == table["u"].to_pylist()
    assert lower(letters).to_pylist() == table["l"].to_pylist()


def test_sigma_looks_at_its_neighbours_as_spark_s_does(spark) -> None:
    parts = ["", "Σ", "Α", "α", ".", " ", "1", "\u0301", "'", "İ", "ʰ", "\u00ad", "Σ'", "-"]
    words = pa.array([f"{x}{y}Σ{z}{w}" for x in parts for y in parts for z in parts for w in parts])
    table = spark.createDataFrame(pa.table({"a": words})).selectExpr("lower(a) AS l").toArrow()
    assert lower(words).to_pylist() == table["l"].to_pylist()
