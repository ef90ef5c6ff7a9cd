"""What statements mean, without a Spark: rows that the edge computes, and plans of what it cannot.

Each case stands for one rule of the reader, so that a mistake in a rule is found in a second. The rows are Spark's:
`tests/cloud/test_sql_against_spark.py` compares them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import rove
from rove.model.errors import PlanError
from rove.plan.explain import explain
from rove.plan.operators import Join, Project, SparkSelect, Table, walk
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import highest_cut

ROWS: dict[str, list[dict[str, Any]]] = {
    "t": [
        {"a": 1, "b": 1, "s": "x", "ts": "2026-01-01T00:00:01Z", "arr": [1]},
        {"a": 1, "b": 2, "s": "y", "ts": "2026-01-01T00:00:02Z", "arr": []},
        {"a": 2, "b": None, "s": None, "ts": "2026-01-01T00:00:03Z", "arr": [2, 3]},
        {"a": 2, "b": 4, "s": "x", "ts": "2026-01-01T00:00:11Z", "arr": []},
    ],
    "u": [{"a": 1, "c": 7, "ts": "2026-01-01T00:00:01Z"}],
}
COLUMNS = {"t": "a int, b int, s string, ts timestamp, arr array<int>", "u": "a int, c int, ts timestamp"}
WINDOW = "window(ts, '10 seconds')"


@pytest.fixture(scope="module")
def session() -> rove.Session:
    session = rove.Session.local()
    for name, schema in COLUMNS.items():
        session.name(name, session.stream(name, schema=schema, data=ROWS[name]).withWatermark("ts", "1 minute"))
    table = session.read.schema("a int, d int").table("stored")
    session.name("k", table)
    return session


AT_THE_EDGE: dict[str, list[tuple[Any, ...]]] = {
    f"SELECT a, count(*) AS n FROM t GROUP BY {WINDOW}, 1": [(1, 2), (2, 1), (2, 1)],
    f"SELECT a AS b, b AS x, count(*) AS n FROM t GROUP BY {WINDOW}, a, b HAVING b > 1": [(1, 2, 1), (2, 4, 1)],
    f"SELECT a + 1 AS q, sum(b) AS n FROM t GROUP BY {WINDOW}, q HAVING q > 2": [(3, 4), (3, None)],
    f"SELECT sum(b) FILTER (WHERE s = 'x') AS n FROM t GROUP BY {WINDOW}": [(1,), (4,)],
    f"SELECT count(*) FILTER (WHERE b IS NULL) AS n FROM t GROUP BY {WINDOW}": [(0,), (1,)],
    f"SELECT x, y FROM (SELECT {WINDOW} AS w, s, b FROM t) PIVOT (count(b) FOR s IN ('x', 'y'))": [(1, 1), (1, None)],
    f"SELECT `null` FROM (SELECT {WINDOW} AS w, s, a FROM t) PIVOT (max(a) FOR s IN (NULL))": [(2,), (None,)],
    f"SELECT p FROM (SELECT {WINDOW} AS w, s, a, b FROM t) PIVOT (max(b) FOR (s, a) IN (('x', 2) AS p))": [
        (4,),
        (None,),
    ],
    "WITH t AS (SELECT b AS a FROM t WHERE b > 1) SELECT a FROM t": [(2,), (4,)],
    "WITH w(y, x) AS (SELECT a, b FROM t) SELECT x FROM w WHERE y = 2": [(4,), (None,)],
    "SELECT * EXCEPT (arr, ts, s) FROM t WHERE a = 2": [(2, 4), (2, None)],
    "SELECT a AS b, b + 1 AS q FROM t WHERE a = 1": [(1, 2), (1, 3)],
    "SELECT a AS x, x + 1 AS y FROM t WHERE b = 4": [(2, 3)],
    "SELECT a FROM t WHERE s IS NULL UNION ALL SELECT c FROM u": [(2,), (7,)],
}


@pytest.mark.parametrize("text", AT_THE_EDGE)
def test_a_statement_gives_these_rows_at_the_edge(session: rove.Session, text: str) -> None:
    assert not highest_cut(optimize(session.sql(text).plan)).needs_spark
    found = session.sql(text).toArrow().to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=str) == AT_THE_EDGE[text]


REFUSED = {
    "SELECT a FROM t HAVING a > 1": "neither in GROUP BY nor in an aggregate",
    "SELECT a FROM t, u": "`a` is ambiguous|needs an equality",
    "SELECT u.a FROM t": "no column `u.a`",
    "SELECT t.a FROM t JOIN u ON t.b < u.c": "needs an equality",
    "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)": "no NOT IN with a stream",
    "SELECT a FROM t WHERE a > 1 OR a IN (SELECT a FROM u)": "no stream in a subquery",
    "SELECT x FROM t LATERAL VIEW explode(arr) e AS x WHERE x IN (SELECT x FROM t) OR x > 1": "no stream in a subquery",
    "SELECT a FROM t TABLESAMPLE (10 PERCENT)": "TABLESAMPLE cannot be used",
    "SELECT a, count(*) AS n FROM t GROUP BY 3": "the select list has 2 entries",
    "SELECT a FROM t JOIN VALUES (1), (2, 3) AS v ON t.a = col1": "rows of VALUES have 1 and 2 values",
    "SELECT sum(DISTINCT s) AS q FROM t": "is not exact over a stream; cast them",
    "SELECT median(DISTINCT b) AS q FROM t": "no DISTINCT in an aggregate",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_statement_is_refused_by_name(session: rove.Session, text: str) -> None:
    with pytest.raises(PlanError, match=REFUSED[text]):
        session.sql(text)


def joins(session: rove.Session, text: str) -> list[Join]:
    return [op for op in walk(session.sql(text).plan) if isinstance(op, Join)]


def test_exists_is_a_semi_join_and_not_exists_an_anti_join(session: rove.Session) -> None:
    inner = "SELECT 1 FROM u WHERE u.a = t.a AND u.c > 1"
    (there,) = joins(session, f"SELECT a FROM t WHERE EXISTS ({inner})")
    (not_there,) = joins(session, f"SELECT a FROM t WHERE NOT EXISTS ({inner})")
    assert (there.how, not_there.how) == ("left_semi", "left_anti")
    assert there.left_keys == ("a",)
    assert "u.c" not in str(there.condition), "a condition on the subquery's own column is a filter below the join"


def test_a_condition_of_where_matches_the_sides_of_a_comma(session: rove.Session) -> None:
    (join,) = joins(session, "SELECT t.a, c FROM t, u WHERE t.a = u.a AND t.b > 1")
    assert (join.how, join.left_keys, join.right_keys) == ("inner", ("a",), ("__1_a",))


@pytest.mark.parametrize(("how", "shown"), [("LEFT", "a"), ("RIGHT", "__1_a"), ("FULL", "__key_a")])
def test_using_shows_the_key_of_the_side_that_is_always_there(session: rove.Session, how: str, shown: str) -> None:
    plan = session.sql(f"SELECT a FROM t {how} JOIN u USING (a)").plan
    assert isinstance(plan, Project)
    assert [getattr(expression, "name", "") for _, expression in plan.columns] == [shown]


def selects(session: rove.Session, text: str) -> SparkSelect:
    (found,) = (op for op in walk(session.sql(text).plan) if isinstance(op, SparkSelect))
    return found


def test_spark_reads_views_that_no_user_can_have_named(session: rove.Session) -> None:
    found = selects(session, "SELECT a, x FROM t LATERAL VIEW explode(arr) e AS x WHERE a > 1")
    assert found.text == "SELECT a, x FROM __rove_0 AS t LATERAL VIEW explode(arr) e AS x WHERE a > 1"
    assert found.members[0].schema.names == ["a", "ts", "arr"], "columns that are read, and event time"


def test_conditions_that_cannot_raise_are_checked_before_spark(session: rove.Session) -> None:
    text = explain(session.sql("SELECT explode(arr) AS x FROM t WHERE a > 1 AND 10 / b > 1").plan)
    assert re.findall("Filter .*", text) == ["Filter a > 1"]


def test_an_aggregate_with_distinct_is_computed_over_a_set(session: rove.Session) -> None:
    found = selects(session, "SELECT a, count(DISTINCT t.b) AS n FROM t GROUP BY CUBE (a)")
    assert "CAST(size(collect_set(`t`.`b`)) AS BIGINT) AS n" in found.text
    edge = explain(session.sql(f"SELECT sum(DISTINCT b) AS q, max(DISTINCT b) AS m FROM t GROUP BY {WINDOW}").plan)
    assert "max(b)" in edge
    assert "sum(DISTINCT b)" in edge


def test_values_are_a_table_whose_types_hold_all_rows(session: rove.Session) -> None:
    plan = session.sql("SELECT v.* FROM t JOIN VALUES (1, 2), (NULL, 3L) AS v(k, n) ON t.a = v.k").plan
    (table,) = (op for op in walk(plan) if isinstance(op, Table))
    assert table.path == "VALUES (1, 2L), (CAST(NULL AS int), 3L)"
    assert [str(f.type) for f in table.columns] == ["int32", "int64"]
    assert plan.schema.names == ["k", "n"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT T.A FROM t GROUP BY CUBE (a, b)", ["a"]),
        ("SELECT a FROM t GROUP BY CUBE (A, b)", ["A"]),
        ("SELECT A, B FROM t GROUP BY ROLLUP (a, b)", ["a", "b"]),
        ("SELECT A FROM t GROUP BY a, CUBE (b)", ["a"]),
        ("SELECT A AS x, count(B) FROM t GROUP BY GROUPING SETS ((a), (b))", ["x", "count(B)"]),
    ],
)
def test_columns_of_grouping_sets_have_the_names_that_group_by_gives_them(text: str, names: list[str]) -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int, b int, ts timestamp")
    assert session.sql(text).plan.schema.names == names
