"""Casts of text."""

from __future__ import annotations

from tests.differential.forms.form import forms

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
