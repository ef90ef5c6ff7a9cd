"""What can stand around SELECT and FROM: conditions, groups, order and limits, set operations, WITH, and the whole."""

from __future__ import annotations

from tests.differential.statements.clause import Clause, every

AROUND: tuple[Clause, ...] = (
    *every(
        "where",
        """
        a > 1
        t.a > 1
        T.A > 1
        u.a > 1
        st.x > 1
        t.st.x IS NULL
        nope > 1
        a = 1 OR b = 2 AND s = 'x'
        a IN (1, 2)
        a NOT IN (1, NULL)
        d IN (0.0, 5.0)
        d = 0.0
        d = -0.0
        d = CAST('NaN' AS double)
        s LIKE 'x%'
        s RLIKE '^x'
        s LIKE ANY ('x%', 'y')
        a BETWEEN 1 AND 3
        a IS NOT TRUE
        a
        NULL
        true
        count(*) > 1
        sum(a) OVER () > 1
        explode(arr) > 1
        a IN (SELECT a FROM u)
        a NOT IN (SELECT a FROM k WHERE a IS NOT NULL)
        EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
        EXISTS (SELECT 1 FROM k WHERE k.a = t.a)
        a IN (SELECT a FROM k)
        a NOT IN (SELECT a FROM k)
        a = (SELECT max(k.a) FROM k WHERE k.c = t.b)
        a IN (SELECT x.a FROM k AS x JOIN k AS y ON x.a = y.c)
        NOT EXISTS (SELECT * FROM k WHERE k.a = t.a AND k.c > 1)
        a = (SELECT max(a) FROM k)
        a > ALL (SELECT c FROM k)
        b > 1 AND a IN (SELECT a FROM k WHERE c > 1)
        a IN (SELECT a, c FROM k)
        a IN (WITH w AS (SELECT a FROM k) SELECT a FROM w)
        a IN (SELECT a FROM k ORDER BY a LIMIT 1)
        (a, b) IN (SELECT a, c FROM k)
        a NOT IN (SELECT a FROM u)
        NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
        (a, b) IN (SELECT a, c FROM u)
        b > 1 AND a IN (SELECT a FROM u WHERE c > 1)
        a IN (SELECT a FROM u) OR b > 1
        a IN (SELECT a FROM u WHERE u.c = t.b)
        a + 1 IN (SELECT c + 1 FROM u WHERE s = t.s)
        a IN (SELECT max(a) FROM u)
        a IN (SELECT DISTINCT a FROM u)
        a IN (SELECT a FROM u UNION ALL SELECT c FROM u)
        a IN (SELECT u.a FROM u, t AS x WHERE u.c = x.b AND x.a = t.a)
        a IN (SELECT a FROM u WHERE c IN (SELECT b FROM t))
        a IN (SELECT a, c FROM u)
        a IN (SELECT s FROM u)
        d IN (SELECT c FROM u)
        EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.c > t.b)
        EXISTS (SELECT nope FROM u WHERE u.a = t.a)
        EXISTS (SELECT 1 FROM u)
        EXISTS (SELECT max(c) FROM u WHERE u.a = t.a)
        EXISTS (SELECT 1 FROM t AS v WHERE v.a = t.b)
        EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND EXISTS (SELECT 1 FROM k WHERE k.a = t.a)
        EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.ts BETWEEN t.ts AND t.ts + INTERVAL 10 SECONDS)
        a QUALIFY true
        """,
    ),
    *every(
        "group",
        """
        a
        a, b
        t.a
        A
        a, a
        (a)
        (a, b)
        1
        7
        0
        nope
        count(*)
        ALL
        CUBE (a, b)
        ROLLUP (a, b)
        GROUPING SETS ((a), (b), ())
        a WITH ROLLUP
        a WITH CUBE
        a, CUBE (b)
        ()
        """,
    ),
    Clause("group", "a + 1", {"list": "a + 1 AS q, count(*) AS n"}),
    Clause("group", "a + 1", {"list": "(a + 1) * 2 AS q, max(b) AS n"}),
    Clause("group", "a + 1", {"list": "a"}),
    Clause("group", "x", {"list": "a + 1 AS x, count(*) AS n"}),
    Clause("group", "x * 2", {"list": "a + 1 AS x, count(*) AS n"}),
    Clause("group", "a", {"list": "b AS a, count(*) AS n"}),
    Clause("group", "a, b", {"list": "b AS a, a AS b, count(*) AS n"}),
    Clause("group", "1, 2", {"list": "a, upper(s) AS q, sum(b) AS n"}),
    Clause("group", "1", {"list": "sum(a) AS q"}),
    Clause("group", "st.x", {"list": "st.x, count(*) AS n"}),
    Clause("group", "upper(s)", {"list": "UPPER(s) AS q, count(*) AS n"}),
    Clause("group", "d", {"list": "d, count(*) AS n"}),
    Clause("group", "ALL", {"list": "a, b + 1 AS q, sum(b) AS n"}),
    Clause("group", "ALL", {"list": "sum(b) AS n"}),
    Clause("group", "ALL", {"list": "a AS x, x + 1 AS y, count(*) AS n"}),
    Clause("group", "ALL", {"list": "a, sum(b) AS n, n + a AS q"}),
    Clause("group", "ALL", {"list": "a + sum(b) AS q"}),
    Clause("group", "ALL", {"list": "*"}),
    Clause("group", "a", {"list": "*"}),
    Clause("group", "a", {"list": "a, b"}),
    Clause("group", "a", {"list": "a, grouping(a) AS g"}),
    Clause("group", "CUBE (a, b)", {"list": "a, b, grouping_id() AS g, sum(b) AS n"}),
    Clause("group", "CUBE (a)", {"list": "a, sum(DISTINCT t.b) AS q, count(DISTINCT s, t.b) AS n"}),
    Clause("group", "ROLLUP (a)", {"list": "a, sum(DISTINCT st.x) AS q, count(DISTINCT d) AS n"}),
    Clause("group", "CUBE (a)", {"list": "a, sum(DISTINCT b) FILTER (WHERE s = 'x') AS q, sum(DISTINCT b)"}),
    Clause("group", "window(ts, '10 seconds'), a", {"list": "a, sum(DISTINCT b) AS q, avg(DISTINCT b) AS r"}),
    Clause("group", "window(ts, '10 seconds')", {"list": "window.start, window.end AS e, count(*) AS n"}),
    Clause("group", "window(ts, '10 seconds'), a", {"list": "window, a, sum(b) AS n"}),
    Clause("group", "window(ts, '10 seconds', '5 seconds')", {"list": "window.start AS q, max(b) - min(b) AS n"}),
    Clause("group", "w, a", {"list": "window(ts, '10 seconds') AS w, a, count(*) AS n"}),
    Clause("group", "1, 2", {"list": "window(ts, '10 seconds') AS w, s, count(*) AS n, w.end AS e"}),
    Clause("group", "ALL", {"list": "window(ts, '10 seconds') AS w, count(*) AS n"}),
    Clause("group", "window(ts, '10 seconds')", {"list": "count(DISTINCT a) AS n, window.start"}),
    Clause(
        "group",
        "window(ts, '10 seconds')",
        {"list": "count(DISTINCT a) AS n, sum(b) AS q, count(DISTINCT s) AS m, count(*) AS r, avg(b) AS g"},
    ),
    Clause("group", "window(ts, '10 seconds'), a", {"list": "a, count(DISTINCT b) FILTER (WHERE s = 'x') AS n"}),
    Clause("group", "window(ts, '10 seconds')", {"list": "sum(b) FILTER (WHERE a > 1) AS n, window.start"}),
    Clause("group", "window(ts, '10 seconds')", {"list": "1 AS one"}),
    Clause("group", "window(ts, '10 seconds')", {"list": "a"}),
    Clause("group", "session_window(ts, '3 seconds')", {"list": "session_window.start AS q, count(*) AS n"}),
    Clause("group", "window(ts, '10 seconds'), window(ts, '5 seconds')", {"list": "count(*) AS n"}),
    *every(
        "having",
        """
        count(*) > 1
        sum(b) > 1 AND count(*) > 0
        a > 1
        n > 1
        b > 1
        max(a) > 1
        t.a > 1
        nope > 1
        count(*) FILTER (WHERE b > 1) > 0
        count(DISTINCT b) > 1
        a IN (SELECT a FROM u)
        """,
    ),
    Clause("having", "a > 1", {"list": "b AS a, count(*) AS n", "group": "b"}),
    Clause("having", "sum(a) > 3", {"list": "b AS a, count(*) AS n", "group": "b"}),
    Clause("having", "x > 1", {"list": "a AS x, count(*) AS n", "group": "a"}),
    Clause("having", "x + n > 3", {"list": "a AS x, count(*) AS n", "group": "x"}),
    Clause("having", "count(*) > 1", {"list": "a"}),
    Clause("having", "count(*) > 1", {"list": "1 AS one"}),
    Clause("having", "count(*) > 100", {"list": "sum(a) AS q"}),
    Clause("having", "window.start IS NOT NULL", {"list": "count(*) AS n", "group": "window(ts, '10 seconds')"}),
    *every(
        "tail",
        """
        ORDER BY a
        ORDER BY a DESC NULLS LAST
        ORDER BY ALL
        SORT BY a
        CLUSTER BY a
        DISTRIBUTE BY a
        LIMIT 2
        LIMIT ALL
        LIMIT 2 OFFSET 1
        OFFSET 1
        QUALIFY row_number() OVER (ORDER BY a) = 1
        WINDOW w AS (PARTITION BY a)
        FOR UPDATE
        FETCH FIRST 2 ROWS ONLY
        """,
    ),
    *every(
        "set",
        """
        UNION ALL SELECT a, b FROM t
        UNION ALL SELECT a, c FROM u
        UNION ALL SELECT c, a FROM u WHERE c > 1
        UNION SELECT a, c FROM u
        UNION DISTINCT SELECT a, b FROM t
        UNION ALL SELECT a FROM t
        UNION ALL SELECT s, b FROM t
        UNION ALL SELECT d, ts FROM t
        UNION ALL SELECT a, b FROM t UNION SELECT a, c FROM u
        UNION ALL (SELECT a, b FROM t)
        EXCEPT SELECT a, c FROM u
        MINUS SELECT a, c FROM u
        INTERSECT SELECT a, c FROM u
        INTERSECT ALL SELECT a, c FROM u
        UNION ALL BY NAME SELECT b, a FROM t
        """,
    ),
    Clause("with", "WITH w AS (SELECT a, b FROM t WHERE a > 1)", {"from": "w"}),
    Clause("with", "WITH w AS (SELECT a, b FROM t), v AS (SELECT a + 1 AS a, b FROM w)", {"from": "v"}),
    Clause("with", "WITH w(b, a) AS (SELECT a, b FROM t)", {"from": "w"}),
    Clause("with", "WITH w(k) AS (SELECT a, b FROM t)", {"from": "w"}),
    Clause("with", "WITH t AS (SELECT a + 10 AS a, b, arr, s, ts, d, st FROM t)", {}),
    Clause("with", "WITH T AS (SELECT b AS a, a AS b FROM t)", {"list": "t.a, t.b"}),
    Clause(
        "with", "WITH u AS (SELECT a, b AS c, s, ts FROM t)", {"from": "t, u", "where": "t.a = u.a", "list": "t.a, c"}
    ),
    Clause("with", "WITH w AS (SELECT a FROM t), w AS (SELECT b FROM t)", {"from": "w", "list": "*"}),
    Clause("with", "WITH w AS (WITH t AS (SELECT 5 AS a, b FROM t) SELECT a, b FROM t)", {"from": "w"}),
    Clause("with", "WITH w AS (SELECT a, b FROM nowhere)", {}),
    Clause("with", "WITH RECURSIVE w AS (SELECT a, b FROM t)", {"from": "w"}),
    Clause("with", "WITH w AS (SELECT a FROM t)", {"from": "t", "list": "w.a"}),
    *every(
        "whole",
        """
        ({})
        FROM t SELECT a, b
        TABLE t
        {} |> WHERE a > 1
        SELECT a, FROM t
        SELECT a FROM t t2 t3
        SELECT a FROM t WHERE
        SELECT FROM t
        SELECT a b c FROM t
        SELECT a FROM t GROUP a
        SELEC a FROM t
        SELECT a FROM t; SELECT b FROM t
        SELECT 1 AS one
        INSERT INTO t SELECT * FROM t
        SELECT a FROM t WHERE a > 1 WHERE b > 1
        SELECT a INTO x FROM t
        """,
    ),
)
