"""Conditions."""

from __future__ import annotations

from tests.differential.forms.form import forms

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
