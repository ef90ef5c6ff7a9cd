"""Statements that are refused for a reason that no other clause of the corpus meets."""

from __future__ import annotations

from tests.differential.statements.clause import Clause, every

REASONS: tuple[Clause, ...] = tuple(
    every(
        "whole",
        """
        SELECT st.x.* FROM t
        SELECT a, count(*) AS n FROM t GROUP BY ALL, a
        SELECT window_time(window) AS q FROM t GROUP BY window(ts, '10 seconds')
        SELECT a + 1 AS x, sum(x) AS q FROM t GROUP BY a
        SELECT a AS x, sum(x) AS q FROM t GROUP BY a
        SELECT t.a, explode(arr) AS x FROM t JOIN k ON t.a = k.a WHERE t.a IN (SELECT a FROM u)
        SELECT *, explode(array(1)) AS e FROM (SELECT a, s, b FROM t) PIVOT (sum(b) FOR s IN ('x')) AS p
        SELECT explode(array(1)) AS x
        SELECT explode(arr) AS x FROM (t JOIN k ON t.a = k.a)
        SELECT v, w FROM t UNPIVOT ((v, w) FOR k IN ((a, b)))
        SELECT a FROM t LATERAL VIEW inline(array(st)) e
        SELECT nope.*, explode(arr) AS x FROM t
        SELECT t.b FROM (t JOIN u ON t.a = u.a) JOIN k USING (a)
        SELECT t.b FROM t JOIN u ON t.a = u.a JOIN k USING (a)
        SELECT t.a FROM t CROSS JOIN u ON t.a = u.a
        SELECT * FROM (SELECT a, s, b FROM t) PIVOT (sum(b) FOR s IN ('x') FOR a IN (1))
        SELECT * FROM (SELECT a, s, st FROM t) PIVOT (max(st) FOR s IN ('x'))
        SELECT * FROM (SELECT a, s, b FROM t) PIVOT (b FOR s IN ('x'))
        SELECT * FROM (SELECT a, s, b FROM t) PIVOT (sum(b) FOR s IN (upper('x')))
        (t)
        ((t))
        (VALUES (1))
        SELECT AS VALUE a FROM t
        SELECT a FROM t TIMESTAMP AS OF '2020-01-01'
        SELECT a FROM t FOR SYSTEM_TIME AS OF '2020-01-01'
        SELECT a FROM t WITH (NOLOCK)
        SELECT * REPLACE (a AS b) FROM t
        SELECT * RENAME (a AS z) FROM t
        SELECT * ILIKE '%a%' FROM t
        WITH w AS MATERIALIZED (SELECT a FROM t) SELECT a FROM w
        WITH RECURSIVE w AS (SELECT a, b FROM t UNION ALL SELECT a + 1, b FROM w WHERE a < 5) SELECT a, b FROM w
        SELECT a + * FROM t
        SELECT a + t.* FROM t
        SELECT struct(st.* EXCEPT (x)) AS q FROM t
        SELECT * EXCEPT (st.x) FROM t
        SELECT nope FROM (SELECT 1 AS x) o CROSS JOIN t
        SELECT nope AS x
        SELECT t.a FROM t CROSS JOIN (SELECT nope AS x) o
        SELECT u.a.x AS q FROM t JOIN u ON t.a = u.a
        SELECT t.b + u.s.x AS q FROM t JOIN u ON t.a = u.a
        SELECT u.a + array(1) AS q FROM t JOIN u ON t.a = u.a
        SELECT a.x AS q FROM t FULL JOIN u USING (a)
        SELECT sum(b).x AS q FROM t
        SELECT a, sum(b).x + 1 AS q FROM t GROUP BY a HAVING max(b).y > 1
        SELECT a + 1 AS x, x.y AS z FROM t
        SELECT mode(b) FILTER (WHERE nope > 1) AS q FROM t
        SELECT percentile(b, 0.5) FILTER (WHERE a > 1), mode(nope) FROM t
        SELECT percentile(b, 0.5) FILTER (WHERE a > 1), upper(b, 2) FROM t
        SELECT ({{}}) FROM t
        SELECT * FROM
        SELECT a FROM t UNION ALL SELECT ts FROM t
        SELECT row_number() OVER (ORDER BY a) AS q FROM t WHERE a > 1
        SELECT a, sum(n) AS q FROM (SELECT a, b, count(*) AS n FROM t GROUP BY a, b) GROUP BY a
        SELECT t.a, c FROM t FULL JOIN u ON t.a = u.a AND t.ts BETWEEN u.ts AND u.ts + INTERVAL 1 MINUTE
        SELECT t.a, c FROM t LEFT JOIN u ON t.a = u.a AND t.ts BETWEEN u.ts AND u.ts + INTERVAL 1 MINUTE
        SELECT t.a FROM t LEFT SEMI JOIN u ON t.a = u.a AND t.ts BETWEEN u.ts AND u.ts + INTERVAL 1 MINUTE
        SELECT a, count(*) AS n FROM t GROUP BY a ORDER BY a
        SELECT monotonically_increasing_id() AS q FROM t
        SELECT rank() OVER w AS q FROM t WINDOW w AS (ORDER BY a)
        SELECT a FROM (SELECT a, count(*) AS n FROM t GROUP BY a) v JOIN u USING (a)
        SELECT a AS 'x' FROM t
        SELECT a FROM t WHERE a NOT IS NULL
        SELECT DISTINCT n FROM (SELECT a, count(*) AS n FROM t GROUP BY a)
        """,
    )
)
