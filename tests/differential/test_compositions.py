"""Forms inside forms: random expressions, up to four deep, mean the same to both engines.

Law: an expression is put together from supported forms by type. Its printed text binds to the same tree and means the
same to Spark. Errors are compared with the optimizer rules off that drop expressions without computing them, since an
error in a dropped part is raised at the edge and not by Spark.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pyarrow as pa
import pytest
from sqlglot import exp

from rove.model.schema import type_name
from rove.plan.expressions.bind import bind, spark_text
from rove.plan.expressions.parse import parse_expression
from rove.plan.expressions.tree import refusal_of, sql
from tests.differential.engines import Question, differences
from tests.differential.forms import Form
from tests.differential.strategies import column, corner_values, schema_of
from tests.differential.test_forms import SUPPORTED

DEPTH_MAX = 4
ROWS = 24
TOGETHER = 12
ROUNDS = 30
COLUMNS = {
    "boolean": ("b0", "b1"),
    "tinyint": ("y0",),
    "smallint": ("h0",),
    "int": ("i0", "i1"),
    "bigint": ("l0", "l1"),
    "float": ("f0",),
    "double": ("d0", "d1"),
    "decimal(10,2)": ("m0", "m1"),
    "string": ("s0", "s1"),
    "date": ("t0", "t1"),
    "timestamp": ("ts0", "ts1"),
    "array<int>": ("a0",),
}
DDL = ", ".join(f"{name} {kind}" for kind, names in COLUMNS.items() for name in names)
# Rules that replace an expression by another without computing all of it.
DROPPING_RULES = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in (
        "NullPropagation",
        "SimplifyConditionals",
        "BooleanSimplification",
        "SimplifyBinaryComparison",
        "PushFoldableIntoBranches",
        "ReplaceNullWithFalseInPredicate",
        "SimplifyConditionalsInPredicate",
        "OptimizeIn",
        "LikeSimplification",
        "ConstantFolding",
        "UnwrapCastInBinaryComparison",
        "SimplifyCasts",
        "ReorderAssociativeOperator",
        "ConstantPropagation",
        "OptimizeCsvJsonExprs",
    )
)


def _by_result() -> dict[str, list[Form]]:
    found: dict[str, list[Form]] = defaultdict(list)
    for form in SUPPORTED:
        schema = schema_of(form.columns)
        if form.family != "literals" and not form.ulps and all(type_name(f.type) in COLUMNS for f in schema):
            found[type_name(bind(form.sql, schema).dtype)].append(form)
    return dict(sorted(found.items()))


FORMS_BY_RESULT = _by_result()


def compose(chance: random.Random, kind: str, depth: int) -> exp.Expression:
    """A random expression of a type."""
    forms = FORMS_BY_RESULT.get(kind, [])
    if depth == 0 or not forms or (kind in COLUMNS and chance.random() < 0.15):
        return exp.column(chance.choice(COLUMNS[kind]))
    form = chance.choice(forms)
    node = exp.Paren(this=parse_expression(form.sql))
    for field in schema_of(form.columns):
        for place in list(node.find_all(exp.Column)):
            if place.name == field.name:
                place.replace(exp.Paren(this=compose(chance, type_name(field.type), depth - 1)))
    return node.this


def rows_for(chance: random.Random) -> pa.RecordBatch:
    schema = schema_of(DDL)
    kinds = [kind for kind, names in COLUMNS.items() for _ in names]
    columns = [
        column([chance.choice(corner_values(kind, field.type)) for _ in range(ROWS)], field.type)
        for kind, field in zip(kinds, schema, strict=True)
    ]
    return pa.record_batch(columns, schema=schema)


@pytest.fixture
def plain_spark(spark):
    """Spark without the rules that drop expressions; set for the length of a test only."""
    spark.conf.set("spark.sql.optimizer.excludedRules", DROPPING_RULES)
    yield spark
    spark.conf.unset("spark.sql.optimizer.excludedRules")


def composed(seed: int) -> tuple[pa.RecordBatch, list[Question]]:
    chance = random.Random(seed)
    batch = rows_for(chance)
    kinds = [k for k in FORMS_BY_RESULT if k in COLUMNS]
    asked = []
    while len(asked) < TOGETHER:
        text = spark_text(compose(chance, chance.choice(kinds), DEPTH_MAX))
        expr = bind(text, batch.schema)
        if refusal_of(expr) is None:
            asked.append(Question(text, expr))
    return batch, asked


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_compositions_mean_the_same_to_both_engines(plain_spark, seed: int) -> None:
    batch, asked = composed(seed)
    found = differences(plain_spark, asked, batch, raising_rows=1)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_printed_text_binds_to_the_same_tree(seed: int) -> None:
    batch, asked = composed(seed)
    for question in asked:
        printed = sql(question.expr)
        again = bind(printed, batch.schema)
        assert again == question.expr, f"{question.text}\n{printed}\n{sql(again)}"


@pytest.mark.parametrize("seed", range(0, ROUNDS, 3))
def test_printed_text_means_the_same_to_spark(spark, seed: int) -> None:
    batch, asked = composed(seed)
    found = differences(spark, [Question(sql(q.expr), q.expr) for q in asked], batch, raising_rows=0)
    assert not found, "\n" + "\n".join(found)
