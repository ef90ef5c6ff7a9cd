"""Logic and null tests."""

from __future__ import annotations

from tests.differential.forms.form import forms

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
