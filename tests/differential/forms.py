"""The forms: a piece of Spark SQL and the columns it is tried on, by family.

Law: a form says nothing of whether the edge computes it; the edge says so itself, and the tests hold it to
that.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """One expression over columns `a`, `b`, …; `ulps` is how far apart two C libraries may put its last
    digit."""

    family: str
    sql: str
    columns: str
    ulps: int = 0

    def __str__(self) -> str:
        return f"{self.sql} over {self.columns}".replace("\n", "\\n")


FORMS: list[Form] = []


def forms(family: str, columns: str, *texts: str, ulps: int = 0) -> None:
    FORMS.extend(Form(family, text, columns, ulps) for text in texts)


# logic and null tests
forms(
    "logic",
    "a boolean, b boolean",
    "a AND b",
    "a OR b",
    "NOT a",
    "a IS NULL",
    "a IS NOT NULL",
    "a IS TRUE",
    "a IS NOT FALSE",
)
forms(
    "logic",
    "a boolean, b boolean",
    "a = b",
    "a <=> b",
    "a < b",
    "isnull(a)",
    "isnotnull(b)",
    "NOT (a AND NOT b) OR a IS NULL",
)
forms("logic", "a int, b int", "a > 0 AND 10 / a > 1", "b = 0 OR a % b = 1")

# comparison
for _kind in ("int", "bigint", "double", "float", "string", "date", "timestamp", "decimal(10,2)", "binary"):
    forms("comparison", f"a {_kind}, b {_kind}", "a = b", "a <> b", "a < b", "a <=> b", "a >= b")
forms(
    "comparison",
    "a int, b double",
    "a = b",
    "a < b",
    "b > a",
    "a IN (1, 2, 3)",
    "b IN (1, 2.5D, NULL)",
    "b BETWEEN a AND 100",
)
forms("comparison", "a tinyint, b bigint", "a <= b", "a NOT IN (1, 5L)", "greatest(a, b)", "least(a, b)")
forms(
    "comparison",
    "a decimal(10,2), b int",
    "a = b",
    "a > 1.5",
    "a IN (1, 2.25, 0)",
    "a BETWEEN -1 AND b",
    "greatest(a, b)",
)
forms(
    "comparison",
    "a float, b double",
    "a = b",
    "a >= b",
    "greatest(a, b)",
    "least(a, b)",
    "b = 2.5",
    "a > 1",
    "greatest(b, 0D)",
)
forms(
    "comparison",
    "a date, b timestamp",
    "a = b",
    "a < b",
    "a = DATE'2020-01-31'",
    "b >= TIMESTAMP'2000-02-29 12:34:56.789012'",
)
forms(
    "comparison",
    "a string, b string",
    "a IN ('a', 'abc', NULL)",
    "greatest(a, b)",
    "least(a, b, 'm')",
    "a = 'straße'",
    "equal_null(a, b)",
)
forms("comparison", "a string, b int", "a = b", "a < DATE'2020-01-01'", "a IN (1, 2)")
forms("comparison", "a array<int>, b array<int>", "a = b", "a < b")
forms("comparison", "a boolean, b boolean", "greatest(a, b)", "least(a, b)")
forms(
    "comparison",
    "a timestamp, b timestamp",
    "greatest(a, b)",
    "least(a, b)",
    "a BETWEEN b AND TIMESTAMP'2020-03-01'",
)
forms(
    "comparison",
    "a int, b int",
    "a IN (b, 1)",
    "a IS DISTINCT FROM b",
    "a IS NOT DISTINCT FROM b",
    "a != b",
    "a == b",
)

# arithmetic
for _kind in ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)"):
    forms("arithmetic", f"a {_kind}, b {_kind}", "a + b", "a - b", "a * b", "a / b", "a % b", "-a", "abs(a)")
for _kind in ("int", "bigint"):
    forms(
        "arithmetic",
        f"a {_kind}, b {_kind}",
        "a DIV b",
        "pmod(a, b)",
        "mod(a, b)",
        "a & b",
        "a | b",
        "a ^ b",
        "~a",
    )
    forms(
        "arithmetic",
        f"a {_kind}, b int",
        "a << b",
        "a >> b",
        "shiftleft(a, b)",
        "shiftright(a, b)",
        "shiftrightunsigned(a, b)",
    )
    forms(
        "arithmetic",
        f"a {_kind}, b {_kind}",
        "try_add(a, b)",
        "try_subtract(a, b)",
        "try_multiply(a, b)",
        "try_divide(a, b)",
        "try_mod(a, b)",
    )
forms(
    "arithmetic",
    "a int, b bigint",
    "a + b",
    "a * 2",
    "b - 1",
    "a / 7",
    "b % 7",
    "10 / a",
    "a DIV 3",
    "b & 255",
    "+a",
    "a + 1L",
    "positive(a)",
    "negative(b)",
    "100 - a * 2",
    "bit_count(b)",
    "bit_count(a)",
    "getbit(b, a)",
)
forms(
    "arithmetic",
    "a int, b double",
    "a + b",
    "a * b",
    "b / a",
    "b % a",
    "a + 0.5D",
    "a * 1.5",
    "b * 2",
    "b + 0.1",
    "pmod(b, 7)",
    "try_divide(b, a)",
    "try_add(b, 1)",
)
forms("arithmetic", "a float, b int", "a + b", "a * b", "a / b", "a + 1.5F", "a % 3")
forms(
    "arithmetic",
    "a decimal(10,2), b int",
    "a + b",
    "a * b",
    "a / b",
    "a / 3",
    "a + 1",
    "a * 2.5",
    "a - 0.005",
    "b / a",
    "1 / a",
    "a DIV b",
    "a % 3",
    "try_add(a, b)",
    "try_divide(a, b)",
    "pmod(a, b)",
)
forms(
    "arithmetic",
    "a decimal(5,0), b decimal(18,6)",
    "a + b",
    "a * b",
    "a / b",
    "b / a",
    "a - b",
    "-b",
    "abs(b)",
)
forms("arithmetic", "a decimal(38,10), b decimal(38,10)", "a + b", "a * b", "a / b", "a = b", "-a", "abs(a)")
forms(
    "arithmetic",
    "a tinyint, b smallint",
    "a + b",
    "a * b",
    "a / b",
    "a & b",
    "~a",
    "pmod(a, b)",
    "a % b",
    "a << 3",
    "a DIV b",
    "try_add(a, b)",
)
forms("arithmetic", "a number, b int", "a + b", "a * 2", "-a")
forms("arithmetic", "a boolean, b boolean", "bit_count(a)")

# mathematics
forms(
    "mathematics",
    "a double",
    "sqrt(a)",
    "degrees(a)",
    "radians(a)",
    "sign(a)",
    "signum(a)",
    "isnan(a)",
    "rint(a)",
    "ceil(a)",
    "ceiling(a)",
    "floor(a)",
    "abs(a)",
    "round(a)",
    "round(a, 2)",
    "round(a, 0)",
    "round(a, -2)",
    "bround(a)",
    "bround(a, 1)",
    "nanvl(a, 1)",
    "a = pi()",
    "a * e()",
    "round(a, 20)",
)
forms(
    "mathematics",
    "a double",
    "exp(a)",
    "expm1(a)",
    "ln(a)",
    "log(a)",
    "log2(a)",
    "log10(a)",
    "log1p(a)",
    "sin(a)",
    "cos(a)",
    "tan(a)",
    "asin(a)",
    "acos(a)",
    "atan(a)",
    "sinh(a)",
    "cosh(a)",
    "tanh(a)",
    "asinh(a)",
    "acosh(a)",
    "atanh(a)",
    "cot(a)",
    "sec(a)",
    "csc(a)",
    "cbrt(a)",
    ulps=2,
)
forms(
    "mathematics",
    "a double, b double",
    "pow(a, b)",
    "power(a, b)",
    "atan2(a, b)",
    "log(a, b)",
    "hypot(a, b)",
    ulps=2,
)
forms("mathematics", "a double, b double", "nanvl(a, b)", "pmod(a, b)")
forms(
    "mathematics",
    "a int",
    "factorial(a)",
    "sign(a)",
    "round(a)",
    "round(a, -2)",
    "bround(a, -1)",
    "ceil(a)",
    "floor(a)",
    "isnan(a)",
    "bin(a)",
    "hex(a)",
    "conv(a, 10, 16)",
)
forms(
    "mathematics",
    "a int",
    "sqrt(a)",
    "pow(a, 2)",
    "log2(a)",
    "exp(a)",
    "sin(a)",
    "power(2, a)",
    "log(10, a)",
    ulps=2,
)
forms(
    "mathematics",
    "a bigint",
    "ceil(a)",
    "floor(a)",
    "round(a, -3)",
    "sqrt(a)",
    "signum(a)",
    "rint(a)",
    "degrees(a)",
    "factorial(a)",
)
forms("mathematics", "a tinyint", "abs(a)", "round(a)", "round(a, -1)", "sign(a)", "-a")
forms(
    "mathematics",
    "a float",
    "ceil(a)",
    "floor(a)",
    "round(a, 1)",
    "bround(a, 1)",
    "isnan(a)",
    "sign(a)",
    "sqrt(a)",
    "abs(a)",
    "rint(a)",
    "nanvl(a, 0F)",
    "round(a)",
)
forms(
    "mathematics",
    "a decimal(10,2)",
    "ceil(a)",
    "floor(a)",
    "round(a)",
    "round(a, 1)",
    "round(a, -1)",
    "round(a, 5)",
    "bround(a, 1)",
    "sign(a)",
    "abs(a)",
    "ceil(a, 1)",
    "floor(a, 1)",
    "sqrt(a)",
)
forms(
    "mathematics",
    "a double, b bigint",
    "width_bucket(a, 0D, 100D, 10)",
    "width_bucket(a, 10, 0, b)",
    "uniform(0, 10, 1)",
    "rand(1)",
)

# casts between numbers
_NUMBERS = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,2)",
    "decimal(38,10)",
)
for _from in _NUMBERS:
    forms("casts", f"a {_from}", *(f"CAST(a AS {_to})" for _to in _NUMBERS if _to != _from))
for _from in ("int", "bigint", "double", "decimal(10,2)"):
    forms(
        "casts",
        f"a {_from}",
        *(
            f"try_cast(a AS {_to})"
            for _to in ("boolean", "tinyint", "int", "bigint", "double", "decimal(4,1)")
            if _to != _from
        ),
    )
forms(
    "casts",
    "a int",
    "int(a)",
    "bigint(a)",
    "double(a)",
    "float(a)",
    "smallint(a)",
    "tinyint(a)",
    "string(a)",
    "boolean(a)",
    "a::double",
    "decimal(a)",
)

# casts of text
forms(
    "text casts",
    "a number",
    *(
        f"CAST(a AS {_to})"
        for _to in (
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "decimal(10,2)",
            "decimal(38,18)",
            "boolean",
        )
    ),
)
forms(
    "text casts",
    "a number",
    *(f"try_cast(a AS {_to})" for _to in ("tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "boolean")),
)
forms(
    "text casts",
    "a truth",
    "CAST(a AS boolean)",
    "try_cast(a AS boolean)",
    "try_cast(a AS int)",
    "CAST(a AS binary)",
    "boolean(a)",
)
forms(
    "text casts",
    "a day",
    "CAST(a AS date)",
    "try_cast(a AS date)",
    "to_date(a)",
    "try_to_date(a)",
    "date(a)",
    "to_date(a, 'yyyy-MM-dd')",
)
forms(
    "text casts",
    "a moment",
    "CAST(a AS timestamp)",
    "try_cast(a AS timestamp)",
    "to_timestamp(a)",
    "try_to_timestamp(a)",
    "timestamp(a)",
    "CAST(a AS timestamp_ntz)",
    "CAST(a AS date)",
)
for _from in (
    "boolean",
    "tinyint",
    "int",
    "bigint",
    "decimal(10,2)",
    "decimal(38,10)",
    "decimal(12,9)",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
    "double",
    "float",
):
    forms("text casts", f"a {_from}", "CAST(a AS string)")
forms("text casts", "a string", "CAST(a AS binary)", "CAST(a AS string)", "CAST(a AS varchar(3))")

# strings
forms(
    "strings",
    "a string",
    "upper(a)",
    "ucase(a)",
    "lower(a)",
    "lcase(a)",
    "length(a)",
    "char_length(a)",
    "character_length(a)",
    "len(a)",
    "octet_length(a)",
    "bit_length(a)",
    "reverse(a)",
    "initcap(a)",
    "ascii(a)",
    "trim(a)",
    "ltrim(a)",
    "rtrim(a)",
    "btrim(a)",
    "a || '!'",
    "soundex(a)",
    "md5(a)",
    "crc32(a)",
    "base64(CAST(a AS binary))",
    "hex(a)",
    "levenshtein(a, 'abc')",
)
forms(
    "strings",
    "a string",
    "trim('a' FROM a)",
    "trim('ab', a)",
    "trim(BOTH ' a' FROM a)",
    "trim(LEADING 'ab' FROM a)",
    "trim(TRAILING '\\n\\r' FROM a)",
    "btrim(a, 'ac')",
    "ltrim('a', a)",
    "rtrim('é😀', a)",
    "btrim(a, '')",
)
forms(
    "strings",
    "a string",
    "substring(a, 2)",
    "substring(a, 2, 3)",
    "substr(a, -3)",
    "substr(a, -3, 2)",
    "substring(a, 0, 2)",
    "substring(a, -20, 18)",
    "substring(a FROM 2 FOR 2)",
    "substring(a, 2, -1)",
    "left(a, 2)",
    "left(a, 0)",
    "right(a, 3)",
    "right(a, -1)",
    "substring(a, -2, 5)",
    "substr(a, 3, 2147483647)",
)
forms(
    "strings",
    "a string",
    "lpad(a, 6, 'xy')",
    "rpad(a, 6, 'xy')",
    "lpad(a, 3)",
    "rpad(a, 8)",
    "lpad(a, 4, '')",
    "lpad(a, 0, 'x')",
    "rpad(a, 7, 'é😀')",
    "repeat(a, 3)",
    "repeat(a, 0)",
    "space(3) || a",
    "replace(a, 'a', 'bb')",
    "replace(a, 'b')",
    "replace(a, '', 'x')",
    "translate(a, 'abc', 'xy')",
    "translate(a, 'ab', 'ba')",
    "translate(a, 'é日', 'e')",
    "overlay(a, 'XY', 2)",
    "overlay(a, 'XY', 2, 0)",
    "overlay(a, 'X', 3, 2)",
    "a || NULL",
)
forms(
    "strings",
    "a string",
    "instr(a, 'b')",
    "instr(a, '')",
    "locate('a', a)",
    "locate('a', a, 2)",
    "locate('', a, 3)",
    "locate('a', a, 0)",
    "position('b' IN a)",
    "position('b', a)",
    "position('b', a, 3)",
    "startswith(a, 'a')",
    "endswith(a, 'c')",
    "contains(a, 'b')",
    "contains(a, '')",
    "find_in_set(a, 'a,b,c')",
    "instr(a, '😀')",
)
forms(
    "strings",
    "a string, b string",
    "concat(a, b)",
    "a || b",
    "concat(a, '-', b)",
    "concat_ws(',', a, b)",
    "concat_ws('', a, NULL, b)",
    "concat(a)",
    "concat_ws(a, b, 'x')",
    "startswith(a, b)",
    "contains(a, b)",
    "instr(a, b)",
    "replace(a, b, 'x')",
    "a LIKE b",
    "a RLIKE b",
    "concat_ws(',')",
    "nullif(a, b)",
    "concat_ws(',', a)",
    "lpad(a, 5, b)",
)
forms(
    "strings",
    "a string, b int",
    "repeat(a, b % 5)",
    "concat(a, b)",
    "a || b",
    "concat_ws('-', a, b)",
    "substring(a, b)",
    "left(a, b)",
    "space(b % 10)",
    "chr(b)",
    "char(b)",
    "elt(b, a, 'x')",
    "split_part(a, ',', b)",
)
forms(
    "strings",
    "a string",
    "split(a, ',')",
    "split(a, ',', 2)",
    "split(a, 'ab', -1)",
    "split(a, '[,-]')",
    "split(a, '')",
    "split(a, '\\\\s+')",
    "split_part(a, ',', 2)",
    "split_part(a, ',', -1)",
    "split_part(a, ',', 10)",
    "split_part(a, '', 1)",
    "split_part(a, '-', 1)",
    "substring_index(a, ',', 1)",
    "split(a, '\\\\.')",
    "split_part(a, '.', -2)",
)
forms(
    "strings",
    "a binary, b binary",
    "length(a)",
    "octet_length(a)",
    "concat(a, b)",
    "a || b",
    "bit_length(a)",
    "substring(a, 1, 2)",
)
forms(
    "strings",
    "a string",
    "mask(a)",
    "sentences(a)",
    "encode(a, 'UTF-8')",
    "format_string('%s', a)",
    "url_encode(a)",
    "luhn_check(a)",
    "unhex(a)",
)

# patterns
forms(
    "patterns",
    "a string",
    "a LIKE 'a%'",
    "a LIKE '%c'",
    "a LIKE '%b%'",
    "a LIKE 'abc'",
    "a LIKE '_b_'",
    "a LIKE ''",
    "a LIKE '%'",
    "a NOT LIKE '%a%b%'",
    "a LIKE '%\\\\_%'",
    "a LIKE '100!%' ESCAPE '!'",
    "a LIKE '%\\n%'",
    "a LIKE '.*'",
    "a LIKE '%é_a%'",
    "a ILIKE 'ABC%'",
    "a ILIKE '%STRASSE%'",
    "a ILIKE 'i̇%'",
    "a LIKE ANY ('a%', '%c')",
    "a ILIKE '_bc'",
    "a LIKE 'a!b' ESCAPE '!'",
)
forms(
    "patterns",
    "a string",
    "a RLIKE 'a'",
    "a RLIKE '^a.c$'",
    "a RLIKE '[0-9]+'",
    "a RLIKE '\\\\d{2}'",
    "a RLIKE '^\\\\s'",
    "a RLIKE 'd$'",
    "a RLIKE '^[^,]*$'",
    "a REGEXP 'a|b'",
    "regexp_like(a, '^(foo|one)')",
    "regexp(a, 'b+?')",
    "rlike(a, '\\\\w+=\\\\w+')",
    "a RLIKE 'e.b'",
    "a RLIKE ''",
    "a RLIKE '\\\\$1'",
    "a RLIKE '\\\\S\\\\s\\\\S'",
    "a RLIKE '(?i)ABC'",
    "a RLIKE '\\\\bfoo'",
    "a RLIKE '(a)\\\\1'",
    "a RLIKE 'a(?=b)'",
    "a RLIKE '\\\\p{L}+'",
    "a RLIKE '[a-z&&[^b]]'",
    "a RLIKE 'a++b'",
    "a RLIKE '\\\\u00e9'",
    "a RLIKE '[\\\\s,]x'",
    "a RLIKE '^$'",
    "a RLIKE 'x{2,}|\\\\.'",
    "a RLIKE '.\\\\n.'",
    "a RLIKE '[日本]'",
    "a RLIKE '\\\\D$'",
)
forms(
    "patterns",
    "a string",
    "regexp_replace(a, 'a', 'X')",
    "regexp_replace(a, '[0-9]+', '#')",
    "regexp_replace(a, '(\\\\w)-(\\\\w)', '$2-$1')",
    "regexp_replace(a, '\\\\s+', ' ')",
    "regexp_replace(a, 'b', '\\\\$')",
    "regexp_replace(a, 'a*', 'x')",
    "regexp_replace(a, '^.', '')",
    "regexp_replace(a, '.', '.')",
    "regexp_replace(a, 'a', 'b', 2)",
    "regexp_replace(a, 'b', '[$0]')",
    "regexp_replace(a, 'c$', 'x')",
    "regexp_replace(a, '[^a-zA-Z ]', '')",
)
forms(
    "patterns",
    "a string",
    "regexp_extract(a, '(\\\\w+)-(\\\\w+)', 2)",
    "regexp_extract(a, '([a-z]+)([0-9]+)')",
    "regexp_extract(a, '[0-9]+', 0)",
    "regexp_extract(a, '(a)|(b)', 2)",
    "regexp_extract(a, '^([^=]*)=(.*)$', 2)",
    "regexp_extract(a, '(a+?)(b*)', 1)",
    "regexp_count(a, 'ab')",
    "regexp_count(a, '[aeiou]')",
    "regexp_count(a, 'a*')",
    "regexp_extract_all(a, '(a)')",
    "regexp_substr(a, 'b.')",
    "regexp_instr(a, 'b')",
    "regexp_count(a, '.')",
)

# dates and times
forms(
    "times",
    "a timestamp",
    "year(a)",
    "quarter(a)",
    "month(a)",
    "day(a)",
    "dayofmonth(a)",
    "dayofweek(a)",
    "weekday(a)",
    "dayofyear(a)",
    "weekofyear(a)",
    "hour(a)",
    "minute(a)",
    "second(a)",
    "extract(YEAR FROM a)",
    "extract(WEEK FROM a)",
    "extract(SECOND FROM a)",
    "extract(YEAROFWEEK FROM a)",
    "extract(DOW FROM a)",
    "extract(DAYOFWEEK_ISO FROM a)",
    "date_part('doy', a)",
    "date_part('MONTH', a)",
    "datepart('hour', a)",
    "last_day(a)",
    "dayname(a)",
    "monthname(a)",
    "extract(QUARTER FROM a)",
    "extract(MINUTE FROM a)",
)
forms(
    "times",
    "a timestamp",
    *(
        f"date_trunc('{_unit}', a)"
        for _unit in (
            "year",
            "QUARTER",
            "month",
            "mm",
            "week",
            "day",
            "dd",
            "hour",
            "minute",
            "second",
            "millisecond",
            "microsecond",
            "decade",
        )
    ),
)
forms(
    "times",
    "a date",
    *(f"trunc(a, '{_unit}')" for _unit in ("year", "yy", "quarter", "MONTH", "week", "day")),
    "date_trunc('month', a)",
)
forms(
    "times",
    "a date",
    "year(a)",
    "month(a)",
    "day(a)",
    "dayofweek(a)",
    "weekday(a)",
    "dayofyear(a)",
    "weekofyear(a)",
    "quarter(a)",
    "last_day(a)",
    "next_day(a, 'Mon')",
    "next_day(a, 'sunday')",
    "unix_date(a)",
    "hour(a)",
    "extract(DAY FROM a)",
    "CAST(a AS timestamp)",
    "CAST(a AS timestamp_ntz)",
    "a + 1",
    "a - 1",
    "1 + a",
    "date_add(a, 45)",
    "date_sub(a, 45)",
    "dateadd(a, 3)",
    "add_months(a, 1)",
    "add_months(a, -13)",
    "a + INTERVAL 1 DAY",
    "a - INTERVAL '2' DAY",
    "a + INTERVAL 1 MONTH",
    "a + INTERVAL 2 HOURS",
    "a - INTERVAL '1-2' YEAR TO MONTH",
    "a + INTERVAL 1 WEEK",
    "to_date(a)",
    "to_timestamp(a)",
)
forms(
    "times",
    "a date, b int",
    "date_add(a, b)",
    "date_sub(a, b)",
    "a + b",
    "a - b",
    "add_months(a, b % 100000)",
    "make_date(b, 2, 29)",
    "date_from_unix_date(b)",
    "add_months(a, b)",
)
forms(
    "times",
    "a int, b int",
    "make_date(a, b, 1)",
    "make_date(2020, a, b)",
    "timestamp_seconds(a)",
    "make_timestamp(2020, 1, 1, a, b, 0)",
    "make_interval(a, b)",
)
forms(
    "times",
    "a date, b date",
    "datediff(a, b)",
    "date_diff(a, b)",
    "a - b",
    "months_between(a, b)",
    "datediff(DAY, a, b)",
)
forms(
    "times",
    "a timestamp, b timestamp",
    "datediff(a, b)",
    "a - b",
    "months_between(a, b)",
    "months_between(a, b, false)",
    "a - b > INTERVAL 1 DAY",
    *(
        f"timestampdiff({_unit}, a, b)"
        for _unit in (
            "YEAR",
            "QUARTER",
            "MONTH",
            "WEEK",
            "DAY",
            "HOUR",
            "MINUTE",
            "SECOND",
            "MILLISECOND",
            "MICROSECOND",
        )
    ),
)
forms(
    "times",
    "a timestamp",
    "unix_seconds(a)",
    "unix_millis(a)",
    "unix_micros(a)",
    "unix_timestamp(a)",
    "to_unix_timestamp(a)",
    "CAST(a AS bigint)",
    "CAST(a AS int)",
    "CAST(a AS double)",
    "CAST(a AS date)",
    "CAST(a AS timestamp_ntz)",
    "CAST(a AS decimal(20,6))",
    "to_date(a)",
    "CAST(a AS float)",
    "try_cast(a AS int)",
    "date(a)",
)
forms(
    "times",
    "a timestamp",
    "a + INTERVAL 1 DAY",
    "a - INTERVAL 90 MINUTES",
    "a + INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "a + INTERVAL 1 MONTH",
    "a - INTERVAL 2 YEARS",
    "INTERVAL 5 SECONDS + a",
    "a + INTERVAL 1 DAY 2 HOURS",
    "a - INTERVAL '1-1' YEAR TO MONTH",
    "a + INTERVAL '3' WEEK",
    "a + INTERVAL '1.5' SECOND",
    "a + INTERVAL 10 MILLISECONDS",
    "a + INTERVAL -1 HOUR",
    "a + INTERVAL '02:03' MINUTE TO SECOND",
    *(
        f"timestampadd({_unit}, 5, a)"
        for _unit in (
            "YEAR",
            "MONTH",
            "WEEK",
            "DAY",
            "HOUR",
            "MINUTE",
            "SECOND",
            "MILLISECOND",
            "MICROSECOND",
        )
    ),
    "dateadd(HOUR, -30, a)",
    "date_add(a, 3)",
)
forms(
    "times",
    "a timestamp, b int",
    "timestampadd(HOUR, b, a)",
    "timestampadd(MONTH, b % 1000, a)",
    "dateadd(DAY, b % 10000, a)",
)
forms(
    "times",
    "a timestamp",
    "date_format(a, 'yyyy-MM-dd')",
    "date_format(a, 'yyyy-MM-dd HH:mm:ss')",
    "date_format(a, 'yyyyMMddHHmmss')",
    "date_format(a, 'HH:mm')",
    "date_format(a, \"yyyy-MM-dd'T'HH:mm:ss.SSS\")",
    "date_format(a, 'EEEE d MMM')",
    "date_format(a, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    "from_utc_timestamp(a, 'Europe/Berlin')",
    "a || ''",
)
forms(
    "times",
    "a bigint",
    "timestamp_seconds(a)",
    "timestamp_millis(a)",
    "timestamp_micros(a)",
    "CAST(a AS timestamp)",
    "from_unixtime(a)",
    "from_unixtime(a % 100000000000)",
    "from_unixtime(a % 100000000000, 'yyyy-MM-dd')",
    "try_cast(a AS timestamp)",
)
forms("times", "a double", "CAST(a AS timestamp)", "timestamp_seconds(a)")
forms(
    "times",
    "a timestamp_ntz, b timestamp_ntz",
    "CAST(a AS timestamp)",
    "a = b",
    "year(a)",
    "hour(a)",
    "date_trunc('hour', a)",
    "a + INTERVAL 1 HOUR",
    "a - b",
    "CAST(a AS date)",
    "a + INTERVAL 1 MONTH",
)
forms("times", "a timestamp, b date", "a - b", "b - a", "a > b", "current_timestamp() > a")

# conditions
forms(
    "conditions",
    "a int, b int",
    "CASE WHEN a > b THEN a ELSE b END",
    "CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
    "if(a > 0, a, b)",
    "coalesce(a, b, 0)",
    "nvl(a, b)",
    "ifnull(a, b)",
    "nvl2(a, b, 1)",
    "nullif(a, b)",
    "CASE WHEN b <> 0 THEN a / b END",
    "if(b = 0, NULL, a % b)",
    "coalesce(a, 1 / b)",
    "zeroifnull(a)",
    "nullifzero(a)",
    "CASE WHEN a > 0 THEN 1 ELSE 2.5 END",
    "CASE WHEN a > 0 THEN NULL ELSE NULL END",
    "assert_true(a > b)",
)
forms(
    "conditions",
    "a double, b int",
    "coalesce(a, b)",
    "if(isnan(a), 0, a)",
    "nullif(a, 0)",
    "CASE WHEN a > 1 THEN b WHEN a < 0 THEN a END",
)
forms(
    "conditions",
    "a decimal(10,2), b int",
    "coalesce(a, b)",
    "CASE WHEN b > 0 THEN a ELSE 1 END",
    "nullif(a, 0)",
    "if(b > 0, a, 2.555)",
)
forms(
    "conditions",
    "a string, b string",
    "coalesce(a, b, '')",
    "CASE WHEN a = '' THEN b ELSE upper(a) END",
    "nvl(a, 'none')",
    "if(a LIKE 'a%', 1, 0)",
    "coalesce(a, 5)",
    "decode(a, 'a', 1, 'abc', 2)",
)
forms("conditions", "a date, b timestamp", "coalesce(a, b)", "if(a IS NULL, b, a)", "CASE WHEN a > b THEN a END")
forms(
    "conditions",
    "a array<int>, b struct<x: int, y: string>",
    "coalesce(a, a)",
    "if(a IS NULL, 1, 2)",
    "CASE WHEN b IS NULL THEN NULL ELSE b END",
    "if(size(a) > 1, a, NULL)",
    "b IS NULL",
)

# nested values
forms("nested", "a struct<x: int, y: string>", "a.x", "a.Y", "a.x + 1", "upper(a.y)", "a['x']")
forms("nested", "a struct<x: struct<z: double>, y: array<int>>", "a.x.z", "a.y[0]", "size(a.y)")
forms(
    "nested",
    "a array<int>, b int",
    "a[0]",
    "a[b]",
    "a[b % 3]",
    "element_at(a, 1)",
    "element_at(a, -1)",
    "element_at(a, b)",
    "try_element_at(a, b)",
    "get(a, b)",
    "get(a, 1)",
    "size(a)",
    "cardinality(a)",
    "array_size(a)",
    "array_contains(a, 1)",
    "array_contains(a, b)",
    "array(b, b + 1L)",
    "array_max(a)",
    "array_min(a)",
    "sort_array(a)",
    "array_position(a, 1)",
    "slice(a, 1, 2)",
    "transform(a, x -> x + 1)",
    "filter(a, v -> v > 0)",
    "exists(a, v -> v = b)",
    "array_join(transform(a, v -> string(v)), ',')",
    "aggregate(a, 0, (s, v) -> s + v)",
    "flatten(array(a, a))",
    "concat(a, array(b))",
    "array_distinct(a)",
)
forms(
    "nested",
    "a array<string>, b string",
    "a[1]",
    "array_contains(a, 'a')",
    "array_contains(a, b)",
    "size(a)",
    "array(a, a)",
    "concat_ws(',', a)",
    "array_join(a, ',')",
    "element_at(a, 2)",
)
forms(
    "nested",
    "a array<double>",
    "array_contains(a, 1.0D)",
    "array_contains(a, CAST('NaN' AS double))",
    "a[0] + 1",
    "array_contains(a, -0D)",
)
forms("nested", "a array<struct<x: int, y: string>>", "a[0].x", "a.x", "size(a)")
forms(
    "nested",
    "a map<string, int>, b string",
    "a['a']",
    "a[b]",
    "element_at(a, 'abc')",
    "try_element_at(a, ' ')",
    "size(a)",
    "map_keys(a)",
    "map_values(a)",
    "cardinality(a)",
    "map_contains_key(a, 'a')",
    "map_entries(a)",
    "a['a'] + 1",
)
forms(
    "nested",
    "a int, b string",
    "struct(a, b)",
    "named_struct('p', a, 'q', b)",
    "struct(a AS n, b)",
    "struct(a + 1, b).col1",
    "array(a, 1, NULL)",
    "named_struct('p', a).p + 1",
    "map('k', a)",
    "array(b, 'x')",
    "struct(a, 1, 'x' AS lit)",
    "array()",
    "to_json(struct(a, b))",
    "struct(*)",
)
forms(
    "nested",
    "a string",
    "get_json_object(a, '$.x')",
    "from_json(a, 'x int')",
    "parse_json(a)",
    "xxhash64(a)",
    "hash(a)",
)

# literals
forms(
    "literals",
    "a int",
    "1",
    "1L",
    "1S",
    "1Y",
    "1.5",
    "1.5BD",
    "1.5D",
    "1.5F",
    "1e3",
    "-2147483648",
    "-9223372036854775808",
    "-128Y",
    "NULL",
    "TRUE",
    "'text'",
    "DATE'2020-02-29'",
    "TIMESTAMP'2020-01-01 01:02:03.456'",
    "TIMESTAMP'2020-01-01 00:00:00+02:00'",
    "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
    "X'1fA0'",
    "X'F'",
    "'it''s'",
    '"say ""hi"" it\'\'s"',
    "'a\\\\''b'",
    "r'it'",
    "'a' 'b'",
    '"double"',
    "'tab\\tnl\\n\\\\ \\' \\\" \\u00e9 \\101 \\Z \\0 \\b \\% \\_ \\q'",
    "r'raw\\n'",
    "INTERVAL 1 DAY",
    "INTERVAL '1 02:03:04.000005' DAY TO SECOND",
    "INTERVAL -3 HOURS",
    "INTERVAL '1-2' YEAR TO MONTH",
    "CAST('12' AS int) + 1",
    "1 + 1",
    "'a' || 'b'",
    "1.50",
    "0.05",
    ".5",
    "5.",
    "99999999999999999999",
    "123456789012",
    "-1.5BD",
    "-1L",
    "1e-3BD",
    "CAST(NULL AS int)",
    "CAST('NaN' AS double)",
    "pi()",
    "2 > 1",
    "DATE'1582-10-10'",
    "TIMESTAMP'0001-01-01 00:00:00'",
    "- 5",
    "current_date() IS NULL",
    "1 / 3",
    "1.0 / 3",
    "10 % 3.5",
    "upper('é')",
    "'😀'",
    "'\\U0001F600'",
    "'100\\%'",
    "X'' IS NULL",
)
