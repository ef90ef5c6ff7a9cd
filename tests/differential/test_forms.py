"""Every form that the edge computes gives Spark's answer, row for row; every form it refuses still parses in Spark."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rove.plan.expressions.bind import bind
from rove.plan.expressions.tree import refusal_of, sql
from tests.differential.engines import ask_spark, column_differences, differences
from tests.differential.forms import FORMS, Form
from tests.differential.strategies import batches, corners, schema_of

SETTINGS = settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SUPPORTED = [f for f in FORMS if refusal_of(bind(f.sql, schema_of(f.columns))) is None]
REFUSED = [f for f in FORMS if f not in SUPPORTED]


@pytest.mark.parametrize("form", SUPPORTED, ids=str)
def test_the_edge_answers_as_spark_does(spark, form: Form) -> None:
    expr = bind(form.sql, schema_of(form.columns))
    found = differences(spark, expr, form.sql, corners(form.columns), form.ulps)
    assert not found, "\n".join([str(form), *found])

    @SETTINGS
    @given(batches(form.columns))
    def on_any_rows(batch) -> None:
        found = differences(spark, expr, form.sql, batch, form.ulps)
        assert not found, "\n".join([str(form), *found])

    on_any_rows()


@pytest.mark.parametrize("form", SUPPORTED, ids=str)
def test_an_empty_batch_and_a_slice_are_answered_too(form: Form) -> None:
    from rove.model.errors import ArithmeticFault
    from rove.plan.expressions.arrow import compile_expression
    from tests.differential.engines import comparable, same

    batch = corners(form.columns)
    evaluate = compile_expression(bind(form.sql, batch.schema), batch.schema)
    nothing = evaluate(batch.slice(0, 0))
    assert len(nothing) == 0
    piece = batch.slice(3, 5)
    try:
        whole = evaluate(piece)
    except ArithmeticFault:
        return
    copied = evaluate(piece.take(list(range(piece.num_rows))))
    assert all(same(x, y, 0) for x, y in zip(comparable(whole), comparable(copied), strict=True))


@pytest.mark.parametrize("form", REFUSED, ids=str)
def test_a_refused_form_prints_text_that_means_the_same_to_spark(spark, form: Form) -> None:
    schema = schema_of(form.columns)
    expr = bind(form.sql, schema)
    batch = corners(form.columns)
    text = sql(expr)
    try:
        given_columns, given_types = ask_spark(spark, batch, [form.sql])
    except Exception:
        batch = batch.slice(0, 1)  # nulls rarely raise
        try:
            given_columns, given_types = ask_spark(spark, batch, [form.sql])
        except Exception:
            with pytest.raises(Exception):  # noqa: B017, PT011 (any of Spark's errors will do)
                ask_spark(spark, batch, [text])
            return
    printed_columns, printed_types = ask_spark(spark, batch, [text])
    assert given_types == printed_types
    assert not column_differences(given_columns[0], printed_columns[0], given_types[0], given_types[0], batch, 0)
