"""What can stand in FROM, in joins and in lateral views, with what some of it needs beside it."""

from __future__ import annotations

from tests.differential.statements.clause import Clause, every

RELATIONS: tuple[Clause, ...] = (
    *every(
        "from",
        """
        T
        `t`
        t AS x
        t x
        (SELECT a, b FROM t) AS x
        (SELECT a, b FROM t)
        (SELECT a, b FROM t WHERE a > 1) x
        (SELECT a AS b, b AS a FROM t) x
        (SELECT a FROM t UNION ALL SELECT c FROM u) x
        ((SELECT a, b FROM t)) x
        (SELECT a, b FROM t ORDER BY a LIMIT 2) x
        nowhere
        db.t
        t TABLESAMPLE (50 PERCENT)
        t TABLESAMPLE (2 ROWS)
        (t)
        VALUES (1, 2), (3, 4) AS t(a, b)
        VALUES (1, 2), (3, 4) AS v(a, b) JOIN t USING (a, b)
        (VALUES (1, 2), (2, NULL)) AS v(a, b)
        range(5)
        t VERSION AS OF 1
        t UNPIVOT (v FOR k IN (a, b))
        """,
    ),
    Clause("from", "t JOIN (SELECT 1 AS n, 'y' AS l UNION ALL SELECT 2, NULL) v ON t.a = v.n", {"list": "t.a, b, l"}),
    Clause("from", "t CROSS JOIN (SELECT 1 AS x WHERE false) o", {"list": "a, x"}),
    Clause("from", "t CROSS JOIN (SELECT count(*) AS n) o", {"list": "a, n"}),
    Clause("from", "t CROSS JOIN (SELECT *) o", {"list": "a"}),
    Clause("from", "t JOIN u ON t.a = u.a", {"list": "count(*) AS n", "group": "window(u.ts, '10 seconds')"}),
    Clause("from", "t AS x", {"list": "x.a, x.b"}),
    Clause("from", "t AS x ", {"list": "t.a"}),
    Clause("from", "u AS x(k, l, m, n)", {"list": "k, x.l, m"}),
    Clause("from", "u AS x(k, l)", {"list": "k"}),
    Clause("from", "(SELECT a, s, b FROM t) PIVOT (sum(b) FOR s IN ('x', 'y'))", {"list": "*"}),
    Clause("from", "(SELECT a, s, b FROM t) AS q PIVOT (max(b) AS m FOR s IN ('x' AS one, 'y' AS two))", {"list": "*"}),
    *(
        Clause("from", f"(SELECT a, s, b FROM t) PIVOT ({pivot})", {"list": "*"})
        for pivot in (
            "max(b) AS m, count(b) AS n FOR s IN ('x' AS one, 'y')",
            "max(b), count(*) FOR s IN ('x', 'z')",
            "count(1) FOR s IN ('x', 'z')",
            "sum(a) FOR b IN (1, 2, NULL)",
            "sum(b) FOR s IN ('x', 2)",
            "sum(b) FOR nope IN ('x')",
            "collect_list(b) FOR s IN ('x')",
            "sum(DISTINCT b) FOR s IN ('x', 'y')",
            "sum(b) FOR (s) IN (('x'), ('y'))",
            "sum(b) FOR (s, a) IN (('x', 1), ('y', 2))",
            "sum(b) AS m, max(b) FOR (s, a) IN (('x', 1) AS one, ('y', -2), (NULL, NULL))",
            "sum(b) FOR (s, a) IN (('x', 1, 2))",
            "sum(b) FOR (s, a) IN ('x', 'y')",
            "sum(b) FOR (s, a) IN (('x', 'y'))",
            "sum(b) FOR (s, a + 1) IN (('x', 1))",
        )
    ),
    Clause("from", "(SELECT s, b FROM t) PIVOT (avg(b) FOR s IN ('x', 'z')) AS p", {"list": "p.x + 1 AS q, p.*"}),
    Clause(
        "from",
        "(SELECT window(ts, '10 seconds') AS w, s, b FROM t) PIVOT (sum(b) FOR s IN ('x', 'y'))",
        {"list": "w, x, y"},
    ),
    Clause("from", "(SELECT a, b FROM t)", {"list": "*", "group": "1, 2"}),
    Clause("having", "a > 1 ", {"list": "b AS a, count(*) AS n", "group": "a, b"}),
    Clause("from", "t LATERAL VIEW explode(arr) e AS x JOIN u ON t.a = u.a", {"list": "t.a, x, c"}),
    Clause("from", "t JOIN u ON t.a = u.a LATERAL VIEW explode(arr) e AS x", {"list": "t.a, x, c"}),
    Clause("from", "t UNPIVOT (v FOR k IN (a, b)) LEFT JOIN u ON v = u.a", {"list": "v, c"}),
    Clause("from", "t UNPIVOT (v FOR k IN (a, b)) AS p LEFT JOIN u ON v = u.a", {"list": "v, c"}),
    Clause("from", "(SELECT a, s, b FROM t) PIVOT (max(b) FOR s IN ('x')) NATURAL JOIN u", {"list": "x, c"}),
    Clause("from", "(SELECT a, s, b FROM t) PIVOT (max(b) FOR s IN ('x')) AS p JOIN u ON p.a = u.a", {"list": "x, c"}),
    Clause("from", "t LATERAL VIEW explode(arr) e AS x", {"list": "t.*", "group": "ALL"}),
    Clause("from", "t LATERAL VIEW explode(arr) e AS x ", {"list": "e.*", "group": "1"}),
    Clause(
        "from", "u AS x(k, l) LATERAL VIEW explode(array(1)) e AS x", {"list": "k", "where": "k IN (SELECT a FROM t)"}
    ),
    Clause(
        "from",
        "(SELECT a, arr FROM t) LATERAL VIEW explode(arr) e AS x",
        {"list": "a, x", "where": "EXISTS (SELECT 1 FROM u WHERE u.c = a)"},
    ),
    Clause("from", "t, u", {"list": "t.a, c"}),
    Clause("from", "t, k", {"list": "t.a, c"}),
    Clause("from", "k", {"list": "a, c"}),
    Clause("from", "t, u", {"list": "t.a, c", "where": "t.a = u.a"}),
    Clause("from", "t, u AS v", {"list": "t.a, v.c", "where": "v.a = t.a AND t.b < 3"}),
    Clause("from", "t, u JOIN t AS v ON t.a = v.a", {"list": "v.a"}),
    Clause("from", "t, u JOIN t AS v ON u.a = v.a", {"list": "v.a, t.b", "where": "t.a = u.a"}),
    Clause("from", "(t JOIN u ON t.a = u.a)", {"list": "t.a, u.c"}),
    *every(
        "join",
        """
        JOIN u ON t.a = u.a
        INNER JOIN u ON u.a = t.a
        JOIN u AS v ON t.a = v.a
        JOIN u ON t.a = u.a AND t.b > u.c
        JOIN u ON t.a + 1 = u.a + 1
        JOIN u ON t.a <=> u.a
        LEFT JOIN u ON t.a = u.a
        LEFT OUTER JOIN u ON t.a = u.a AND u.c > 1
        RIGHT JOIN u ON t.a = u.a
        FULL OUTER JOIN u ON t.a = u.a
        JOIN u ON a = a
        JOIN u ON b < c
        JOIN u ON true
        JOIN u
        CROSS JOIN u
        LEFT JOIN u
        NATURAL JOIN u
        NATURAL LEFT JOIN u
        JOIN u USING (a)
        JOIN u USING (a, s)
        LEFT JOIN u USING (a)
        RIGHT JOIN u USING (a)
        FULL JOIN u USING (a)
        JOIN u USING (nope)
        JOIN (SELECT a AS k, c FROM u) AS u ON t.a = u.k
        ASOF JOIN u ON t.a = u.a
        JOIN LATERAL (SELECT k.c FROM k WHERE k.a = t.a) AS u
        JOIN u ON t.a IN (SELECT a FROM k)
        JOIN u ON sum(t.a) = u.a
        """,
        list="t.a, t.b, u.c",
    ),
    *every(
        "join",
        """
        JOIN k ON t.a = k.a
        LEFT JOIN k ON t.a = k.a
        JOIN k ON t.b < k.c
        CROSS JOIN k
        JOIN k USING (a)
        LEFT JOIN k USING (a)
        RIGHT JOIN k ON t.a = k.a
        FULL JOIN k ON t.a = k.a
        """,
        list="t.a, t.b, k.c",
    ),
    Clause("join", "LEFT ANTI JOIN k ON t.a = k.a", {"list": "a, b"}),
    Clause("join", "LEFT SEMI JOIN k USING (a)", {"list": "a, b"}),
    Clause("join", "JOIN VALUES (1, 'one'), (2, NULL) AS v(a, n) ON t.a = v.a", {"list": "t.a, n"}),
    Clause("join", "LEFT JOIN VALUES (1, 2L), (NULL, 2.5) AS v ON t.a = col1", {"list": "t.a, v.*"}),
    Clause("join", "CROSS JOIN (VALUES (array(1), date'2026-01-01'))", {"list": "a, col1, col2"}),
    Clause("join", "JOIN VALUES (1, 'one') AS v(a, n) ON t.a = v.a", {"list": "t.a, explode(arr) AS x, n"}),
    Clause("join", "JOIN u AS v(k, l, m, n) ON t.a = k", {"list": "explode(arr) AS x, l"}),
    Clause("join", "JOIN VALUES (1), (2, 3) AS v ON t.a = col1", {"list": "a"}),
    Clause("join", "JOIN VALUES (1, 2) AS v(a) ON t.a = v.a", {"list": "b"}),
    Clause("join", "JOIN VALUES (1, 'x'), (2, b) AS v ON t.a = col1", {"list": "a"}),
    Clause("join", "JOIN VALUES (1, 'x'), (2, 3) AS v ON t.a = col1", {"list": "a"}),
    Clause("join", "JOIN VALUES (1, sum(1)) AS v ON t.a = col1", {"list": "a"}),
    Clause("join", "JOIN VALUES (1, (SELECT max(c) FROM k)) AS v ON t.a = col1", {"list": "a"}),
    Clause("where", "a IN (SELECT * FROM VALUES (1), (3))", {}),
    Clause("where", "EXISTS (SELECT 1 FROM VALUES (1), (3) AS v(x) WHERE v.x = t.a)", {}),
    Clause("with", "WITH v AS (VALUES (1, 2), (2, 3))", {"from": "t JOIN v ON t.a = v.col1", "list": "t.a, col2"}),
    Clause("join", "JOIN u USING (a)", {"list": "*"}),
    Clause("join", "RIGHT JOIN u USING (a)", {"list": "a, t.a AS ta, u.a AS ua"}),
    Clause("join", "FULL JOIN u USING (a)", {"list": "a, t.a AS ta, u.a AS ua, c"}),
    Clause("join", "JOIN u USING (a, s)", {"list": "*"}),
    Clause("join", "JOIN u USING (s, a)", {"list": "t.*"}),
    Clause("join", "JOIN u USING (s, a)", {"list": "u.*"}),
    Clause("join", "LEFT JOIN u USING (s, a)", {"list": "u.*"}),
    Clause("join", "FULL JOIN u USING (s)", {"list": "u.*, b"}),
    Clause("join", "JOIN u USING (a) ", {"list": "t.a, u.a AS ua, t.s, u.s AS us"}),
    Clause("join", "JOIN u USING (a)  ", {"list": "s"}),
    Clause("join", "JOIN u ON t.a = u.a", {"list": "*"}),
    Clause("join", "JOIN u ON t.a = u.a ", {"list": "t.*, u.c"}),
    Clause("join", "JOIN u ON t.a = u.a  ", {"list": "a"}),
    Clause("join", "JOIN t AS v ON t.a = v.b", {"list": "t.a, v.a AS va, v.st.x"}),
    Clause("join", "JOIN t ON t.a = t.b", {"list": "b"}),
    Clause("join", "LEFT SEMI JOIN u ON t.a = u.a", {"list": "a, b"}),
    Clause("join", "SEMI JOIN u ON t.a = u.a", {"list": "*"}),
    Clause("join", "LEFT ANTI JOIN u ON t.a = u.a", {"list": "a, t.b"}),
    Clause("join", "ANTI JOIN u USING (a)", {"list": "a, b"}),
    Clause("join", "LEFT SEMI JOIN u USING (a)", {"list": "u.c"}),
    Clause("join", "JOIN u ON t.a = u.a JOIN t AS v ON u.c = v.b", {"list": "t.a, v.a AS va, c"}),
    Clause("join", "JOIN u JOIN t AS v ON u.c = v.b ON t.a = u.a", {"list": "t.a, v.a AS va, c"}),
    *every(
        "lateral",
        """
        LATERAL VIEW explode(arr) e AS x
        LATERAL VIEW OUTER explode(arr) e AS x
        LATERAL VIEW posexplode(arr) e AS p, x
        LATERAL VIEW explode(t.arr) e AS x LATERAL VIEW explode(array(x, a)) f AS y
        LATERAL VIEW explode(arr) e
        LATERAL VIEW explode(nope) e AS x
        """,
    ),
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "a, x, e.x AS y"}),
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "*"}),
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "a, count(DISTINCT x) AS n", "group": "a"}),
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "a, sum(DISTINCT x) AS n", "group": "a"}),
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "a, sum(DISTINCT int(x)) AS n", "group": "a"}),
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "x, count(*) AS n", "group": "x"}),
)
