"""Entries of a select list without an alias, whose names are Spark's own."""

from __future__ import annotations

UNNAMED = tuple(
    r"""
    DATE '2020-01-02'
    date '2020-1-2'
    TIMESTAMP '2020-01-02 03:04:05'
    TIMESTAMP '2020-01-02 03:04:05.120'
    TIMESTAMP '2020-01-02'
    TIMESTAMP_NTZ '2020-01-02 03:04:05'
    TIMESTAMP_LTZ '2020-01-02 03:04:05'
    5L
    5S
    5Y
    5D
    5.5D
    1.5F
    1.50BD
    2.50
    .5
    5.
    100
    00012
    99999999999
    1e3
    1E-5
    -5
    -5L
    - a
    -(-a)
    ~a
    'it''s'
    "x"
    'a\nb'
    X'1F'
    array(a,b)[0]
    array(a, b)[a]
    to_date(ts) + 1
    to_date(ts) - 1
    1 + to_date(ts)
    DATE '2020-01-01' + 1
    DATE '2020-01-01' + a
    to_date(ts) - DATE '2020-01-01'
    to_date(ts) + INTERVAL 1 DAY
    to_date(ts) + INTERVAL '1' MONTH
    ts + INTERVAL 1 DAY
    ts - INTERVAL 90 SECONDS
    ts + INTERVAL 1 MONTH
    ts + INTERVAL '1:30' HOUR TO MINUTE
    ts + INTERVAL '1-2' YEAR TO MONTH
    ts + INTERVAL 1 WEEK
    ts + INTERVAL 500 MILLISECONDS
    ts - INTERVAL 5 MICROSECONDS
    ts + INTERVAL a DAY
    ts + INTERVAL (a + 1) HOURS
    INTERVAL 1 DAY
    INTERVAL '1' HOUR
    INTERVAL '1-2' YEAR TO MONTH
    INTERVAL 1 DAY * 2
    - INTERVAL 1 DAY
    ts - ts
    ts - TIMESTAMP '2020-01-01 00:00:00'
    ts > TIMESTAMP '2020-01-01 00:00:00'
    ts > '2020-01-01'
    to_date(ts) = '2020-01-01'
    ts BETWEEN DATE '2020-01-01' AND DATE '2021-01-01'
    map('k', a)['k']
    split(s,'x')[0]
    struct(a, b).a
    named_struct('x', a).x
    struct(st, a).st.x
    (a, b)
    st.x
    st.x + 1
    st['x']
    t.st.x + 1
    st
    arr
    arr[0]
    arr[0] + 1
    t.arr[a]
    transform(arr, (x, i) -> x + i)
    aggregate(arr, 0, (acc, x) -> acc + x)
    aggregate(arr, 0, (acc, x) -> acc + x, acc -> acc * 10)
    reduce(arr, 0, (acc, x) -> acc + x)
    zip_with(arr, arr, (x, y) -> x + y)
    map_filter(map('k', a), (k, v) -> v > 1)
    transform_keys(map('k', a), (k, v) -> upper(k))
    array_sort(arr, (x, y) -> x - y)
    percentile(b, array(0.25, 0.75))
    first(b) IGNORE NULLS
    last(b) IGNORE NULLS
    any_value(b) IGNORE NULLS
    count(*) FILTER (WHERE a > 1)
    sum(a) FILTER (WHERE b IS NOT NULL)
    sum(a) + 1
    sum(a) / count(*)
    trunc(to_date(ts), 'MM')
    date_add(to_date(ts), 1)
    date_sub(to_date(ts), a)
    add_months(to_date(ts), 1)
    current_timestamp
    current_date
    localtimestamp
    current_user
    a % 2
    a MOD 2
    a DIV 2
    a / 2
    a | 1
    a & 1
    a ^ 1
    a << 1
    a >> 1
    CASE WHEN a > 1 THEN 'x' END
    CASE WHEN a > 1 THEN 'x' WHEN a > 0 THEN 'y' ELSE 'z' END
    CASE a WHEN 1 THEN 'x' ELSE 'y' END
    a = b
    a == b
    a <> b
    a != b
    a <=> b
    a IS NULL
    a IS NOT NULL
    a > 1 AND b > 1
    a > 1 OR NOT b > 1
    NOT a > 1
    !(a > 1)
    a IN (1, 2)
    a NOT IN (1, 2)
    a BETWEEN 1 AND 2
    a NOT BETWEEN 1 AND 2
    a IS DISTINCT FROM b
    a IS NOT DISTINCT FROM b
    (a > 1) IS TRUE
    (a > 1) IS NOT TRUE
    (a > 1) IS FALSE
    (a > 1) IS UNKNOWN
    s LIKE 'x%'
    s NOT LIKE 'x%'
    s ILIKE 'x%'
    s RLIKE 'x'
    s REGEXP 'x'
    s || 'x'
    s || 'x' || s
    to_json(st, map('timestampFormat', 'yyyy'))
    variant_get(parse_json(s), '$.a', 'int')
    flatten(array(arr))
    map_keys(map('k', a))
    map_values(map('k', a))
    map_entries(map('k', a))
    map_concat(map('k', a), map('l', b))
    map_contains_key(map('k', a), 'k')
    map_from_arrays(array('k'), array(a))
    map_from_entries(array(struct('k', a)))
    CAST(a AS DECIMAL(10,2))
    CAST(a + 1 AS DECIMAL(10, 2))
    CAST(upper(s) AS VARCHAR(5))
    CAST(s AS VARCHAR(5))
    TRY_CAST(upper(s) AS INT)
    a::BIGINT
    (a + 1)::BIGINT
    upper(s)::int
    window(ts, '10 seconds').start
    window(ts, '10 seconds', '5 seconds').end
    unix_date(to_date(ts))
    upper(s) = 'X' AND length(s) > 1
    if(isnan(d), NULL, d)
    round(sum(d), 2)
    round(avg(a), 1) > 1
    coalesce(sum(a), 0)
    max(ts) - min(ts)
    concat(upper(s), '-', CAST(a AS STRING))
    sum(if(a > 1, 1, 0))
    size(collect_set(a))
    to_json(struct(a, b))
    max(struct(a, b))
    max(named_struct('x', a)).x
    collect_list(struct(a, s))
    sort_array(collect_list(a))
    array_join(collect_list(s), ',')
    t.a
    `a`
    `a` + 1
    int(s) + 1
    1 + int(s)
    upper(string(a))
    transform(transform(arr, x -> x + 1), y -> y * 2)
    filter(arr, (x, i) -> i > 1)
    -5.5D
    - 3S
    5L + a
    1.5F * 2
    100.0D
    (a + 5L) / 2D
    5::bigint
    to_date(ts) + INTERVAL 2 DAYS
    to_date(ts) - INTERVAL 1 MONTH
    to_date(ts) + a * 2
    to_date(ts) - ts
    ts - to_date(ts)
    st.x + st.x
    struct(a, st).st.x + 1
    try_cast(a AS bigint) + 1
    CAST(d AS DECIMAL(10,2)) + 1
    max(to_date(ts)) + 1
    datediff(max(ts), min(ts))
    INTERVAL '100' HOUR
    INTERVAL '-1' DAY
    INTERVAL '-2' HOUR
    INTERVAL -3 DAYS
    INTERVAL '10.5' SECOND
    INTERVAL '03:04.50' MINUTE TO SECOND
    a IS TRUE
    NOT (a > 1) IS TRUE
    trim(LEADING 'x' FROM s) || 'y'
    to_json(struct(a)) || 'x'
    X'AbCd'
    aggregate(arr, 0L, (acc, x) -> acc + x)
    aggregate(arr, CAST(0 AS BIGINT), (acc, x) -> acc + x, acc -> acc + 1)
    EXTRACT(Day FROM ts) + 1
    first(a) - last(b)
    """.strip().splitlines()
)
