"""Arithmetic."""

from __future__ import annotations

from tests.differential.forms.form import forms

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
    "b % 7 = 0",
    "b % -12 <> 0",
    "b % 12 = 5",
    "0 = b % 64",
    "b % 9223372036854775807 = 0",
    "a % 3 = -1",
    "a % 2147483647 = 0",
    "(a - 1) % 10 <> 4",
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
