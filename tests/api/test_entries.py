"""Whatever way an expression comes in, all of it is read: a part that cannot be meant there is refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.model.errors import PlanError

COLUMNS = "a int, b int, s string, st struct<x: int, y: string>, arr array<int>"


@pytest.fixture
def t() -> Stream:
    return rove.Session.local().stream("t", schema=COLUMNS)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("*", ["a", "b", "s", "st", "arr"]),
        ("* EXCEPT (a)", ["b", "s", "st", "arr"]),
        ("* EXCEPT (arr, ST)", ["a", "b", "s"]),
        ("st.* EXCEPT (x)", ["y"]),
        ("posexplode(arr) AS (p, v)", ["p", "v"]),
        ("struct(* EXCEPT (a, arr)) AS q", ["q"]),
    ],
)
def test_an_entry_stands_for_these_columns_in_text_and_in_a_column(t: Stream, entry: str, names: list[str]) -> None:
    assert t.selectExpr(entry).columns == names
    assert t.select(F.expr(entry)).columns == names


DOORS: dict[str, Callable[[Stream, str], Any]] = {
    "selectExpr": lambda t, text: t.selectExpr(text),
    "select": lambda t, text: t.select(F.expr(text)),
    "withColumn": lambda t, text: t.withColumn("z", F.expr(text)),
    "withColumns": lambda t, text: t.withColumns({"z": F.expr(text)}),
    "where": lambda t, text: t.where(text),
    "filter": lambda t, text: t.filter(F.expr(text)),
    "groupBy": lambda t, text: t.groupBy(F.expr(text)).count(),
    "agg": lambda t, text: t.groupBy("a").agg(F.expr(text)),
    "join": lambda t, text: t.join(t.toDF("p", "q", "r", "v", "w"), F.expr(text)),
    "joined": lambda t, text: t.join(t.toDF("a", "q", "r", "v", "w"), F.expr("s = r")).select(F.expr(text)),
    "inside a call": lambda t, text: t.select(F.coalesce(F.expr(text), F.lit(1))),
    "scan": lambda t, text: t.scan(F.expr(text), by="a"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "text",
    [
        "a AS (x, y)",
        "sum(b) AS (x, y)",
        "* EXCEPT (nope)",
        "* EXCEPT (a, a)",
        "* REPLACE (1 AS a)",
        "* AS q",
        "st.* EXCEPT (nope)",
        "a + *",
        "upper(s AS x)",
        "count(* EXCEPT (a))",
    ],
)
def test_what_cannot_be_meant_there_is_refused(t: Stream, door: str, text: str) -> None:
    with pytest.raises(PlanError):
        DOORS[door](t, text)


@pytest.mark.parametrize("door", sorted(set(DOORS) - {"selectExpr", "select", "joined"}))
@pytest.mark.parametrize("text", ["*", "* EXCEPT (a)", "st.*"])
def test_a_star_is_refused_where_there_is_room_for_one_value(t: Stream, door: str, text: str) -> None:
    with pytest.raises(PlanError):
        DOORS[door](t, text)


def test_a_star_of_a_join_leaves_out_what_except_names() -> None:
    session = rove.Session.local()
    t, u = session.stream("t", schema="a int, b int"), session.stream("u", schema="a int, c int")
    both = t.alias("l").join(u.alias("r"), F.expr("l.a = r.a"))
    assert both.select(F.expr("* EXCEPT (r.a)")).columns == ["a", "b", "c"]
    assert both.select("l.*", F.expr("r.* EXCEPT (a)")).columns == ["a", "b", "c"]


def test_drop_leaves_out_the_column_of_one_side() -> None:
    session = rove.Session.local()
    t, u = session.stream("t", schema="a int, b int"), session.stream("u", schema="a int, c int")
    both = t.join(u, t.a == u.a)
    assert both.drop(u.a).columns == ["a", "b", "c"]
    assert both.drop(t.a).columns == ["b", "a", "c"]
    assert both.drop("a").columns == ["b", "c"]
    assert both.drop(u.a).select(t.a, "c").columns == ["a", "c"]


def test_other_columns_of_one_name_stay_apart_in_a_join_by_name() -> None:
    session = rove.Session.local()
    t, u = session.stream("t", schema="a int, n int"), session.stream("u", schema="a int, n int")
    both = t.join(u, "a")
    assert both.columns == ["a", "n", "n"]
    assert both.select("a", u.n).columns == ["a", "n"]
    assert both.drop(t.n).columns == ["a", "n"]
    with pytest.raises(PlanError, match="`n` is ambiguous"):
        both.select("n")
    with pytest.raises(PlanError, match="column `n` appears twice, and rows that are stored need"):
        both.writeStream.toTable("x")
    with pytest.raises(PlanError, match=r"column `n` appears twice; .* or drop\(b.n\), or give all names with toDF"):
        both.fillna(0)


def test_a_name_inside_a_call_means_nothing_and_the_constant_is_still_read(t: Stream) -> None:
    assert t.select(F.coalesce(F.expr("a AS x"), F.expr("b y"), F.lit(0)).alias("z")).columns == ["z"]
    with pytest.raises(PlanError, match="'nope' is no date"):
        t.select(F.coalesce(F.expr("date 'nope' AS q"), F.lit(None)).alias("z"))
    with pytest.raises(PlanError, match="1e400 is outside the range of double"):
        t.select(F.coalesce(F.expr("1e400 AS q"), F.lit(None)).alias("z"))
