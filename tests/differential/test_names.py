"""A column without an alias has the name that Spark gives it, or has to be named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sqlglot import exp

import rove
from rove.model.errors import PlanError
from rove.model.schema import parse_schema, schema_text
from rove.plan.expressions.parse import parse_expression
from rove.plan.sql.column_names import spark_name
from tests.differential.forms import FORMS, Form
from tests.differential.statements.unnamed import UNNAMED
from tests.differential.statements.unnamed_calls import UNNAMED_CALLS
from tests.differential.statements.verdicts import COLUMNS
from tests.differential.strategies import schema_of

KNOWN_LEAST = 700


def _names(spark: Any, columns: str, forms: Sequence[Form]) -> dict[Form, str]:
    """What Spark calls each form; forms that it refuses are left out."""
    empty = spark.createDataFrame([], schema_text(schema_of(columns)))
    try:
        return dict(zip(forms, empty.selectExpr(*(f.sql for f in forms)).columns, strict=True))
    except Exception:
        if len(forms) == 1:
            return {}
        half = len(forms) // 2
        return _names(spark, columns, forms[:half]) | _names(spark, columns, forms[half:])


def test_a_known_name_is_sparks(spark: Any) -> None:
    # The parser drops a plus sign before a value; a statement may not have one.
    asked = [f for f in FORMS if not f.sql.startswith("+") and "*" not in f.sql]
    by_columns = groupby(sorted(asked, key=lambda f: f.columns), key=lambda f: f.columns)
    theirs = {form: name for columns, some in by_columns for form, name in _names(spark, columns, list(some)).items()}
    wrong, known = [], 0
    for form, name in theirs.items():
        node = parse_expression(form.sql)
        types = {f.name: f.type for f in schema_of(form.columns)}
        ours = None if isinstance(node, exp.Alias) else spark_name(node, types)
        known += ours is not None
        if ours not in (None, name):
            wrong.append(f"{form.sql}: {ours}, Spark {name}")
    assert not wrong, "\n".join(wrong)
    assert known >= KNOWN_LEAST


def test_an_entry_of_a_statement_has_sparks_name(spark: Any) -> None:
    session = rove.Session.local()
    session.stream("t", schema=COLUMNS["t"])
    spark.createDataFrame([], schema_text(parse_schema(COLUMNS["t"]))).createOrReplaceTempView("t")
    wrong, known = [], 0
    for entry in (*UNNAMED, *UNNAMED_CALLS):
        text = f"SELECT {entry.strip()} FROM t"
        try:
            theirs = spark.sql(text).columns
        except Exception:
            continue
        try:
            ours = session.sql(text).columns
        except PlanError as error:
            ours = [str(error).splitlines()[0]]
        known += ours == theirs
        if ours != theirs:
            wrong.append(f"{text}: {ours}, Spark {theirs}")
    assert not wrong, "\n".join(wrong)
    assert known >= 480
