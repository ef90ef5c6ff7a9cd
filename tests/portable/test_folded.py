"""Windows over rows that were folded on their way give the rows that Spark computes of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

import rove
from rove.cloud.compile import compile_plan
from rove.cloud.start.session import frame_of
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.local import in_turns
from rove.data.fragment.pipeline import Pipeline
from rove.data.operators.folded import Fold, folds_into
from rove.model.batch import Batch
from rove.model.ids import Origin, Stage
from rove.plan.operators import Aggregate
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import Cut, legal_cuts
from rove.plan.stages import Stages
from tests.portable import window_queries
from tests.portable.queries import frames_of, plan_of
from tests.portable.rows import assert_same_rows
from tests.portable.test_portable import origins


def distinct_levels(readings: Any) -> Any:
    """Duplicates go where rows are folded, and again where they meet."""
    F = rove.functions_for(readings)
    timed = readings.withWatermark("ts", "10 seconds").groupBy(F.window("ts", "1 minute", "30 seconds"))
    return timed.agg(F.approx_count_distinct("level").alias("levels"), F.count("*").alias("n"))


QUERIES: tuple[Callable[..., Any], ...] = (
    window_queries.counts_of_a_sensor,
    window_queries.sums_of_each_type,
    window_queries.averages_of_each_type,
    window_queries.extremes_of_each_type,
    window_queries.spread_of_values,
    distinct_levels,
    window_queries.groups_by_expressions,
    window_queries.windows_that_leave_a_rest,
    window_queries.window_over_steps,
)


def begun_at_the_edge(cut: Cut) -> bool:
    """Whether all of it but the beginning of one window is Spark's."""
    roots = [plan for _, plan in cut.lower]
    return len(roots) == 1 and isinstance(roots[0], Aggregate) and roots[0].mode == "partial"


def partials(cut: Cut) -> pa.Table:
    """What the edge begins with batches that a device has folded, every second one."""
    ((name, plan),) = cut.lower
    stages = Stages.of({name: plan})
    window = Stage(len(stages.operators) - 1)
    rows = {"readings": origins("readings")}
    waits = {stage: tuple(rows["readings"]) for stage in stages.sources()}
    below = range(1, window)
    device = Pipeline(stages, waits, {}, [Stage(n) for n in below], goes_on=True)
    edge = Pipeline(stages, waits, {window: Origin("q", "edge", stage=window)}, [*map(Stage, below), window])
    found: list[Emitted] = []
    folded = 0
    for _, batch in in_turns(rows):
        for each in device.process(Stage(0), batch):
            taker = folds_into(stages, each.stage)
            assert taker is not None
            given = each.batch
            if given.data is not None and given.header.seq % 2:
                states = Fold(taker)(given.data)
                given = Batch(replace(given.header, rows=states.num_rows, folded=True), states)
                folded += 1
            found += edge.process(each.stage, given)
    assert folded
    found += edge.finish()
    assert not any(e.late or e.fault for e in found)
    return pa.Table.from_batches([e.batch.data for e in found if e.batch.data is not None], plan.schema)


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.__name__)
def test_a_window_of_folded_rows_is_sparks(spark: Any, query: Callable[..., Any]) -> None:
    cut = next(cut for cut in legal_cuts(optimize(plan_of(query))) if begun_at_the_edge(cut))
    expected = query(*frames_of(spark, query).values()).toArrow()
    ((name, _),) = cut.lower
    actual = compile_plan(cut.upper, {name: frame_of(spark, partials(cut))}).toArrow()
    assert_same_rows(actual, expected, query.__name__)
