"""Placement hints: they change no rows, no step moves across them, and every stage below has the hint."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.model.errors import PlanError
from rove.plan.explain import describe, explain
from rove.plan.operators import At, Filter, Operator, Received, Source, walk
from rove.plan.optimizer import optimize
from rove.plan.sites import site
from rove.plan.spark.cuts import highest_cut, legal_cuts
from rove.plan.stages import Stages

SCHEMA = "key string, ts timestamp, a int, b int, place struct<lat: double, lon: double>"


@pytest.fixture
def s() -> Any:
    return rove.Session.local().stream("s", schema=SCHEMA)


def steps(plan: Operator) -> list[str]:
    return [describe(o).partition(":")[0] for o in walk(plan)]


def hints(stages: Stages) -> dict[str, str]:
    """What is said of each stage, by the operator's first words."""
    return {describe(stages.operators[n]).partition(" by ")[0]: where for n, where in stages.hints}


def counts(rows: Any) -> Any:
    return rows.groupBy(F.window("ts", "5 seconds"), "key").count()


def test_filters_do_not_go_below_the_word(s: Any) -> None:
    plan = optimize(s.select("a", "b").at("device").where("a > 1").at("edge").plan)
    assert steps(plan) == ["Source s", "Project a, b", "At device", "Filter a > 1", "At edge"]


def test_neighbours_do_not_fuse_across_the_word(s: Any) -> None:
    plan = optimize(s.select("a", "b").where("a > 1").at("device").where("b > 2").plan)
    assert steps(plan)[-3:] == ["Filter a > 1", "At device", "Filter b > 2"]
    plan = optimize(s.selectExpr("a + 1 AS c", "b").at("device").selectExpr("c * 2 AS e").plan)
    assert steps(plan)[1:] == ["Project a + 1 AS c", "At device", "Project c * 2 AS e"]


def test_filters_still_move_between_two_words(s: Any) -> None:
    rows = s.select("key", "a", "ts").at("device").withWatermark("ts", "1 second")
    plan = optimize(counts(rows).where("key = 'x'").at("edge").plan)
    names = [type(o).__name__ for o in walk(plan)]
    assert names == ["Source", "Project", "At", "Watermark", "Filter", "Aggregate", "Aggregate", "At"]


def test_columns_nobody_reads_go_below_the_word(s: Any) -> None:
    plan = optimize(s.where("a > 1").at("device").select("key").plan)
    assert steps(plan) == ["Source s", "Project key, a", "Filter a > 1", "At device", "Project key"]


def test_an_optimized_plan_with_words_settles(s: Any) -> None:
    plan = s.where("place.lat > 1").at("device").select("place.lon", "a").at("edge").at("edge").where("true").plan
    once = optimize(plan)
    assert optimize(once) == once


def test_every_stage_has_the_next_word_above_it(s: Any) -> None:
    plan = s.where("a > 1").at("device").selectExpr("a + b AS c").at("edge").where("c > 2").plan
    stages = Stages.of({"out": plan})
    assert not any(isinstance(o, At) for o in stages.operators)
    assert hints(stages) == {"Filter a > 1": "device", "Project a + b AS c": "edge"}
    assert Stages.of({"out": s.where("a > 1").plan}).hints == ()


def test_a_source_runs_where_its_device_is(s: Any) -> None:
    stages = Stages.of({"out": s.at("edge").plan})
    assert stages.hints == ()
    apart = s.select("a").at("device").union(s.select(F.col("b").alias("a")).at("edge"))
    assert set(hints(Stages.of({"out": apart.plan})).values()) == {"device", "edge"}


@pytest.mark.parametrize("tier", ["device", "edge"])
def test_a_tier_is_for_the_half_of_an_aggregate_near_the_rows(s: Any, tier: str) -> None:
    stages = Stages.of({"out": optimize(counts(s.withWatermark("ts", "1 second")).at(tier).plan)})
    assert hints(stages) == dict.fromkeys(
        ("Project key, ts", "Watermark ts, delay 1 second", "Aggregate (partial)"), tier
    )
    sums = s.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds")).agg(F.expr("sum(a) + 1 AS c"))
    found = hints(Stages.of({"out": optimize(sums.where("c > 3L").at(tier).plan)}))
    assert set(found) == {"Project ts, a", "Watermark ts, delay 1 second", "Aggregate (partial)"}


@pytest.mark.parametrize("where", ["cloud", "mast-1"])
def test_both_halves_of_an_aggregate_go_to_the_cloud_or_a_node(s: Any, where: str) -> None:
    stages = Stages.of({"out": optimize(counts(s.withWatermark("ts", "1 second")).where("count > 3L").at(where).plan)})
    assert set(hints(stages).values()) == {where}
    assert {"Aggregate (partial)", "Aggregate (final)", "Filter count > 3L"} <= set(hints(stages))


