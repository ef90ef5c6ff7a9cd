"""Every form that the edge computes gives Spark's answer, row for row; every form it refuses prints text that
means the same to Spark."""

from __future__ import annotations

from itertools import groupby

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rove.model.errors import ArithmeticFault
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.bind import bind
from rove.plan.expressions.tree import refusal_of, sql
from tests.differential.engines import Question, ask_spark, comparable, differences, same, spark_raises
from tests.differential.forms import FORMS, Form
from tests.differential.strategies import batches, corners, schema_of

FORMS_TOGETHER = 16
SETTINGS = settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
REFUSALS = [refusal_of(bind(f.sql, schema_of(f.columns))) for f in FORMS]
SUPPORTED = [f for f, refusal in zip(FORMS, REFUSALS, strict=True) if refusal is None]
REFUSED = [f for f, refusal in zip(FORMS, REFUSALS, strict=True) if refusal is not None]


def groups(of: list[Form]) -> list[list[Form]]:
    """Forms over the same columns, some at a time: one question to Spark answers for all."""
    ordered = sorted(of, key=lambda f: f.columns)
    by_columns = [list(group) for _, group in groupby(ordered, key=lambda f: f.columns)]
    return [some[i : i + FORMS_TOGETHER] for some in by_columns for i in range(0, len(some), FORMS_TOGETHER)]


def _name(group: list[Form]) -> str:
    return f"{len(group)} of {group[0].columns} from {group[0].sql}".replace("\n", "\\n")


def same_values(x: object, y: object) -> bool:
    return same(x, y, 0)


@pytest.mark.parametrize("group", groups(SUPPORTED), ids=_name)
def test_the_edge_answers_as_spark_does(spark, group: list[Form]) -> None:
    columns = group[0].columns
    asked = [Question(f.sql, bind(f.sql, schema_of(columns)), f.ulps) for f in group]
    found = differences(spark, asked, corners(columns), raising_rows=3)

    @SETTINGS
    @given(batches(columns))
    def on_any_rows(batch) -> None:
        found.extend(differences(spark, asked, batch, raising_rows=1))

    on_any_rows()
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("form", SUPPORTED, ids=str)
def test_an_empty_batch_and_a_slice_are_answered_too(form: Form) -> None:
    batch = corners(form.columns)
    evaluate = compile_expression(bind(form.sql, batch.schema), batch.schema)
    nothing = evaluate(batch.slice(0, 0))
    assert len(nothing) == 0
    piece = batch.slice(3, 5)
    try:
        whole = evaluate(piece)
    except ArithmeticFault:
        return
    copied = evaluate(piece.take(pa.array(range(piece.num_rows), pa.int64())))
    assert all(same(x, y, 0) for x, y in zip(comparable(whole), comparable(copied), strict=True))


@pytest.mark.parametrize("form", REFUSED, ids=str)
def test_a_refused_form_prints_text_that_means_the_same_to_spark(spark, form: Form) -> None:
    batch = corners(form.columns)
    printed = sql(bind(form.sql, batch.schema))
    for rows in (batch, batch.slice(0, 1)):  # a first row of nulls rarely raises
        try:
            (as_given, as_printed), types = ask_spark(spark, rows, [form.sql, printed])
        except Exception:
            continue
        assert types[0] == types[1]
        assert as_given.equals(as_printed) or all(map(same_values, as_given.to_pylist(), as_printed.to_pylist()))
        return
    assert spark_raises(spark, batch.slice(0, 1), form.sql), f"Spark reads the form, but not `{printed}`"
