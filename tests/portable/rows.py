"""Are two tables the same rows? Order does not count; fractions may differ in the ninth digit, no more."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from rove.model.schema import type_name

RELATIVE = 1e-9


def assert_same_rows(actual: pa.Table, expected: pa.Table, what: str) -> None:
    assert actual.schema.names == expected.schema.names, what
    types = [(type_name(a.type), type_name(b.type)) for a, b in zip(actual.schema, expected.schema, strict=True)]
    assert all(a == b for a, b in types), f"{what}: types {types}"
    assert actual.num_rows == expected.num_rows, f"{what}: {actual.num_rows} rows, Spark has {expected.num_rows}"
    for a, b in zip(_sorted(actual), _sorted(expected), strict=True):
        assert _alike(a, b), f"{what}:\n  rove  {a}\n  spark {b}"


def _sorted(table: pa.Table) -> list[list[Any]]:
    return sorted((list(row.values()) for row in table.to_pylist()), key=lambda row: [_rank(v) for v in row])


def _rank(value: Any) -> str:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value:.6e}"
    if isinstance(value, dict):
        return repr([_rank(v) for v in value.values()])
    if isinstance(value, list):
        return repr([_rank(v) for v in value])
    return repr(value)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=RELATIVE, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return bool(a == b)
