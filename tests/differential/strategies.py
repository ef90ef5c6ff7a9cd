"""Rows that have broken engines before, and hypothesis' own ideas beside them.

Law: each type has a list of corner values. `corners` crosses them for a form's columns; `batches` draws from
them and from the whole range of the type, nulls included.
"""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st

from rove.model.schema import parse_schema

CORNER_ROWS_MAX = 330
BATCH_ROWS = 40
DAY_US = 86_400_000_000


def _moments() -> list[int]:
    """Microseconds: month ends, leap days, before 1970, fractions, the first and last years."""
    days = [
        -719162,
        -141428,
        -25509,
        -1,
        0,
        1,
        58,
        59,
        364,
        365,
        10956,
        11015,
        11016,
        18261,
        18320,
        18321,
        18322,
        18350,
    ]
    days += [18627, 19722, 19782, 2932896]
    seconds = [0, 1, DAY_US - 1, 45_296_789_012, 3_600_000_000, 59_999_999, 500_000]
    return [d * DAY_US + seconds[i % len(seconds)] for i, d in enumerate(days)] + [
        951_827_696_789_012,
        -1,
        -1_000_001,
    ]


TEXTS = [
    "",
    " ",
    "a",
    "abc",
    "ABC",
    "Abc def",
    "  padded\t",
    "a,b,,c,",
    "one-two-three",
    "straße",
    "ŉafflﬁ",
    "İstanbul",
    "ıI",
    "ΑΣ ΣΑΣ. Σ",
    "é́a",
    "naïve Ünï",
    "日本語テキスト",
    "👍🏽 ok😀",
    "line\nbreak\r\n",
    "end\n",
    "end\r",
    "nel\x85x\u2028y",
    "tab\there\x0b\x0c",
    "100%",
    "a_b",
    "back\\slash",
    "'quoted' \"text\"",
    "$1 (x) [y] {z} ^.*+?|",
    "foo123bar45",
    "key=value",
    "\x00nul",
    "aaa",
    "abababab",
    "Ⅷ ⓐ Ǆ ǅ ǆ ᾳ",
]
NUMBERS = [
    "0",
    "1",
    "-1",
    "+7",
    " 42 ",
    "007",
    "\t5\n",
    "2147483647",
    "2147483648",
    "-2147483648",
    "9223372036854775807",
]
NUMBERS += [
    "9223372036854775808",
    "-9223372036854775808",
    "127",
    "128",
    "-129",
    "32768",
    "1.5",
    "-0.0",
    ".5",
    "5.",
    "1e3",
]
NUMBERS += [
    "1E-3",
    "1e400",
    "-1e400",
    "1e-400",
    "NaN",
    "nan",
    "inf",
    "-Infinity",
    "+infinity",
    "1.5d",
    "2.5F",
    "0x1p3",
]
NUMBERS += [
    "1_000",
    "12 34",
    "--1",
    "+",
    "-",
    ".",
    "",
    " ",
    "e5",
    "1e",
    "0.30000000000000004",
    "123456789.987654321",
]
NUMBERS += [
    "99999999999999999999999999999999999999",
    "0.125",
    "2.675",
    "1.005",
    "-99.995",
    "\u00a012",
    "１２",
    "1.0e+2",
]
NUMBERS += [
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000012",
    "1e38",
    "4.35e-2",
]
TRUTHS = [
    "true",
    "false",
    "TRUE",
    " True ",
    "t",
    "F",
    "y",
    "Yes",
    "n",
    "NO",
    "1",
    "0",
    "2",
    "",
    "on",
    "tru",
    "\tt\n",
    "10",
]
DAYS = [
    "2020-01-31",
    "2020-2-9",
    "2020-02-30",
    "2019-02-29",
    "2020-02-29",
    "1582-10-10",
    "0001-01-01",
    "9999-12-31",
]
DAYS += [
    "2020",
    "2020-05",
    " 2021-03-04 ",
    "2020-01-02T",
    "2020-01-02 junk",
    "2020-01-02junk",
    "20200102",
    "2020-13-01",
]
DAYS += [
    "-0044-03-15",
    "+2020-01-01",
    "02020-01-01",
    "12020-01-01",
    "99",
    "",
    "abc",
    "2020-",
    "2020-1-",
    "2020-00-01",
]
DAYS += ["2020-01-00", "2020-001-01", "2020/01/02", "1999-12-31T23:59:59Z", "2020-01-02\n"]
MOMENTS = [
    "2020-01-31 12:34:56",
    "2020-01-31T12:34:56.789",
    "2020-01-31 12:34:56.123456789",
    "2020-01-31 1:2:3",
    "2020-01-31",
]
MOMENTS += [
    "2020-01-31 12:34",
    "2020-01-31 12",
    "2020-01-31 24:00:00",
    "2020-01-31 23:60:00",
    "2020-01-31 23:59:60",
]
MOMENTS += [
    "1969-12-31 23:59:59.999999",
    "2020-01-31T12:34:56Z",
    "2020-01-31T12:34:56+02:00",
    "2020-01-31 12:34:56-0530",
]
MOMENTS += [
    "2020-01-31 12:34:56+1",
    "2020-01-31 12:34:56 UTC",
    "2020-01-31 12:34:56.",
    "2020-01-31 12:34:56.5 +01:00",
]
MOMENTS += [
    "2020",
    "2020-02",
    "2020-02-30 00:00:00",
    " 2020-01-31 00:00:00 ",
    "2020-01-31T",
    "2020-01-31 ",
    "",
    "x",
]
MOMENTS += [
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "2020-01-31 12:34:56+25:00",
    "2020-01-31  12:34:56",
]
MOMENTS += [
    "2020-01-31T12:34:56.000001Z",
    "2020-01-31 12:34:56 +2:30",
    "2020-01-31 12:34:56+18:00",
    "2020-1-1T1:1",
]