def test_a_word_of_its_own_holds_after_an_aggregate(s: Any) -> None:
    timed = s.withWatermark("ts", "1 second")
    found = hints(Stages.of({"out": optimize(counts(timed).at("device").where("count > 3L").at("edge").plan)}))
    assert (found["Aggregate (partial)"], found["Filter count > 3L"]) == ("device", "edge")
    assert "Aggregate (final)" not in found


def test_an_aggregate_right_above_a_word_begins_where_it_may_unless_a_tier_is_wanted(s: Any) -> None:
    rows = s.withWatermark("ts", "1 second").at("device")
    found = hints(Stages.of({"out": optimize(counts(rows).at("mast-1").plan)}))
    assert (found["Watermark ts, delay 1 second"], found["Aggregate (final)"]) == ("device", "mast-1")
    assert "Aggregate (partial)" not in found
    found = hints(Stages.of({"out": optimize(counts(rows).at("edge").plan)}))
    assert (found["Watermark ts, delay 1 second"], found["Aggregate (partial)"]) == ("device", "edge")


def test_a_step_shared_by_branches_that_run_apart_is_refused(s: Any) -> None:
    shared = s.where("a > 1")
    plans = {"x": shared.select("a").at("device").plan, "y": shared.select("b").at("edge").plan}
    with pytest.raises(
        PlanError, match=r"`Filter a > 1` is shared .* `device`.* `edge`; call at\(…\) on the shared step"
    ):
        Stages.of(plans)
    settled = s.where("a > 1").at("device")
    stages = Stages.of({"x": settled.select("a").at("device").plan, "y": settled.select("b").at("edge").plan})
    assert hints(stages)["Filter a > 1"] == "device"


def test_a_branch_that_says_nothing_follows_the_one_that_does(s: Any) -> None:
    shared = s.where("a > 1")
    stages = Stages.of({"x": shared.select("a").plan, "y": shared.select("b").at("edge").plan})
    assert hints(stages) == {"Filter a > 1": "edge", "Project b": "edge"}


def test_a_word_is_no_stage() -> None:
    source = Source("s", pa.schema([("a", pa.int32())]))
    with pytest.raises(PlanError, match=r"number a plan with Stages\.of"):
        Stages((source, At(source, "edge")), ())
    with pytest.raises(PlanError, match="two hints"):
        Stages((source,), (), ((0, "edge"), (0, "device")))  # type: ignore[arg-type]


def test_the_word_changes_nothing_about_where_a_step_can_run(s: Any) -> None:
    plan = s.selectExpr("soundex(key) AS sound", "a").at("cloud").where("a > 1").plan
    assert isinstance(plan, Filter)
    assert site(plan.input) == site(plan.input.inputs[0])
    assert site(plan).why == "its input, Project, runs in Spark"


def test_cuts_above_and_below_the_word_are_one(s: Any) -> None:
    plain = s.where("a > 1").select("b").plan
    said = s.where("a > 1").at("device").select("b").at("edge").plan
    assert len(list(legal_cuts(said))) == len(list(legal_cuts(plain)))
    assert not any(isinstance(o, At) and isinstance(o.input, Received) for c in legal_cuts(said) for o in walk(c.upper))
    assert not highest_cut(said).needs_spark


def test_explain_shows_the_word(s: Any) -> None:
    lines = explain(s.selectExpr("soundex(key) AS sound").at("cloud").plan).splitlines()
    assert lines[0].strip() == "At cloud"
    assert sum("because" in line for line in lines) == 1


ROWS = pa.record_batch(
    {
        "key": ["x", "y", "x", None],
        "ts": pa.array([1_000_000, 2_000_000, 6_000_000, 7_000_000]).cast(pa.timestamp("us", tz="UTC")),
        "a": pa.array([1, 2, 3, 4], pa.int32()),
        "b": pa.array([9, 8, 7, None], pa.int32()),
        "place": pa.array([None] * 4, pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
    }
)


def test_rows_are_the_same_with_and_without_the_word() -> None:
    stream = rove.Session.local().stream("s", schema=SCHEMA, data=pa.Table.from_batches([ROWS]))
    plain = counts(stream.where("a > 1").withWatermark("ts", "1 second"))
    said = counts(stream.where("a > 1").at("device").withWatermark("ts", "1 second").at("edge")).at("cloud")
    assert said.toArrow() == plain.toArrow()
    assert plain.toArrow().num_rows == 3
