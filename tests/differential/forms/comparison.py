"""Comparison."""

from __future__ import annotations

from tests.differential.forms.form import forms

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
