"""Verbs of PySpark give the same columns and rows on a stream as on a DataFrame, or are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as spark_functions

from rove import functions as rove_functions
from rove.model.errors import PlanError, UdfError
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import highest_cut
from tests.differential.statements.verdicts import Judge

Verb = Callable[[Any, Any, Any, Any], Any]  # of two streams, a table, and the functions
EDGE: dict[str, Verb] = {
    "withColumns": lambda t, u, k, F: t.withColumns({"x": F.col("a") + 1, "b": F.lit(0)}),
    "withColumnsRenamed": lambda t, u, k, F: t.withColumnsRenamed({"a": "x", "nope": "y"}),
    "brackets": lambda t, u, k, F: t[t.a > 1][["a", "b"]].select(F.lit([1, 2]).alias("l"), "a")[["l"]],
    "toDF": lambda t, u, k, F: u.toDF("p", "q", "r", "s"),
    "transform": lambda t, u, k, F: t.transform(lambda df, n: df.select((F.col("a") + n).alias("q")), 2),
    "a name of an expression": lambda t, u, k, F: t.select(F.expr("a + 1"), F.col("b") * 2),
    "fillna number": lambda t, u, k, F: t.fillna(7),
    "fillna fraction": lambda t, u, k, F: t.fillna(1.5),
    "fillna text": lambda t, u, k, F: t.fillna("none", subset=["s", "a"]),
    "fillna dict": lambda t, u, k, F: t.fillna({"a": 7, "s": "none"}),
    "na.fill": lambda t, u, k, F: t.na.fill(0, ["d"]),
    "dropna": lambda t, u, k, F: t.dropna(),
    "dropna some": lambda t, u, k, F: t.na.drop(subset=["a", "d"]),
    "dropna all": lambda t, u, k, F: t.dropna(how="all", subset=["a", "b"]),
    "dropna thresh": lambda t, u, k, F: t.dropna(thresh=2, subset=["a", "b", "s"]),
    "replace": lambda t, u, k, F: t.replace(1, 7),
    "replace several": lambda t, u, k, F: t.na.replace([1, 2], [3, 4], ["a", "d"]),
    "replace text": lambda t, u, k, F: t.replace({"x": "z", "y": None}),
    "replace in other columns": lambda t, u, k, F: t.replace("x", "z", subset=["a", "s"]),
    "replace zero and NaN": lambda t, u, k, F: t.replace({0.0: 9.5, float("nan"): 1.0}, subset=["d"]),
    "replace a boolean": lambda t, u, k, F: t.select((t.a > 1).alias("q"), "s").replace(True, False),
    "unpivot": lambda t, u, k, F: t.unpivot("s", ["a", "b"], "k", "v"),
    "unpivot wider": lambda t, u, k, F: t.unpivot(["s", "ts"], ["a", "d"], "k", "v"),
    "melt the rest": lambda t, u, k, F: u.melt(["s", "ts"], None, "k", "v"),
    "one column twice, then once": lambda t, u, k, F: t.select("a", "a").select("a"),
    "elements and fields of calls": lambda t, u, k, F: t.selectExpr(
        "array(a, b)[0]", "struct(a, b).a", "array(b)[0]+1"
    ),
    "pivot in a window": lambda t, u, k, F: t.groupBy(F.window("ts", "10 seconds")).pivot("s", ["x"]).sum("b"),
}
IN_SPARK: dict[str, Verb] = {
    "agg": lambda t, u, k, F: t.agg(F.sum("b").alias("q")),
    "rollup": lambda t, u, k, F: t.rollup("a").count(),
    "cube": lambda t, u, k, F: t.cube("a", "s").agg(F.sum("b").alias("q")),
    "pivot": lambda t, u, k, F: t.groupBy("a").pivot("s", ["x", "y"]).sum("b"),
    "pivot count": lambda t, u, k, F: t.groupBy("a").pivot("s", ["x", "z"]).count(),
    "pivot null": lambda t, u, k, F: t.groupBy("a").pivot("s", ["x", None]).agg(F.max("b")),
    "pivot several": lambda t, u, k, F: t.groupBy("s").pivot("a", [1, 2]).agg(F.sum("b").alias("q"), F.min("b")),
    "explode": lambda t, u, k, F: t.select("a", F.explode("arr")),
    "explode under a name": lambda t, u, k, F: t.select("a", F.explode_outer("arr").alias("x"), "b"),
    "posexplode": lambda t, u, k, F: t.select("a", F.posexplode("arr")),
    "posexplode under names": lambda t, u, k, F: t.select("a", F.posexplode("arr").alias("p", "v")),
    "crossJoin": lambda t, u, k, F: t.select("a").crossJoin(k.select("c")),
    "sum_distinct": lambda t, u, k, F: t.groupBy("a").agg(F.sum_distinct("b").alias("n")),
    "countDistinct": lambda t, u, k, F: t.groupBy("a").agg(F.countDistinct("b", "s").alias("n")),
    "FILTER": lambda t, u, k, F: t.groupBy("a").agg(F.expr("sum(b) FILTER (WHERE s = 'x')").alias("n")),
    "first": lambda t, u, k, F: t.groupBy("a").agg(F.first("b", ignorenulls=True).alias("n")),
    "listagg": lambda t, u, k, F: t.agg(F.listagg("s", ",").alias("n")),
    "round of percentile": lambda t, u, k, F: t.agg(F.round(F.percentile("b", 0.5), 1).alias("n")),
    "count_if": lambda t, u, k, F: t.agg(F.count_if(F.col("b") > 1).alias("n")),
    "elements": lambda t, u, k, F: t.select(F.transform("arr", lambda x: x + F.col("a")).alias("q")),
    "elements and places": lambda t, u, k, F: t.select(F.transform("arr", lambda x, i: x + i).alias("q")),
    "filter, exists": lambda t, u, k, F: t.select(
        F.filter("arr", lambda x: x > 1).alias("p"), F.exists("arr", lambda x: x > 1).alias("q")
    ),
    "columns of one name": lambda t, u, k, F: t.join(u, t.a == u.a).select(t.a, u.a.alias("ua"), u["c"], "b"),
    "filtered before": lambda t, u, k, F: (
        t.where("b > 0").join(u, (t.a == u.a) & (t.b >= u.c), "left").select(t.s, u.c)
    ),
    "columns of one name by alias": lambda t, u, k, F: (
        t.alias("l")
        .join(u.alias("r"), F.col("l.a") == F.col("r.a"))
        .where(F.col("l.b") + F.col("r.c") > 2)
        .select("l.a", "r.s", F.upper("l.s").alias("up"))
    ),
    "a stream with itself": lambda t, u, k, F: (
        u.alias("x").join(u.alias("y"), F.col("x.a") == F.col("y.c")).select("x.a", F.col("y.a").alias("b"))
    ),
    "three": lambda t, u, k, F: t.join(u, t.a == u.a).join(k, u.a == k.a).select(t.b, u.s, k.c),
    "a side that is renamed in part": lambda t, u, k, F: t.join(
        u.withColumnRenamed("ts", "uts").drop("s"), (t.a == u.a) & (u.c > 0)
    ).select(t.a, u.c, "b", "uts"),
    "a side that is selected": lambda t, u, k, F: (
        t.select("a", "b").join(u.select("c", "a"), (t.a == u.a) & (t.b == u.c)).select(t.b, u.a.alias("ua"))
    ),
    "a column of one side of a join before": lambda t, u, k, F: (
        t.select("a", "b").join(u.select("c"), t.a == u.c).join(k, t.b == k.a).select(t.a, u.c.alias("uc"), k.c)
    ),
    "a key of a join by name before": lambda t, u, k, F: (
        t.select("a", "b").join(u.select("a", "c"), "a").join(k, t.a == k.a).select(t.b, k.c.alias("kc"))
    ),
    "drop of one side": lambda t, u, k, F: t.join(u, t.a == u.a).drop(u.a, u.s, u.ts),
    "drop of a name": lambda t, u, k, F: t.join(u, t.a == u.a).drop("a", "nope").drop(t.s, u.ts),
    "drop, then a group": lambda t, u, k, F: (
        t.join(u, t.a == u.a, "left").drop(u.a, t.s, u.ts).groupBy("s").agg(F.sum("b").alias("n"))
    ),
    "drop, then a column of one side": lambda t, u, k, F: t.join(u, t.a == u.a).drop(u.a, u.s, u.ts).select(t.a, u.c),
    "by name, with other shared columns": lambda t, u, k, F: t.join(u, "a").select("a", "b", u.s, t.ts),
    "by name, then drop": lambda t, u, k, F: t.join(u, "a", "left").drop(u.s, u.ts).where("b > 1"),
    "by name, right": lambda t, u, k, F: t.join(u, ["a"], "right").drop(t.s, t.ts).select("a", "c", "s"),
    "by name, full": lambda t, u, k, F: t.join(u, "a", "full").drop(u.s, u.ts),
    "by name, three": lambda t, u, k, F: t.join(u, ["a", "s"]).drop(u.ts).join(k, "a").drop(k.c),
    "by name, all but the key of one side": lambda t, u, k, F: t.join(u, "a").drop(t.a, u.s, u.ts),
    "two columns of one name": lambda t, u, k, F: t.select("a", F.col("b").alias("a")),
    "renamed to a name that is there": lambda t, u, k, F: t.withColumnRenamed("b", "a").drop("st", "arr"),
    "all of both sides": lambda t, u, k, F: t.join(u, t.a == u.a).select("*"),
    "drop, with a time of both sides": lambda t, u, k, F: t.join(u, t.a == u.a).drop(u.a),
    "by name, with a time of both sides": lambda t, u, k, F: t.join(u, "a"),
    "both sides without duplicates": lambda t, u, k, F: t.drop("st", "arr").join(u, "a").distinct(),
    "both sides, other names": lambda t, u, k, F: u.join(k, u.a == k.a).toDF("p", "q", "r", "v", "w", "x"),
    "both sides, one name renamed": lambda t, u, k, F: u.join(k, "a").withColumnRenamed("c", "z").select("a", "s"),
    "both sides, one more column": lambda t, u, k, F: t.join(u, "a").withColumn("q", t.b + u.c).select("q", u.s),
    "both sides, a group": lambda t, u, k, F: t.join(u, "a").groupBy(t.s).agg(F.max(u.s), F.sum("b")),
    "both sides, a pivot": lambda t, u, k, F: t.join(u, "a").groupBy(t.s).pivot("b", [1, 2]).agg(F.max(u.s)),
    "both sides, united": lambda t, u, k, F: u.join(k, "a").union(u.join(k, "a")),
    "names of expressions of one side": lambda t, u, k, F: t.join(u, t.a == u.a).select(t.a + 1, F.upper(u.s)),
    "both sides in a function": lambda t, u, k, F: (
        u.join(k, "a").inSpark(lambda df: df.toDF(*"pqrvw")) if hasattr(u, "inSpark") else u.join(k, "a").toDF(*"pqrvw")
    ),
    "elements of calls in Spark": lambda t, u, k, F: t.selectExpr("map('k', a)['k']", "array(st)[0].x"),
    "semi": lambda t, u, k, F: t.join(u, t.a == u.a, "left_semi"),
    "a table": lambda t, u, k, F: t.join(k, t.a == k.a, "left_anti").select("a", "b"),
    "json": lambda t, u, k, F: t.select(F.to_json(F.struct("a", "b")).alias("q")),
}
REFUSED: dict[str, tuple[Verb, str]] = {
    "orderBy": (lambda t, u, k, F: t.orderBy("a"), "orderBy.* cannot be used on a stream: it would need all rows"),
    "over": (lambda t, u, k, F: t.select(F.max("a").over(None)), "streaming Spark has no OVER"),
    "brackets": (lambda t, u, k, F: t[1.5], "brackets take a name, a place"),
    "limit": (lambda t, u, k, F: t.limit(2), "limit.* cannot be used on a stream: which rows of a stream come first"),
    "describe": (lambda t, u, k, F: t.describe(), "describe.* cannot be used on a stream: it would need all rows"),
    "count": (lambda t, u, k, F: t.count(), "count.* cannot be used on a stream: a query runs for ever"),
    "intersect": (lambda t, u, k, F: t.intersect(t), "intersect.* cannot be used on a stream"),
    "nothing": (lambda t, u, k, F: t.whatever(), "a stream has no verb or column `whatever`"),
    "pivot of all": (lambda t, u, k, F: t.groupBy("a").pivot("s").count(), "name the values of pivot"),
    "pivot of rows": (
        lambda t, u, k, F: t.groupBy("a").pivot("s", ["x"]).agg(F.count("*")),
        "cannot stand after pivot",
    ),
    "a name of both sides": (lambda t, u, k, F: t.join(u, t.a == u.a).select("a"), "`a` is ambiguous"),
    "nulls of a join that is not selected": (
        lambda t, u, k, F: t.join(u, t.a == u.a).fillna(0),
        "select the columns first",
    ),
    "a join that is not selected, written": (
        lambda t, u, k, F: t.join(u, t.a == u.a).writeStream.toTable("x"),
        "column `a` appears twice, and rows that are stored need columns of different names",
    ),
    "a group by a name of both sides": (lambda t, u, k, F: t.join(u, "a").groupBy("ts").count(), "`ts` is ambiguous"),
    "a new column for two": (lambda t, u, k, F: t.join(u, "a").withColumn("ts", F.lit(1)), "`ts` is ambiguous"),
    "time of both sides": (lambda t, u, k, F: t.join(u, "a").withWatermark("ts", "1 second"), "`ts` is ambiguous"),
    "a name of both sides in brackets": (lambda t, u, k, F: t.join(u, "a")["ts"], "`ts` is ambiguous"),
    "a column of nobody": (lambda t, u, k, F: t.join(u, t.a == k.a).select(t.a), "column `a` belongs to a stream that"),
    "a column that was renamed": (
        lambda t, u, k, F: t.join(u.withColumnRenamed("a", "x"), t.a == u.a).select(t.b),
        "column `a` belongs to a stream that is not here, or was renamed",
    ),
    "a column of both sides": (
        lambda t, u, k, F: u.where("a > 1").join(u.select("a", "c"), u.a == u.c).select("c"),
        "both sides of the join have it",
    ),
    "replace of kinds": (lambda t, u, k, F: t.replace({1: "x"}), "one kind of them in one call"),
    "replace of too few": (lambda t, u, k, F: t.replace([1, 2], [3]), "replace got 2 values, and 1"),
    "several names": (lambda t, u, k, F: t.select(F.col("a").alias("p", "v")), "several names for one value"),
    "too many names": (
        lambda t, u, k, F: t.select(F.explode("arr").alias("p", "v")),
        "makes 1 columns, and here are 2",
    ),
    "a name of a star": (lambda t, u, k, F: t.select(F.expr("*").alias("q")), "stands for several columns"),
    "drop of all": (lambda t, u, k, F: u.join(k, u.a == k.a).drop("a", "c", "s", "ts"), "would leave no column"),
    "drop of an expression": (lambda t, u, k, F: t.join(u, t.a == u.a).drop(t.a + 1), "drop takes columns"),
    "grouping sets": (lambda t, u, k, F: t.groupingSets([["a"]], "a"), "GROUPING SETS in session.sql"),
    "trigger": (lambda t, u, k, F: t.writeStream.trigger(availableNow=True), "sources here never end"),
    "trigger once": (lambda t, u, k, F: t.writeStream.trigger(once=True), "sources here never end"),
    "trigger in real time": (lambda t, u, k, F: t.writeStream.trigger(realTime="5 minutes"), "no append mode"),
    "continuous trigger": (lambda t, u, k, F: t.writeStream.trigger(continuous="1 second"), "no watermarks"),
    "cross join of streams": (
        lambda t, u, k, F: t.crossJoin(u.toDF("p", "q", "r", "v")),
        "crossJoin needs a table on one side",
    ),
}


@pytest.fixture(scope="module")
def judge(spark: Any) -> Judge:
    return Judge(spark)


@pytest.mark.parametrize("name", [*EDGE, *IN_SPARK])
def test_a_verb_gives_sparks_columns_and_rows(judge: Judge, name: str) -> None:
    verb = EDGE.get(name) or IN_SPARK[name]
    stream = verb(*(judge.session.stream(n) for n in "tuk"), rove_functions)
    frame = verb(*(judge.theirs.table(n) for n in "tuk"), spark_functions)
    cut = highest_cut(optimize(stream.plan))
    assert cut.needs_spark == (name in IN_SPARK)
    assert judge.difference(judge.rows_of(cut), frame) == ""


@pytest.mark.parametrize("name", REFUSED)
def test_a_verb_that_cannot_stream_is_refused_by_name(judge: Judge, name: str) -> None:
    verb, why = REFUSED[name]
    with pytest.raises(PlanError, match=why) as refused:
        verb(*(judge.session.stream(n) for n in "tuk"), rove_functions)
    assert "__" not in str(refused.value)  # such names are Rove's own


def test_the_schema_is_printed_as_spark_prints_it(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    build = "a", "CAST(b AS BIGINT) AS b", "st", "arr", "CAST(a AS DECIMAL(5,2)) AS m", "ts", "s"
    judge.session.stream("t").selectExpr(*build).printSchema()
    ours = capsys.readouterr().out
    judge.theirs.table("t").selectExpr(*build).printSchema()
    theirs = capsys.readouterr().out
    assert [line.split(" (")[0] for line in ours.split()] == [line.split(" (")[0] for line in theirs.split()]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda df: None, "returned NoneType; it has to return a DataFrame"),
        (lambda df: {}["x"], "raised KeyError: 'x'"),
    ],
)
def test_a_fault_of_a_function_in_spark_names_the_function(
    judge: Judge, function: Callable[[Any], Any], why: str
) -> None:
    with pytest.raises(UdfError, match=f"the function `<lambda>` of inSpark {why}"):
        judge.rows_of(highest_cut(optimize(judge.session.stream("t").inSpark(function).plan)))
