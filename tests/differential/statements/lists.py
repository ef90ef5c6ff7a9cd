"""What can stand in the list of a SELECT."""

from __future__ import annotations

from tests.differential.statements.clause import Clause, every

LISTS: tuple[Clause, ...] = (
    # Names and stars
    *every(
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
    *every(
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
    # Columns whose names are words of SQL, and functions without parentheses
    *every(
        "list",
        """
        date + 1 AS q
        x.left * left + timestamp AS q
        date * left AS q, left(s, 1) AS z
        time + INTERVAL 1 DAY AS q, x.time - INTERVAL '2' HOURS AS z
        date NOT NULL AS q
        +date AS q
        s:date AS q
        """,
        **{"from": "(SELECT a AS date, b AS left, a AS timestamp, ts AS time, s FROM t) AS x"},
    ),
    *every(
        "list",
        """
        5D + a AS q, a::bigint + 1 AS z, 2 * left('12', 1)::int AS y
        current_timestamp > ts AS q, current_date > DATE '2020-01-01' AS z
        s:a
        st:x AS q
        a - to_date(ts) AS q
        to_date(ts) - DATE '2025-12-30' AS q
        INTERVAL '1-2' YEAR TO MONTH AS y
        """,
    ),
    # Names that Spark makes
    *every(
        "list",
        """
        current_timestamp() IS NULL
        current_date, now() IS NOT NULL
        rand(1) < 2, uuid() = 'x'
        ts + INTERVAL 1 DAY, ts - INTERVAL '2' HOURS, ts + INTERVAL 30 MINUTES
        ts - ts
        s + 1
        map('k', a)['k']
        split(s, 'x')[0], split(s, 'x')
        struct(a, b), struct(a, b AS c, 1), struct(st.x)
        struct(t.a, t.b)
        filter(arr, v -> v > 1)
        percentile(b, 0.5), percentile_approx(a, 0.5)
        listagg(s, ',')
        first(b) IGNORE NULLS, last(a, true)
        window(ts, '10 seconds').start
        EXTRACT(HOUR FROM ts), EXTRACT(SECOND FROM ts) AS q
        substring(s, 1, 2), substr(s, 1, 2), substring(s, 2), substring(s FROM 1 FOR 2)
        'x', 1.5, 1e3, true, NULL
        1e0, 2.5e-3, 1E10, 1.25e-7
        ceil(d), floor(d), exp(d), sqrt(d), power(d, 2), log10(d)
        round(d, 1), round(d)
        trim(s), ltrim(s), rtrim(s), replace(s, 'x', 'y'), initcap(s)
        regexp_replace(s, 'x', 'y'), regexp_extract(s, 'x', 0), locate('x', s)
        to_json(st), get_json_object(s, '$.a')
        sort_array(arr), array_distinct(arr)
        unix_timestamp(ts), from_unixtime(a)
        md5(s), sha2(s, 256), hash(a)
        isnull(a), isnotnull(b)
        datediff(ts, ts), months_between(ts, ts)
        """,
    ),
    # Constants that are no values, and stars without some columns
    *every(
        "list",
        """
        date '2020-13-01' AS q
        timestamp '2020-01-01 25:00:00' AS q
        timestamp_ntz 'nope' AS q
        ts > timestamp 'nope' AS q
        1e400 AS q
        1e400D AS q
        1e39F AS q
        -1e400 AS q
        date '2020-1-1' AS q, timestamp '2020' AS z, CAST('2020-01-01' AS date) AS y
        percentile(b, extract(DAY FROM date 'nope')) AS q
        st.* EXCEPT (x)
        t.st.* EXCEPT (X), a
        st.* EXCEPT (nope)
        * EXCEPT (a, a)
        struct(* EXCEPT (a)) AS q
        struct(t.* EXCEPT (a, st)) AS q
        count(* EXCEPT (a)) AS q
        upper(s AS x) AS q
        a AS (x, y)
        posexplode(arr) AS (p)
        """,
    ),
    # Aliases that later entries read
    *every(
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
    *every(
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
        sum(DISTINCT b), avg(DISTINCT b)
        avg(DISTINCT b) AS q, mean(DISTINCT a) AS r, sum(b) AS z
        sum(DISTINCT d) AS q, avg(DISTINCT d) FILTER (WHERE d < 100) AS r
        sum(DISTINCT CAST(b AS DECIMAL(5,2))) AS q, avg(DISTINCT CAST(b AS DECIMAL(5,2))) AS r
        stddev(DISTINCT b) AS q, var_pop(DISTINCT a) AS r, variance(DISTINCT b) FILTER (WHERE b > 100) AS z
        max(DISTINCT b) AS q, bool_and(DISTINCT a > 1) AS r, bit_or(DISTINCT a) AS z
        sort_array(collect_list(DISTINCT b)) AS q, size(array_agg(DISTINCT a)) AS r
        sum(DISTINCT b) FILTER (WHERE a > 1) AS q
        sum(DISTINCT a, b) AS q
        sum(DISTINCT s) AS q
        median(DISTINCT b) AS q
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
    *every(
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
    *every("kind", "DISTINCT\nALL\n/*+ BROADCAST(t) */\nDISTINCT ON (a)\nTOP 2\nAS STRUCT"),
)
