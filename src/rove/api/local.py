"""Runs a query over given data on one machine: the edge's part in this process, the rest in a local Spark."""

from __future__ import annotations

import warnings

import pyarrow as pa

from rove.data.fragment.local import Rows, run
from rove.plan.cuts import Cut, highest_cut
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize

LocalData = Rows


def collect(plan: Operator, data: LocalData) -> pa.Table:
    """All rows of a plan, with as much of it as possible at the edge."""
    return run_cut(highest_cut(optimize(plan)), data)


def run_cut(cut: Cut, data: LocalData) -> pa.Table:
    """All rows of a cut plan. Spark starts only if the cut has an upper part."""
    results = run(dict(cut.lower), data)
    if late := sum(result.late for result in results.values()):
        warnings.warn(
            f"{late} rows came too late and are not in the result; give withWatermark a longer delay", stacklevel=4
        )
    parts = {name: result.rows for name, result in results.items()}
    if not cut.needs_spark:
        return parts[cut.lower[0][0]]
    from rove.cloud.compile import compile_plan
    from rove.cloud.session import frame_of, spark_session

    spark = spark_session()
    return compile_plan(cut.upper, {name: frame_of(spark, table) for name, table in parts.items()}).toArrow()
