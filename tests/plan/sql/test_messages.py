"""A refusal shows what the user wrote: no name that Rove or its parser has made, and a caret under the word."""

from __future__ import annotations

import pytest

import rove
from rove import functions as F
from rove.model.errors import PlanError

# Each statement, the word under which the carets stand, and the reason.
MESSAGES = {
    "SELECT u.a.x AS q FROM t JOIN u ON t.a = u.a": ("u.a.x", "`a` is int, not a struct, so it has no field `x`"),
    "SELECT a.x AS q FROM t FULL JOIN u USING (a)": ("a.x", "`a` is int, not a struct, so it has no field `x`"),
    "SELECT t.a FROM t FULL JOIN u USING (a) WHERE a": ("a", "a condition must be boolean; `a` is int"),
    "SELECT t.a FROM t JOIN u ON t.a = u.a WHERE u.a": ("u.a", "a condition must be boolean; `a` is int"),
    "SELECT a -> ts AS q FROM t": ("a -> ts", "`a -> ts` is not read here; use inSpark(…)"),
    "SELECT t.a FROM t JOIN u JOIN u AS v ON u.c = v.c ON t.a = u.a": (
        "JOIN",
        "JOIN before ON cannot be used on a stream: write each ON right after its own JOIN",
    ),
    "SELECT sum(a).x AS q FROM t": ("sum(a).x", "`sum(a)` is bigint, not a struct, so it has no field `x`"),
    "SELECT a FROM t GROUP BY a HAVING max(t.a).y > 1": (
        "max(t.a).y",
        "`max(a)` is int, not a struct, so it has no field `y`",
    ),
    "SELECT a + 1 AS x, x.y AS z FROM t": ("x.y", "`x` is int, not a struct, so it has no field `y`"),
    "SELECT t.a FROM t CROSS JOIN (SELECT nope AS x) o": ("nope", "no column `nope`; there are: none"),
    "(t)": ("t", "expected a SELECT in the parentheses"),
    "SELECT ({}) FROM t": ("{}", "a statement has no parameters; write the value"),
    "SELECT * FROM t PIVOT (max(st) FOR a IN (1))": (
        "max(st) FOR a IN (1",
        "PIVOT of arrays and structs is not read here; write FILTER",
    ),
    "SELECT a FROM t TIMESTAMP AS OF '2020-01-01'": (
        "AS",
        "AS OF cannot be used on a stream: a stream has no versions",
    ),
    "WITH RECURSIVE w AS (SELECT a FROM t UNION ALL SELECT a + 1 FROM w) SELECT a FROM w": (
        "WITH",
        "WITH RECURSIVE cannot be used on a stream: recursion is not read here; write the steps out",
    ),
    "SELECT a FROM t UNION ALL SELECT ts FROM t": ("ts FROM t", "int and timestamp have no common type"),
}


@pytest.fixture(scope="module")
def session() -> rove.Session:
    session = rove.Session.local()
    t = session.stream("t", schema="a int, ts timestamp, arr array<int>, st struct<x: int>")
    session.name("t", t.withWatermark("ts", "1 minute"))
    session.name("u", session.stream("u", schema="a int, c int, ts timestamp").withWatermark("ts", "1 minute"))
    return session


@pytest.mark.parametrize("statement", MESSAGES)
def test_a_refusal_shows_what_the_user_wrote(session: rove.Session, statement: str) -> None:
    word, reason = MESSAGES[statement]
    with pytest.raises(PlanError) as refused:
        session.sql(statement)
    said, shown, carets = str(refused.value).splitlines()
    assert said == reason
    assert shown == f"  in: {statement}"
    start, end = carets.index("^"), len(carets)
    assert carets.strip() == "^" * (end - start)
    assert shown[start:end] == word


def test_a_field_of_an_aggregate_is_refused_under_the_name_of_the_aggregate(session: rove.Session) -> None:
    grouped = session.stream("t").groupBy(F.window("ts", "10 seconds"))
    with pytest.raises(PlanError, match="`sum\\(a\\)` is bigint, not a struct, so it has no field `x`"):
        grouped.agg(F.expr("sum(a).x + 1").alias("q"))


def test_a_verb_that_is_written_as_a_statement_shows_the_users_part(session: rove.Session) -> None:
    with pytest.raises(PlanError) as refused:
        session.stream("t").selectExpr("a", "explode(arr) AS (p, v)")
    assert str(refused.value).splitlines() == [
        "`explode` makes 1 columns, and here are 2 names",
        "  in: a, explode(arr) AS (p, v)",
        "         ^^^^^^^^^^^^^^^^^^^^^",
    ]


def test_a_cross_join_of_two_streams_names_the_verb(session: rove.Session) -> None:
    with pytest.raises(PlanError) as refused:
        session.stream("t").crossJoin(session.stream("u"))
    assert str(refused.value) == (
        "crossJoin needs a table on one side (session.read); two streams need join(…, condition)"
    )


@pytest.mark.parametrize("keys", ["ts", "a, ts", "ALL"])
def test_groups_by_event_time_end_also_where_spark_computes_them(session: rove.Session, keys: str) -> None:
    from rove.plan.optimizer import optimize
    from rove.plan.spark.streaming import refuse_unstreamable

    grouped = session.sql(f"SELECT ts FROM t LATERAL VIEW explode(arr) e AS x GROUP BY {keys}")
    refuse_unstreamable(optimize(grouped.plan), "append")
    endless = session.sql("SELECT a FROM t LATERAL VIEW explode(arr) e AS x GROUP BY a")
    with pytest.raises(PlanError, match="an aggregate without a window of event time never ends"):
        refuse_unstreamable(optimize(endless.plan), "append")
