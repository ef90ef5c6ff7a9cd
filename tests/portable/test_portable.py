"""The same function on a PySpark DataFrame and on a Rove stream, cut at every legal point, gives the same rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from rove.cloud.compile import compile_plan
from rove.cloud.start.session import frame_of
from rove.data.fragment.local import run
from rove.model.ids import Origin
from rove.plan.operators import walk
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import Cut, legal_cuts
from tests import depth
from tests.portable.queries import QUERIES, STATIC, frames_of, inputs, plan_of, tables
from tests.portable.rows import assert_same_rows

ORIGINS = 3
ROWS_PER_BATCH = 150


@cache
def origins(name: str) -> dict[Origin, list[pa.RecordBatch]]:
    """A table as several devices would send it: each has every third row, in order, in small batches."""
    table = tables()[name]
    parts = {}
    for i in range(ORIGINS):
        rows = table.take(pa.arange(i, table.num_rows, ORIGINS))
        parts[Origin(name, str(i))] = rows.combine_chunks().to_batches(max_chunksize=ROWS_PER_BATCH)
    return parts


def run_at(spark: Any, cut: Cut, names: tuple[str, ...]) -> pa.Table:
    results = run(dict(cut.lower), {n: origins(n) for n in names if n not in STATIC})
    assert all(r.late == 0 for r in results.values())
    if not cut.needs_spark:
        return results[cut.lower[0][0]].rows
    frames = {name: frame_of(spark, result.rows) for name, result in results.items()}
    return compile_plan(cut.upper, frames).toArrow()


def some(cuts: list[Cut]) -> list[Cut]:
    """The cuts for this run: as little in Spark as can be, as much, and one between; with `--slow` all others."""
    always = {0, len(cuts) // 2, len(cuts) - 1}
    return [cut for n, cut in enumerate(cuts) if (n in always) != depth.slow]


@pytest.mark.deep
@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.__name__)
def test_a_query_gives_sparks_rows_wherever_it_is_cut(spark: Any, query: Callable[..., Any]) -> None:
    names = inputs(query)
    expected = query(*frames_of(spark, query).values()).toArrow()
    assert expected.num_rows
    plan = optimize(plan_of(query))
    cuts = list(legal_cuts(plan))
    assert cuts
    for cut in some(cuts):
        assert_same_rows(run_at(spark, cut, names), expected, f"{query.__name__} cut into {_shape(cut)}")


@pytest.mark.slow
def test_the_optimizer_changes_no_rows(spark: Any) -> None:
    for query in QUERIES:
        frames = frames_of(spark, query)
        plan = plan_of(query)
        if query.__name__.startswith("q") and "approx" not in query.__name__:
            assert_same_rows(
                compile_plan(optimize(plan), frames).toArrow(),
                compile_plan(plan, frames).toArrow(),
                query.__name__,
            )


def _shape(cut: Cut) -> str:
    parts = [[type(o).__name__ for o in walk(p)] for _, p in cut.lower]
    return f"edge {parts}, Spark {[type(o).__name__ for o in walk(cut.upper)]}"
