"""`s.sql(…)` gives the rows that Spark gives for the same statement."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

import rove
from rove.model.errors import ParseError, PlanError
from tests.plan.sql.test_meaning import AT_THE_EDGE, COLUMNS, ROWS
from tests.portable.queries import tables
from tests.portable.rows import assert_same_rows

STATEMENTS = {
    "select": "SELECT auction, price * 2 AS twice, upper(channel) FROM bid WHERE price > 1000 AND auction % 3 = 0",
    "star": "SELECT *, price + 1 AS more FROM bid WHERE bidder IS NOT NULL",
    "subquery": "SELECT b.auction FROM (SELECT * FROM bid WHERE price > 5000) b WHERE b.auction > 1010",
    "with": "WITH dear AS (SELECT auction, price FROM bid WHERE price > 5000) SELECT price FROM dear",
    "union": "SELECT auction AS id FROM bid WHERE price < 500 UNION ALL SELECT id FROM auction",
    "window": """SELECT window.start, auction, count(*) AS n, max(price) AS top
                 FROM timed GROUP BY window(dateTime, '10 seconds'), auction""",
    "hopping": """SELECT window(dateTime, '10 seconds', '5 seconds') AS w, sum(price) AS total
                  FROM timed GROUP BY window(dateTime, '10 seconds', '5 seconds')""",
    "having": """SELECT auction, sum(price) / count(*) AS mean FROM timed
                 GROUP BY auction, window(dateTime, '20 seconds') HAVING count(*) > 3 AND max(price) > 100""",
    "ordinals": "SELECT auction % 3 AS rest, count(*) AS n FROM timed GROUP BY 1, window(dateTime, '20 seconds')",
    "alias": """SELECT auction AS one, auction AS two, upper(channel) AS loud, count(*) AS n FROM timed
                GROUP BY auction, loud, window(dateTime, '20 seconds')""",
    "with and union": """WITH dear AS (SELECT price FROM BID WHERE price > 5000)
                         SELECT * FROM dear UNION ALL SELECT * FROM dear""",
    "case": "SELECT CASE WHEN price > 5000 THEN 'dear' ELSE 'cheap' END AS kind, auction FROM bid",
    "join": """SELECT p.name, a.itemName FROM person p JOIN (SELECT itemName, seller FROM auction) a
               ON p.id = a.seller WHERE p.state = 'OR'""",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_a_statement_gives_sparks_rows(spark: Any, statement: str) -> None:
    session = rove.Session.local()
    for name in ("bid", "auction", "person"):
        session.stream(name, schema=tables()[name].schema, data=tables()[name])
        spark.createDataFrame(tables()[name]).createOrReplaceTempView(name)
    session.name("timed", session.stream("bid").withWatermark("dateTime", "5 seconds"))
    spark.table("bid").createOrReplaceTempView("timed")
    assert_same_rows(session.sql(statement).toArrow(), spark.sql(statement).toArrow(), statement)


def test_the_rows_that_stand_for_rules_are_sparks(spark: Any) -> None:
    theirs = spark.newSession()
    for name, columns in COLUMNS.items():
        times = {"ts": datetime.fromisoformat}
        rows = [{k: times.get(k, lambda v: v)(v) for k, v in row.items()} for row in ROWS[name]]
        theirs.createDataFrame(rows, columns).createOrReplaceTempView(name)
    for text, rows in AT_THE_EDGE.items():
        assert sorted((tuple(row) for row in theirs.sql(text).collect()), key=str) == rows, text


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("SELECT a FROM nowhere", "no stream `nowhere`"),
        ("SELECT auction FROM bid ORDER BY auction", "ORDER BY cannot be used on a stream"),
        ("SELECT auction FROM bid LIMIT 5", "LIMIT cannot be used on a stream"),
        ("SELECT auction FROM bid EXCEPT SELECT bidder FROM bid", "EXCEPT needs all rows"),
        ("SELECT 1", "reads no stream"),
        ("SELECT auction FROM bid UNION ALL SELECT bidder FROM bid LIMIT 1", "LIMIT cannot be used on a stream"),
        ("SELECT auction FROM bid TABLESAMPLE (10 PERCENT)", "TABLESAMPLE cannot be used"),
        ("SELECT bidder, count(*) AS n FROM bid GROUP BY auction", "neither in GROUP BY nor in an aggregate"),
        ("INSERT INTO bid VALUES (1)", "expected a SELECT"),
        ("SELECT auction FRM bid", "reads no stream|not Spark SQL"),
    ],
)
def test_a_statement_that_makes_no_sense_is_refused(statement: str, complaint: str) -> None:
    session = rove.Session.local()
    session.stream("bid", schema=tables()["bid"].schema)
    with pytest.raises((PlanError, ParseError), match=complaint):
        session.sql(statement)
