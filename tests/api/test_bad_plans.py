"""Bad plans are refused when they are written, and the error says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rove
from rove import functions as F
from rove.model.errors import (
    ExpressionError,
    ParseError,
    PlanError,
    RoveError,
    SetupError,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
)


@pytest.fixture
def trains() -> Any:
    return rove.Session.local().stream(
        "trains",
        schema="train string, coach int, ts timestamp, boarding int, place struct<lat: double, lon: double>",
    )


BAD: list[tuple[str, Callable[[Any], Any], type[RoveError], str]] = [
    (
        "an unknown column",
        lambda t: t.where("bording > 0"),
        UnknownColumn,
        r"no column `bording`; there are: train.*did you mean `boarding`",
    ),
    ("an unknown column by name", lambda t: t.select("trian"), UnknownColumn, "did you mean `train`"),
    (
        "an unknown column by F.col",
        lambda t: t.withColumn("x", F.col("cooach") + 1),
        UnknownColumn,
        "did you mean `coach`",
    ),
    (
        "an unknown field",
        lambda t: t.select("place.lab"),
        TypeMismatch,
        "no field `lab`; there are: lat, lon",
    ),
    ("an unknown function", lambda t: t.selectExpr("uper(train)"), UnknownFunction, "did you mean `upper`"),
    ("a condition that is not boolean", lambda t: t.where("boarding + 1"), TypeMismatch, "must be boolean"),
    (
        "a wrong type",
        lambda t: t.selectExpr("boarding + place"),
        TypeMismatch,
        r"needs numbers.*\n.*boarding \+ place\n\s+\^+",
    ),
    (
        "a wrong type in agg",
        lambda t: t.withWatermark("ts", "1 second").groupBy(F.window("ts", "1 second")).agg(F.sum("place")),
        TypeMismatch,
        "sum needs a number, got struct",
    ),
    ("text that is not SQL", lambda t: t.where("boarding >"), ParseError, "not Spark SQL"),
    ("two statements", lambda t: t.where("true; drop table x"), ParseError, "expected one"),
    (
        "an aggregate over two windows",
        lambda t: t.groupBy(F.window("ts", "1 second"), F.window("ts", "2 seconds")).count(),
        PlanError,
        "one window at most",
    ),
    (
        "an aggregate without a watermark",
        lambda t: t.groupBy(F.window("ts", "1 second")).count(),
        PlanError,
        "withWatermark",
    ),
    ("an aggregate in select", lambda t: t.select(F.sum("boarding")), ExpressionError, "use it in groupBy"),
    (
        "no aggregate in agg",
        lambda t: t.withWatermark("ts", "1 second").groupBy(F.window("ts", "1 second")).agg(F.col("train")),
        PlanError,
        "is not an aggregate",
    ),
    (
        "a distinct median",
        lambda t: t.groupBy("train").agg(F.expr("median(DISTINCT boarding)")),
        PlanError,
        "no DISTINCT in an aggregate",
    ),
    (
        "a watermark on a string",
        lambda t: t.withWatermark("train", "5 seconds"),
        PlanError,
        "needs a timestamp column; `train` is string",
    ),
    (
        "a watermark on no column",
        lambda t: t.withWatermark("tss", "5 seconds"),
        PlanError,
        "did you mean `ts`",
    ),
    (
        "a delay that is no duration",
        lambda t: t.withWatermark("ts", "a while"),
        PlanError,
        "not a fixed length of time",
    ),
    (
        "a window of months",
        lambda t: t.withWatermark("ts", "1 second").groupBy(F.window("ts", "1 month")).count(),
        PlanError,
        "not a fixed length of time",
    ),
    (
        "a window on a string",
        lambda t: t.withWatermark("ts", "1 second").groupBy(F.window("train", "1 second")).count(),
        TypeMismatch,
        "window needs a timestamp, got string",
    ),
    (
        "a window that skips rows",
        lambda t: t.withWatermark("ts", "1 second").groupBy(F.window("ts", "1 second", "2 seconds")).count(),
        PlanError,
        "would skip rows",
    ),
    (
        "a column twice, written",
        lambda t: t.select("train", F.col("coach").alias("train")).writeStream.toTable("x"),
        PlanError,
        "`train` appears twice, and rows that are stored need columns of different names",
    ),
    (
        "a column twice, on a node",
        lambda t: t.select("train", "train").writeStream.queryName("q").format("log").start(),
        PlanError,
        "`train` appears twice, and rows that are stored",
    ),
    (
        "a name that two columns have",
        lambda t: t.select("train", F.col("coach").alias("train")).where("train = 'x'"),
        PlanError,
        "`train` is ambiguous: 2 columns have this name",
    ),
    ("no columns left", lambda t: t.select("train").drop("train"), PlanError, "leave no column"),
    ("a union of different widths", lambda t: t.union(t.select("train")), PlanError, "same number"),
    (
        "a union of different types",
        lambda t: t.select("place").union(t.select("ts")),
        RoveError,
        "no common type|together",
    ),
    ("a join without a condition", lambda t: t.join(t), PlanError, "never ends"),
    ("a join of no kind", lambda t: t.join(t, on="train", how="sideways"), PlanError, "no join `sideways`"),
    (
        "a join that doubles names, written",
        lambda t: t.join(t, on="train").writeStream.toTable("x"),
        PlanError,
        "appears twice, and rows that are stored",
    ),
    ("a name that a join has doubled", lambda t: t.join(t, on="train").select("boarding"), PlanError, "is ambiguous"),
    ("a scan without time", lambda t: t.scan(F.max("boarding").alias("m")), PlanError, "withWatermark"),
    (
        "a step after inSpark",
        lambda t: t.inSpark(lambda df: df).where("true"),
        PlanError,
        "put this step into its function",
    ),
    ("a boolean of a column", lambda t: t.where(bool(F.col("boarding") > 1)), TypeError, "use & for and"),
]


@pytest.mark.parametrize(("build", "kind", "complaint"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_plan_is_refused(trains: Any, build: Callable[[Any], Any], kind: type[Exception], complaint: str) -> None:
    with pytest.raises(kind, match=complaint):
        build(trains)


def test_an_unknown_stream_names_those_there_are() -> None:
    session = rove.Session.local()
    session.stream("trains", schema="a int")
    with pytest.raises(PlanError, match="no stream `train`; there are: trains; did you mean `trains`"):
        session.stream("train")


def test_a_stream_without_data_says_how_to_give_it_some(trains: Any) -> None:
    with pytest.raises(PlanError, match="has no data in this session"):
        trains.toArrow()


@pytest.mark.parametrize("schema", ["a", "a nosuchtype", "a int, A string", "a decimal(50, 2)"])
def test_a_bad_schema_is_refused(schema: str) -> None:
    with pytest.raises(RoveError):
        rove.Session.local().stream("s", schema=schema)


def test_a_session_with_another_computer_needs_keys() -> None:
    with pytest.raises(SetupError, match="without keys only addresses of this computer can be dialed"):
        rove.Session("tcp://coordinator:4700").stream("trains")
