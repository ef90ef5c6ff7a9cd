"""What streaming Spark refuses is refused when a query is submitted: by a list, and by Spark itself."""

from __future__ import annotations

from typing import Any

import pytest

import rove
from rove.cloud.analysis import check_plan
from rove.model.errors import PlanError
from rove.plan.optimizer import optimize
from rove.plan.spark.streaming import refuse_unstreamable

TIMED = "t.ts BETWEEN u.ts AND u.ts + INTERVAL 1 MINUTE"
# Each statement, and the output modes in which streaming Spark runs it.
STATEMENTS = {
    "SELECT a, b FROM t WHERE soundex(s) = 'X000'": "append update",
    "SELECT a, count(*) AS n FROM t GROUP BY a": "update",
    "SELECT count(*) AS n FROM t": "update",
    "SELECT ts, mode(b) AS m FROM t GROUP BY ts": "append update",
    "SELECT window.start, mode(b) AS m FROM t GROUP BY window(ts, '10 seconds')": "append update",
    "SELECT session_window.start, count(*) AS n FROM t GROUP BY session_window(ts, '10 seconds')": "append",
    "SELECT count(DISTINCT a) AS n FROM t GROUP BY window(ts, '10 seconds')": "append update",
    "SELECT count(DISTINCT a) AS n FROM t GROUP BY b": "update",
    "SELECT a, b, count(*) AS n FROM t GROUP BY CUBE (a, b)": "update",
    "SELECT first(a) IGNORE NULLS AS q FROM t GROUP BY window(ts, '10 seconds')": "append update",
    "SELECT first(a) IGNORE NULLS AS q FROM t": "update",
    "SELECT a, explode(arr) AS x FROM t": "append update",
    "SELECT x, count(*) AS n FROM t LATERAL VIEW explode(arr) e AS x GROUP BY x": "update",
    "SELECT DISTINCT a FROM t": "append update",
    "SELECT n, count(*) AS m FROM (SELECT a, count(*) AS n FROM t GROUP BY a) GROUP BY n": "",
    "SELECT n, u.c FROM (SELECT a, count(*) AS n FROM t GROUP BY a) v JOIN u ON v.a = u.a": "",
    "SELECT c, n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) v JOIN k ON v.a = k.a": "update",
    "SELECT DISTINCT n FROM (SELECT a, count(*) AS n FROM t GROUP BY a)": "update",
    "SELECT w, max(n) AS m FROM (SELECT window(ts, '9 seconds') w, a, count(*) n FROM t GROUP BY 1, 2) GROUP BY w": (
        "append update"
    ),
    "SELECT a FROM t UNION SELECT a FROM u": "append update",
    "SELECT t.a, c FROM t JOIN u ON t.a = u.a": "append update",
    "SELECT t.a, c FROM t, u WHERE t.a = u.a": "append update",
    "SELECT t.a, c FROM t LEFT JOIN u ON t.a = u.a": "",
    f"SELECT t.a, c FROM t LEFT JOIN u ON t.a = u.a AND {TIMED}": "append",
    f"SELECT t.a, c FROM t FULL JOIN u ON t.a = u.a AND {TIMED}": "append",
    "SELECT t.a, c FROM t LEFT JOIN u ON t.a = u.a AND t.ts = u.ts": "append",
    "SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a": "",
    f"SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a AND {TIMED}": "append update",
    "SELECT a FROM t LEFT ANTI JOIN u ON t.a = u.a": "",
    "SELECT a FROM t LEFT ANTI JOIN k ON t.a = k.a": "append update",
    "SELECT a FROM t WHERE a IN (SELECT a FROM k)": "append update",
    "SELECT a FROM t WHERE a NOT IN (SELECT a FROM k)": "append update",
    "SELECT a FROM t WHERE a IN (SELECT a FROM u)": "",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": "",
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": "",
    f"SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND {TIMED})": "append update",
    f"SELECT a, b FROM t WHERE b > 1 AND a IN (SELECT a FROM u WHERE c > 1 AND {TIMED})": "append update",
    f"SELECT a, explode(arr) AS x FROM t WHERE a IN (SELECT a FROM u WHERE {TIMED})": "append update",
    "SELECT * FROM (SELECT a, s, b FROM t) PIVOT (sum(b) FOR s IN ('x', 'y'))": "update",
    "SELECT * FROM (SELECT window(ts, '10 seconds') AS w, s, b FROM t) PIVOT (mean(b) FOR s IN ('x', 'y'))": (
        "append update"
    ),
    "SELECT count(DISTINCT a, b) AS n FROM t GROUP BY window(ts, '10 seconds')": "append update",
    "SELECT sum(DISTINCT a) AS q, avg(DISTINCT b) AS r FROM t GROUP BY window(ts, '10 seconds')": "append update",
    "SELECT stddev(DISTINCT a) AS q, max(DISTINCT b) AS r, collect_list(DISTINCT s) AS l FROM t": "update",
    "SELECT a, sum(DISTINCT b) AS q, count(DISTINCT t.s) AS n FROM t GROUP BY CUBE (a)": "update",
    "SELECT x, count(DISTINCT a) AS n FROM t LATERAL VIEW explode(arr) e AS x GROUP BY x": "update",
    "SELECT * FROM (SELECT a, s, b FROM t) PIVOT (sum(b) FOR (s, a) IN (('x', 1), ('y', 2)))": "update",
    "SELECT t.a, n FROM t LEFT JOIN VALUES (1, 'one'), (2, 'two') AS v(a, n) ON t.a = v.a": "append update",
    "SELECT a FROM t WHERE a IN (SELECT * FROM VALUES (1), (2))": "append update",
    "SELECT a, (SELECT max(c) FROM k) AS m FROM t": "append update",
    "SELECT t.a, c FROM t CROSS JOIN k": "append update",
    "SELECT t.a, c FROM t JOIN k ON t.b > k.c": "append update",
}