_FLOATS = [
    -123.45,
    2.345,
    0.15,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    2.675,
    0.1,
    1e-7,
    1 / 3,
    123456.789,
    -1e15,
    9007199254740993.0,
]
_FLOATS += [
    9.3e18,
    -9.3e18,
    1e300,
    -1e300,
    5e-324,
    2.2250738585072014e-308,
    math.pi,
    math.nan,
    math.inf,
    -math.inf,
]
_FLOATS += [
    2147483647.0,
    2147483648.0,
    1e22,
    0.49999999999999994,
    3.0,
    1e-300,
    127.6,
    -32768.9,
    9223372036854775807.0,
]

CORNERS: dict[str, list[object]] = {
    "boolean": [True, False],
    "tinyint": [0, 1, -1, 7, 100, 127, -128],
    "smallint": [0, 1, -1, 13, 255, 32767, -32768],
    "int": [0, 1, -1, 2, 3, 5, 12, 21, 31, 32, -7, 40, 100, 255, 1999, 2020, 65537, 2147483647, -2147483648],
    "bigint": [0, 1, -1, 3, 60, 63, 64, -7, 1000, 10**9, -(10**12), 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    "float": [x for x in _FLOATS if not 0 < abs(x) < 1e-300] + [3.4028235e38, 1e-45],
    "double": _FLOATS,
    "string": TEXTS,
    "number": NUMBERS,
    "truth": TRUTHS,
    "day": DAYS,
    "moment": MOMENTS,
    "binary": [b"", b"\x00", b"abc", b"\xff\xfe", b"caf\xc3\xa9"],
    "date": sorted({m // DAY_US for m in _moments()}),
    "timestamp": _moments(),
    "timestamp_ntz": _moments(),
    "interval": [0, 1, -1, DAY_US, -DAY_US - 1, 90 * 60 * 1_000_000, 2**62],
}
_TEXT_KINDS = ("number", "truth", "day", "moment")


@cache
def schema_of(ddl: str) -> pa.Schema:
    """The schema of a form; `number`, `truth`, `day`, `moment` are strings that look like one."""
    parts = [part.split() for part in _columns(ddl)]
    return parse_schema(
        ", ".join(f"{n} {'string' if k in _TEXT_KINDS else k}" for n, k in ((p[0], " ".join(p[1:])) for p in parts))
    )


def _kinds(ddl: str) -> list[str]:
    return [" ".join(part.split()[1:]) for part in _columns(ddl)]


def _columns(ddl: str) -> list[str]:
    parts, depth = [""], 0
    for char in ddl:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [p.strip() for p in parts if p.strip()]


def corner_values(kind: str, dtype: pa.DataType) -> list[object]:
    """The corner values of a type, a null first."""
    if kind in CORNERS:
        return [None, *CORNERS[kind]]
    if pt.is_decimal(dtype):
        top = 10**dtype.precision - 1
        some = {
            0,
            1,
            -1,
            5,
            -15,
            25,
            100,
            -12345,
            top,
            -top,
            top // 2,
            10 ** (dtype.precision - 1),
            1255,
            -2500,
        }
        return [None, *(unscaled(v, dtype.scale) for v in sorted(some) if abs(v) <= top)]
    if pt.is_list(dtype):
        items = corner_values(kind[len("array<") : -1], dtype.value_type)
        return [None, [], [None], items[1:2], items[1:4], [items[1], None, items[2]], items[:9]]
    if pt.is_struct(dtype):
        columns = [corner_values(_struct_kind(kind, f.name), f.type) for f in dtype.fields]
        rows = [{f.name: c[i % len(c)] for f, c in zip(dtype.fields, columns, strict=True)} for i in range(8)]
        return [None, *rows]
    if pt.is_map(dtype):
        key, value = _columns(kind[len("map<") : -1])
        keys, values = corner_values(key, dtype.key_type)[1:], corner_values(value, dtype.item_type)
        return [
            None,
            [],
            [(keys[0], None)],
            list(zip(keys[:5], values[:5], strict=False)),
            [(keys[2], values[1])],
        ]
    raise KeyError(kind)


def unscaled(digits: int, scale: int) -> Decimal:
    """A decimal from its digits, whatever the context's precision."""
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


def _struct_kind(kind: str, name: str) -> str:
    inner = kind[len("struct<") : -1]
    return next(k.strip() for n, _, k in (c.partition(":") for c in _columns(inner)) if n.strip() == name)


def column(values: list[object], dtype: pa.DataType) -> pa.Array:
    if pt.is_temporal(dtype) and not pt.is_nested(dtype):
        return pa.array(values, pa.int32() if pt.is_date32(dtype) else pa.int64()).cast(dtype)
    return pa.array(values, dtype)


def corners(ddl: str) -> pa.RecordBatch:
    """Corner values of every column crossed with those of the others, thinned to a few hundred rows."""
    schema = schema_of(ddl)
    pools = [corner_values(kind, field.type) for kind, field in zip(_kinds(ddl), schema, strict=True)]
    rows = list(itertools.islice(itertools.product(*pools), 200_000))
    if len(rows) > CORNER_ROWS_MAX:
        chance = random.Random(ddl)
        rows = [tuple(chance.choice(pool) for pool in pools) for _ in range(CORNER_ROWS_MAX)]
    columns = [column([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.record_batch(columns, schema=schema)


def values(kind: str, dtype: pa.DataType) -> st.SearchStrategy[object]:
    """One value of a type: a corner, or anything in its range."""
    known = st.sampled_from(corner_values(kind, dtype))
    if pt.is_integer(dtype):
        top = 2 ** (dtype.bit_width - 1)
        return known | st.integers(-top, top - 1) | st.integers(-99, 99).filter(lambda v: -top <= v < top)
    if pt.is_floating(dtype):
        width = dtype.bit_width
        near = st.decimals(-1000, 1000, places=3).map(float)
        return known | st.floats(width=width) | near.map(lambda v: pa.scalar(v, dtype).as_py())
    if kind == "string":
        return known | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cn", "Co")), max_size=12)
    if pt.is_string(dtype):
        return known
    if pt.is_timestamp(dtype):
        return known | st.integers(-719162 * DAY_US, 2932897 * DAY_US - 1) | st.integers(0, 2 * 10**15)
    if pt.is_date(dtype):
        return known | st.integers(-719162, 2932896) | st.integers(0, 25000)
    if pt.is_decimal(dtype):
        top = 10**dtype.precision - 1
        return known | st.integers(-top, top).map(lambda v: unscaled(v, dtype.scale))
    if pt.is_list(dtype):
        return known | st.lists(values(kind[len("array<") : -1], dtype.value_type), max_size=5)
    return known


def batches(ddl: str, rows: int = BATCH_ROWS) -> st.SearchStrategy[pa.RecordBatch]:
    """Batches of a form's columns."""
    schema = schema_of(ddl)
    per_row = st.tuples(*(values(kind, field.type) for kind, field in zip(_kinds(ddl), schema, strict=True)))

    def build(drawn: list[tuple[object, ...]]) -> pa.RecordBatch:
        columns = [column([row[i] for row in drawn], field.type) for i, field in enumerate(schema)]
        return pa.record_batch(columns, schema=schema)

    return st.lists(per_row, min_size=rows, max_size=rows).map(build)
