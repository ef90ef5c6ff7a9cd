"""Statements made of clauses: each clause alone, and any two that can stand in one statement.

A clause fills a slot of a statement. Two clauses of different slots make a pair. What a clause needs beside it (a list
that fits a join, a name in FROM) is in `wants`, and gives way to the other clause of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

SLOTS = ("with", "list", "kind", "from", "join", "lateral", "where", "group", "having", "tail", "set", "whole")


@dataclass(frozen=True, slots=True)
class Clause:
    """One way to fill a slot."""

    slot: str
    text: str
    wants: dict[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.slot}: {self.text}"


@dataclass(frozen=True, slots=True)
class Statement:
    """The text, and the clauses it is made of."""

    clauses: tuple[Clause, ...]
    text: str


def _all(slot: str, lines: str, **wants: str) -> list[Clause]:
    return [Clause(slot, line.strip(), wants) for line in lines.strip().splitlines()]


CLAUSES: tuple[Clause, ...] = (
    # Names and stars
    *_all(
        "list",
        """
        *
        t.*
        T.*
        u.*
        *, a AS z
        a, *
        * EXCEPT (a)
        t.* EXCEPT (a, b)
        * EXCEPT (nope)
        * EXCEPT (st)
        A
        t.a
        T.A
        `a`
        t.`b`, a
        nope
        u.a
        t.nope
        a AS x
        a x
        a AS `x y`, b AS `q``r`
        a AS x, b AS x
        a, a
        a AS b, b AS a
        st.x
        t.st.x
        st.X AS q
        st.*
        t.st.*
        st.nope
        get(arr, 0) AS f
        """,
    ),
    # Expressions that get their names from Spark
    *_all(
        "list",
        """
        a + 1
        t.a + b
        -a
        a > 1
        a = 1 AND b = 2
        NOT a > 1
        a IS NULL
        a IS NOT NULL
        a IN (1, 2)
        d IN (0.0, 1.0)
        d = 0.0 AS z, d IN (0.0D) AS y
        a BETWEEN 1 AND 2 AS q
        s LIKE 'x%'
        upper(s)
        UPPER(s)
        coalesce(a, b, 0)
        CAST(a AS BIGINT)
        CAST(a AS string) AS q
        a::bigint AS q
        CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS q
        CASE a WHEN 1 THEN b END AS q
        if(a > 1, a, b) AS q
        1
        'word'
        NULL AS n
        1 AS one, a
        concat(s, 'z') AS q
        s || 'z' AS q
        struct(a, b AS c) AS q
        struct(*) AS q
        array(a, b) AS q
        transform(arr, v -> v + 1) AS q
        filter(arr, v -> v > t.a) AS q
        extract(YEAR FROM ts) AS q
        date_trunc('HOUR', ts) AS q
        window(ts, '10 seconds') AS w
        substring(s FROM 1 FOR 1) AS q
        a <=> b AS q
        a IS DISTINCT FROM b AS q
        timestampadd(HOUR, 1, ts) AS q
        nope(a)
        a.b.c.d.e
        :p AS q
        a -> b AS q
        """,
    ),
    # Aliases that later entries read
    *_all(
        "list",
        """
        a AS x, x + 1 AS y
        a AS x, x + 1 AS y, y * 2 AS z
        a AS b, b + 1 AS c
        x + 1 AS y, a AS x
        a AS x, b AS x, x + 1 AS y
        st AS x, x.y AS q
        a + 1 AS x, upper(s) AS y, concat(y, '!') AS z, x AS q
        """,
    ),
    # Aggregates
    *_all(
        "list",
        """
        count(*)
        count(*) AS n
        count(a) AS n, sum(a) AS q, min(s) AS lo, max(s) AS hi, avg(b) AS m
        sum(a)
        sum(a) + max(b) AS q
        sum(a + b) AS q
        sum(a) AS q, q + 1 AS r
        a AS x, sum(x) AS q
        count(t.*) AS n
        count(DISTINCT a) AS n
        count(DISTINCT a)
        count(DISTINCT d) AS n
        count(DISTINCT a, b) AS n
        count(DISTINCT d, a) AS n, count(DISTINCT st) AS m
        count(DISTINCT a, b) FILTER (WHERE a > 1) AS n
        count(DISTINCT arr) AS n
        round(percentile(b, 0.5), 1) AS p, percentile(a, array(0.25, 0.75)) AS q
        upper(mode(s)) AS m, listagg(s, ',') WITHIN GROUP (ORDER BY s) AS l
        mode(a) + 1 AS m, max_by(s, b) || 'x' AS q, size(collect_set(a)) AS n
        last(a, true) AS q, first_value(s) IGNORE NULLS AS f
        sum(DISTINCT b) AS q
        count(DISTINCT a) FILTER (WHERE b > 1) AS n
        approx_count_distinct(a) AS n
        sum(a) FILTER (WHERE b > 1) AS q
        count(*) FILTER (WHERE a IS NOT NULL) AS n, count(*) AS r
        avg(a) FILTER (WHERE s = 'x') AS q
        collect_list(a) FILTER (WHERE a > 1) AS q
        sum(a) FILTER (WHERE sum(b) > 1) AS q
        first(a) IGNORE NULLS AS q
        any_value(a) IGNORE NULLS AS q
        max_by(a, b) AS q
        count_if(a > 1) AS n
        bool_and(a > 0) AS q
        percentile(a, 0.5) AS q
        percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS q
        sum(sum(a)) AS q
        sum(*) AS q
        a, count(*) AS n
        stddev(b) AS q, variance(b) AS r
        """,
    ),
    # What makes rows, and what looks at other rows
    *_all(
        "list",
        """
        explode(arr) AS x
        explode(arr)
        a, explode_outer(arr) AS x
        a, posexplode(arr)
        a, posexplode(arr) AS (p, v)
        explode(arr) + 1 AS x
        row_number() OVER (ORDER BY a) AS q
        sum(a) OVER (PARTITION BY b) AS q
        lag(a) OVER (PARTITION BY s ORDER BY ts) AS q
        (SELECT max(c) FROM k) AS m, a
        a IN (SELECT a FROM k) AS q
        EXISTS (SELECT 1 FROM k WHERE k.a = t.a) AS q
        """,
    ),
    *_all("kind", "DISTINCT\nALL\n/*+ BROADCAST(t) */\nDISTINCT ON (a)\nTOP 2\nAS STRUCT"),
    *_all(
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
        range(5)
        t VERSION AS OF 1
        t UNPIVOT (v FOR k IN (a, b))
        """,
    ),
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
    *_all(
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
    *_all(
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
    *_all(
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
    Clause("lateral", "LATERAL VIEW explode(arr) e AS x", {"list": "x, count(*) AS n", "group": "x"}),
    *_all(
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
    *_all(
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
    *_all(
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
    *_all(
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
    *_all(
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
    *_all(
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


def statement(*clauses: Clause) -> Statement:
    """The statement of clauses that fill different slots."""
    slots: dict[str, str] = {}
    for clause in clauses:
        for slot, text in clause.wants.items():
            slots.setdefault(slot, text)
    slots |= {c.slot: c.text for c in clauses}
    grouped = "group" in slots or "having" in slots
    fields = slots.get("list") or ("a, count(*) AS n" if grouped else "a, b")
    parts = [
        slots.get("with", ""),
        "SELECT",
        slots.get("kind", ""),
        fields,
        "FROM " + slots.get("from", "t"),
        slots.get("join", ""),
        slots.get("lateral", ""),
        "WHERE " + slots["where"] if "where" in slots else "",
        "GROUP BY " + slots["group"] if "group" in slots else "",
        "HAVING " + slots["having"] if "having" in slots else "",
        slots.get("set", ""),
        slots.get("tail", ""),
    ]
    text = " ".join(p.strip() for p in parts if p)
    return Statement(clauses, slots["whole"].format(text) if "whole" in slots else text)


def alone() -> list[Statement]:
    return [statement(c) for c in CLAUSES]


def in_pairs() -> Iterator[Statement]:
    """All pairs of clauses that fill different slots and do not need each other's."""
    for i, first in enumerate(CLAUSES):
        for second in CLAUSES[i + 1 :]:
            if first.slot == second.slot or "whole" in (first.slot, second.slot):
                continue
            yield statement(first, second)