@pytest.fixture(scope="module")
def session(spark: Any) -> rove.Session:
    session = rove.Session.local()
    t = session.stream("t", schema="a int, b int, s string, ts timestamp, arr array<int>")
    session.name("t", t.withWatermark("ts", "1 minute"))
    session.name("u", session.stream("u", schema="a int, c int, ts timestamp").withWatermark("ts", "1 minute"))
    spark.createDataFrame([(1, 2)], "a int, c int").createOrReplaceTempView("stored_k")
    session.name("k", session.read.schema("a int, c int").table("stored_k"))
    return session


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_list_says_what_streaming_spark_says(spark: Any, session: rove.Session, statement: str, mode: str) -> None:
    plan = optimize(session.sql(statement).plan)
    if mode in STATEMENTS[statement].split():
        refuse_unstreamable(plan, mode)
        check_plan(spark, plan, mode)
        return
    with pytest.raises(PlanError):
        refuse_unstreamable(plan, mode)
    with pytest.raises(PlanError, match="streaming Spark refuses this query"):
        check_plan(spark, plan, mode)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u) OR b > 1",
        "SELECT a, (SELECT max(c) FROM u) AS m FROM t",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT row_number() OVER (ORDER BY a) AS q FROM t",
        "SELECT sum(a) OVER (PARTITION BY b) AS q FROM t",
        "SELECT median(DISTINCT a) AS q FROM t",
        "SELECT rank() OVER w AS q FROM t WINDOW w AS (ORDER BY a)",
        "SELECT monotonically_increasing_id() AS q FROM t",
        "SELECT t.a, c FROM t JOIN u ON t.a < u.c",
    ],
)
def test_what_no_mode_can_stream_is_refused_when_it_is_written(session: rove.Session, statement: str) -> None:
    with pytest.raises(PlanError, match="streaming Spark"):
        session.sql(statement)


def test_spark_looks_into_functions_over_dataframes(spark: Any, session: rove.Session) -> None:
    numbered = session.stream("t").inSpark(lambda df: df.selectExpr("row_number() OVER (ORDER BY a) AS n"))
    with pytest.raises(PlanError, match="streaming Spark refuses this query: Window function is not supported"):
        check_plan(spark, optimize(numbered.plan), "append")


def test_what_spark_cannot_read_is_a_plan_error_in_its_words(spark: Any, session: rove.Session) -> None:
    lost = session.stream("t").inSpark(lambda df: df.selectExpr("nope"))
    with pytest.raises(
        PlanError, match="Spark refuses this query: A column, variable, or function parameter with name"
    ):
        check_plan(spark, optimize(lost.plan), "append")
