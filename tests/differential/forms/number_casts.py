"""Casts between numbers."""

from __future__ import annotations

from tests.differential.forms.form import forms

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
