"""Results with columns of one name, and what reads them."""

from __future__ import annotations

from tests.differential.statements.clause import Clause, every

_TWICE = "(SELECT a, b AS a, s FROM t)"

DOUBLES: tuple[Clause, ...] = (
    *every(
        "list",
        """
        t.a, t.a
        t.a, A
        a, b AS a, s AS A
        a AS a, a
        *, *
        *, a + 1 AS b
        st.*, 1 AS x, st.*
        a + 1, a + 1
        upper(s), upper(t.s)
        count(*), count(*)
        sum(a) AS q, max(b) AS q
        """,
    ),
    Clause("list", "struct(*) AS q", {"group": "1"}),
    Clause("list", "count(DISTINCT map(a, b)) AS q"),
    Clause("list", "count(DISTINCT sort_array(map_entries(map(s, b)))) AS q", {"where": "s IS NOT NULL"}),
    Clause("list", "array(a, b)[0], array(a, b)[1] + 1, struct(a, b).b"),
    Clause("list", "s, count(*) AS n", {"group": "1"}),
    Clause("list", "sum(a) AS s, s", {"group": "s"}),
    Clause("list", "s, sum(a) AS s", {"group": "s"}),
    Clause("list", "s, s, count(*)", {"group": "s"}),
    Clause("list", "a AS s, s", {"group": "a, s"}),
    Clause("list", "a AS x, b AS x", {"group": "x"}),
    Clause("list", "a AS x, b AS x", {"group": "ALL"}),
    Clause("list", "a AS x, b AS x", {"group": "1, 2"}),
    Clause("list", "count(*) AS s, s", {"group": "s", "having": "s > 'x'"}),
    Clause("list", "count(*) AS q, sum(b) AS q", {"group": "s", "having": "q > 1"}),
    Clause("list", "a, a, count(*) AS n", {"group": "CUBE (a)"}),
    Clause("list", "s, sum(b) AS s", {"group": "ROLLUP (s)"}),
    Clause("list", "a AS x, b AS x, count(*) AS n", {"group": "ROLLUP (a, b)", "having": "x > 1"}),
    Clause("list", "window(ts, '10 seconds') AS w, count(*) AS w", {"group": "window(ts, '10 seconds')"}),
    Clause("from", f"{_TWICE} AS x", {"list": "*"}),
    Clause("from", f"{_TWICE} AS x", {"list": "x.*"}),
    Clause("from", f"{_TWICE} AS x", {"list": "a"}),
    Clause("from", f"{_TWICE} AS x", {"list": "x.a"}),
    Clause("from", f"{_TWICE} AS x", {"list": "s"}),
    Clause("from", f"{_TWICE} AS x(p, q, r)", {"list": "q, p"}),
    Clause("from", f"{_TWICE} AS x", {"list": "* EXCEPT (s)"}),
    Clause("from", f"{_TWICE} AS x", {"list": "* EXCEPT (a)"}),
    Clause("from", f"{_TWICE} AS x", {"list": "count(*) AS n"}),
    Clause("from", f"{_TWICE} AS x", {"list": "s", "where": "a > 1"}),
    Clause("from", f"{_TWICE} AS x", {"list": "s, count(*) AS n", "group": "a"}),
    Clause("from", f"{_TWICE} AS x JOIN u ON x.s = u.s", {"list": "x.*, c"}),
    Clause("from", f"{_TWICE} AS x JOIN u ON x.a = u.a", {"list": "c"}),
    Clause("from", f"{_TWICE} AS x JOIN u USING (s)", {"list": "*"}),
    Clause("from", f"{_TWICE} AS x JOIN u USING (a)", {"list": "c"}),
    Clause("from", f"{_TWICE} AS x LATERAL VIEW explode(array(1, 2)) e AS v", {"list": "s, v"}),
    Clause("from", f"{_TWICE} AS x LATERAL VIEW explode(array(1, 2)) e AS v", {"list": "a, v"}),
    Clause("from", f"{_TWICE} AS x LATERAL VIEW explode(array(1, 2)) e AS v", {"list": "*"}),
    Clause("from", "(SELECT a, t.a FROM t) AS x", {"list": "a"}),
    Clause("from", "(SELECT a, t.a, s FROM t) AS x", {"list": "* EXCEPT (a)"}),
    Clause("from", "(SELECT a, a AS a FROM t) AS x", {"list": "a"}),
    Clause("from", "(SELECT a, a FROM t) AS x", {"list": "*"}),
    Clause("from", "(SELECT a, a FROM t UNION ALL SELECT a, b FROM t) AS x", {"list": "a"}),
    Clause("from", "(SELECT * FROM t JOIN u USING (a)) AS x", {"list": "x.ts"}),
    Clause("from", "(SELECT * FROM t JOIN u USING (a)) AS x", {"list": "a, b, c"}),
    Clause("from", "(SELECT * FROM t JOIN u ON t.a = u.a) AS x", {"list": "b, c", "where": "c > 1"}),
    Clause("from", "(SELECT s, b, b FROM t) PIVOT (max(b) FOR s IN ('x' AS s, 'y' AS s))", {"list": "*"}),
    Clause("join", "JOIN u USING (a)", {"list": "t.*, u.*"}),
    Clause("join", "JOIN u USING (a)", {"list": "a, t.ts, u.ts"}),
    Clause("join", "LEFT JOIN u USING (a)", {"list": "*"}),
    Clause("join", "FULL JOIN u USING (a)", {"list": "*"}),
    Clause("join", "NATURAL JOIN k", {"list": "*, t.a"}),
    Clause("join", "JOIN k ON t.a = k.a", {"list": "*"}),
    Clause("join", "JOIN u ON t.a = u.a", {"list": "t.ts, u.ts, t.a, count(*) AS n", "group": "t.ts, u.ts, t.a"}),
    Clause("join", "JOIN u ON t.a = u.a", {"list": "*, explode(arr) AS x"}),
    Clause("join", "JOIN u ON t.a = u.a", {"list": "t.s, u.s, explode(arr) AS s"}),
    Clause("join", "JOIN u ON t.a = u.a", {"list": "ts"}),
    Clause("where", "a IN (SELECT a FROM (SELECT a, a FROM u))"),
    Clause("where", "a IN (SELECT a FROM (SELECT a, c AS a FROM u))"),
    Clause("where", "(a, b) IN (SELECT a, a FROM u)"),
    Clause("where", "EXISTS (SELECT * FROM u JOIN k USING (a) WHERE u.a = t.a)"),
    Clause("where", "EXISTS (SELECT *, * FROM u WHERE u.a = t.a)"),
    Clause("set", "UNION ALL SELECT a, a FROM u"),
    Clause("set", "UNION SELECT a, c FROM u", {"list": "a, b AS a"}),
    Clause("set", "UNION ALL SELECT a, c FROM u", {"list": "a, a"}),
    Clause("kind", "DISTINCT", {"list": "a, a"}),
    Clause("kind", "DISTINCT", {"list": "a, b AS a"}),
    Clause("with", "WITH w AS (SELECT a, b AS a FROM t)", {"from": "w", "list": "*"}),
    Clause("with", "WITH w AS (SELECT a, b AS a FROM t)", {"from": "w", "list": "a"}),
    Clause("with", "WITH w(x, y) AS (SELECT a, a FROM t)", {"from": "w", "list": "y"}),
)
