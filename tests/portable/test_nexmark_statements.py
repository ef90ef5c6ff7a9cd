"""Nexmark's queries in SQL run and give Spark's rows, or are refused for the reason that streaming Spark has."""

from __future__ import annotations

from typing import Any

import pytest

import rove
from rove.cloud.analysis import check_plan
from rove.model.errors import PlanError
from rove.plan.optimizer import optimize
from rove.plan.spark.streaming import refuse_unstreamable
from tests.portable.nexmark_statements import AT_ITS_OWN_TIME, REFUSED, RUNS
from tests.portable.queries import tables
from tests.portable.rows import assert_same_rows

STREAMS, TABLE = ("bid", "auction", "person"), "side_input"


@pytest.fixture(scope="module")
def session(spark: Any) -> rove.Session:
    session = rove.Session.local()
    for name in STREAMS:
        stream = session.stream(name, schema=tables()[name].schema, data=tables()[name])
        session.name(name, stream.withWatermark("dateTime", "1 hour"))
    spark.createDataFrame(tables()[TABLE]).createOrReplaceTempView(f"stored_{TABLE}")
    session.name(TABLE, session.read.schema(tables()[TABLE].schema).table(f"stored_{TABLE}"))
    return session


@pytest.fixture(scope="module")
def theirs(spark: Any) -> Any:
    """A Spark with the same rows as tables."""
    other = spark.newSession()
    for name in (*STREAMS, TABLE):
        other.createDataFrame(tables()[name]).createOrReplaceTempView(name)
    return other


def test_every_query_is_here() -> None:
    assert sorted((*RUNS, *REFUSED, *AT_ITS_OWN_TIME), key=lambda q: int(q[1:])) == [f"q{n}" for n in range(23)]


@pytest.mark.parametrize("query", RUNS)
def test_a_query_gives_sparks_rows_and_can_stream(spark: Any, theirs: Any, session: rove.Session, query: str) -> None:
    mode, text = RUNS[query]
    stream = session.sql(text)
    plan = optimize(stream.plan)
    refuse_unstreamable(plan, mode)
    check_plan(spark, plan, mode)
    assert_same_rows(stream.toArrow(), theirs.sql(text).toArrow(), query)


@pytest.mark.parametrize("query", AT_ITS_OWN_TIME)
def test_a_query_over_the_time_of_processing_can_stream(spark: Any, session: rove.Session, query: str) -> None:
    mode, text = AT_ITS_OWN_TIME[query]
    plan = optimize(session.sql(text).plan)
    refuse_unstreamable(plan, mode)
    check_plan(spark, plan, mode)
    with pytest.raises(PlanError):
        refuse_unstreamable(plan, "append")
    with pytest.raises(PlanError):
        check_plan(spark, plan, "append")


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_that_spark_cannot_stream_is_refused_with_the_reason(
    spark: Any, session: rove.Session, query: str
) -> None:
    reason, text = REFUSED[query]

    def submitted(mode: str) -> None:
        plan = optimize(session.sql(text).plan)
        check_plan(spark, plan, mode)

    for mode in ("append", "update"):
        with pytest.raises(PlanError, match=reason):
            submitted(mode)
