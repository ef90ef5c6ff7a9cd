"""Random chains of verbs, cut anywhere, from any number of origins in batches of any size, give batch Spark's rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove.cloud.compile import compile_plan
from rove.data.fragment.local import run
from rove.model.ids import Origin
from rove.plan.operators import Operator
from rove.plan.operators import walk as operators
from rove.plan.optimizer import optimize
from rove.plan.sites import site
from rove.plan.spark.cuts import Cut, highest_cut, legal_cuts
from tests.depth import some_slow
from tests.portable.queries import inputs, readings, tables
from tests.portable.random_plans import compiled, source
from tests.portable.rows import assert_same_rows

ROWS = {"readings": 240, "bid": 300, "auction": 60}
# (origins, rows of a batch): what the edge gives must not depend on them.
DELIVERIES = ((3, 150), (1, 1), (2, 7), (5, 40))
CUTS, PLAIN_CUTS = 3, 2  # of the optimized plan, and of the plan as it was written
CUTS_SEEN = 2000

# Without those of the first that take Spark longest.
SEEDS = tuple(seed for seed in range(31) if seed not in (0, 1, 3, 15, 20, 26))


@cache
def table(name: str) -> pa.Table:
    found = readings(ROWS[name], seed=11) if name == "readings" else tables()[name].slice(0, ROWS[name])
    return found.combine_chunks()


@cache
def delivered(name: str, count: int, size: int) -> dict[Origin, list[pa.RecordBatch]]:
    """A table as `count` devices would send it, in batches of `size` rows."""
    rows = table(name)
    parts = {Origin(name, str(i)): rows.take(pa.arange(i, rows.num_rows, count)) for i in range(count)}
    return {origin: part.combine_chunks().to_batches(max_chunksize=size) for origin, part in parts.items()}


def plan_of(query: Callable[..., Any]) -> Operator:
    session = rove.Session.local()
    plan: Operator = query(*(session.stream(n, schema=table(n).schema) for n in inputs(query))).plan
    return plan


def some_cuts(plan: Operator, random: Random, most: int) -> list[Cut]:
    """The highest cut and some others."""
    if count_cuts(plan) > CUTS_SEEN:
        return [highest_cut(plan)]
    found = list(legal_cuts(plan))
    return [found[0], *random.sample(found[1:], min(most - 1, len(found) - 1))]


def count_cuts(plan: Operator) -> int:
    """How many `legal_cuts` would list: branches multiply."""
    found = site(plan)
    above = prod(count_cuts(i) for i in plan.inputs) if plan.inputs and found.spark else 0
    return int(found.edge) + above


def assert_cuts_agree(spark: Any, expected: pa.Table, names: tuple[str, ...], cuts: list[Cut]) -> None:
    for cut in cuts:
        what = shape(cut)
        lower = edge(cut, names, DELIVERIES[0])
        for delivery in DELIVERIES[1:]:
            other = edge(cut, names, delivery)
            for part, rows in lower.items():
                if not any(getattr(o, "mode", "") == "partial" for o in operators(dict(cut.lower)[part])):
                    assert_same_rows(other[part], rows, f"{what}, delivered {delivery} and {DELIVERIES[0]}")
        if cut.needs_spark:
            frames = {name: spark.createDataFrame(with_chunks(rows)) for name, rows in lower.items()}
            assert_same_rows(compile_plan(cut.upper, frames).toArrow(), expected, what)
        else:
            assert_same_rows(lower[cut.lower[0][0]], expected, what)


def edge(cut: Cut, names: tuple[str, ...], delivery: tuple[int, int]) -> dict[str, pa.Table]:
    results = run(dict(cut.lower), {n: delivered(n, *delivery) for n in names})
    assert all(r.late == 0 for r in results.values()), f"late rows in {shape(cut)}"
    return {name: result.rows for name, result in results.items()}


def with_chunks(rows: pa.Table) -> pa.Table:
    """PySpark cannot take a table that has no chunks at all."""
    return rows if rows.num_rows else rows.schema.empty_table()


def shape(cut: Cut) -> str:
    parts = [[type(o).__name__ for o in operators(p)] for _, p in cut.lower]
    return f"edge {parts}, Spark {[type(o).__name__ for o in operators(cut.upper)]}"


def check(spark: Any, text: str, seed: int) -> None:
    query = compiled(text)
    names = inputs(query)
    expected = query(*(spark.createDataFrame(table(n)) for n in names)).toArrow()
    plan = plan_of(query)
    cuts = some_cuts(optimize(plan), Random(seed), CUTS) + some_cuts(plan, Random(seed + 1), PLAIN_CUTS)
    assert_cuts_agree(spark, expected, names, cuts)


@pytest.mark.parametrize("seed", some_slow(SEEDS, 10))
def test_a_random_query_gives_sparks_rows_wherever_it_is_cut(spark: Any, seed: int) -> None:
    check(spark, source(seed), seed)
