"""The table of result types is what Spark says, and a type that is known reaches the expressions around a call."""

from __future__ import annotations

from importlib import reload
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove.model.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, UNKNOWN
from rove.plan.expressions import result_table
from rove.plan.expressions.spark_results import result_type
from tests.plan.expressions.spark_results import ASKED, checks, table

FILE = Path(result_table.__file__)
_HEAD = '''"""What Spark says about the types of results. A test writes this file: `spark_results.py` says how."""

RESULTS = """\\
'''


@pytest.mark.slow
def test_the_table_is_what_spark_says_when_it_is_made_again(spark: Any, pytestconfig: pytest.Config) -> None:
    """Every mix of types takes long: it is asked for every function with --all-functions, else for some."""
    rewrites = pytestconfig.getoption("--rewrite-docs")
    names = ASKED if rewrites or pytestconfig.getoption("--all-functions") else ASKED[::120]
    lines = table(spark, names)
    if rewrites:
        FILE.write_text(_HEAD + "\n".join(lines) + '"""\n')
        reload(result_table)
    asked = [line for line in result_table.RESULTS.splitlines() if line.partition("(")[0] in set(names)]
    assert asked == lines, "write the table again, as `spark_results.py` says"


def test_spark_gives_the_types_of_the_table(spark: Any) -> None:
    asked = list(checks(result_table.RESULTS.splitlines()))
    assert len(asked) > 200
    found = spark.sql("SELECT " + ", ".join(f"{text} AS c{n}" for n, (text, _) in enumerate(asked))).schema
    wrong = [
        (text, told, field.dataType.simpleString())
        for (text, told), field in zip(asked, found, strict=True)
        if field.dataType.simpleString() != told
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("percentile", [INT, DOUBLE], DOUBLE),
        ("percentile", [INT, pa.list_(DOUBLE)], pa.list_(DOUBLE)),
        ("mode", [STRING], STRING),
        ("mode", [pa.list_(STRING)], pa.list_(STRING)),
        ("listagg", [STRING, STRING], STRING),
        ("collect_list", [INT], pa.list_(INT)),
        ("max_by", [STRING, INT], STRING),
        ("count_if", [BOOLEAN], BIGINT),
        ("first", [INT, BOOLEAN], INT),
        ("percentile", [UNKNOWN, DOUBLE], UNKNOWN),
        ("percentile", [INT], UNKNOWN),
        ("nobody_knows", [INT], UNKNOWN),
    ],
)
def test_the_type_of_a_call(function: str, arguments: list[pa.DataType], result: pa.DataType) -> None:
    assert result_type(function, arguments) == result


def test_functions_around_an_aggregate_of_spark_know_its_type() -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int, s string, ts timestamp")
    found = session.sql(
        "SELECT round(percentile(a, 0.5), 1) AS p, upper(mode(s)) AS m, size(collect_set(a)) AS n, "
        "element_at(percentile(a, array(0.25D, 0.75D)), 1) AS q, levenshtein(s, 'x') + 1 AS d FROM t GROUP BY s"
    )
    assert found.dtypes == [("p", "double"), ("m", "string"), ("n", "int"), ("q", "double"), ("d", "int")]
