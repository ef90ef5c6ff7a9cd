"""The optimizer's rules, before and after."""

from __future__ import annotations

from typing import Any

import pytest

import rove
from rove import functions as F
from rove.plan.explain import describe
from rove.plan.operators import Operator, Project, Received, column_of, walk
from rove.plan.optimizer import RULES, optimize
from rove.plan.rules.filter_after_join import filter_after_join
from rove.plan.rules.fold_constants import fold_constants
from rove.plan.rules.fuse_neighbours import fuse_neighbours
from rove.plan.rules.lower_watermarks import lower_watermarks
from rove.plan.rules.narrow_structs import narrow_structs
from rove.plan.rules.prune_columns import prune_columns
from rove.plan.rules.push_filters import push_filters
from rove.plan.rules.split_aggregates import merge_aggregates, split_aggregates
from rove.plan.spark.cuts import highest_cut
from rove.plan.stages import Stages

SCHEMA = "key string, ts timestamp, a int, b int, d double, place struct<lat: double, lon: double>"


@pytest.fixture
def s() -> Any:
    return rove.Session.local().stream("s", schema=SCHEMA)


def steps(plan: Operator) -> list[str]:
    """The plan from its source upwards, a line an operator."""
    return [describe(o).partition(":")[0] if describe(o).startswith("Source") else describe(o) for o in walk(plan)]


def test_constants_fold(s: Any) -> None:
    plan = s.where("1 + 1 = 2 AND a > 10 * 2").where("true").plan
    assert steps(fold_constants(plan)) == ["Source s", "Filter a > 20"]


def test_a_constant_that_raises_is_kept_to_raise_when_asked(s: Any) -> None:
    assert steps(optimize(s.selectExpr("1 / 0 AS x").plan))[-1].startswith("Project CAST('1.0' AS double) / ")


def test_filters_go_below_projections(s: Any) -> None:
    plan = s.select("key", (F.col("d") * 2).alias("twice")).where("twice > 4").plan
    assert steps(push_filters(plan)) == [
        "Source s",
        "Filter (d * CAST('2.0' AS double)) > CAST('4.0' AS double)",
        "Project key, d * CAST('2.0' AS double) AS twice",
    ]


def test_a_filter_on_a_value_that_can_raise_stays_above_it(s: Any) -> None:
    plan = s.where("b <> 0").selectExpr("a div b AS ratio").where("ratio > 1").plan
    assert steps(push_filters(plan))[-1] == "Filter ratio > 1L"


def test_filters_go_into_every_member_of_a_union(s: Any) -> None:
    plan = s.select("a").union(s.select("b")).where("a > 1").plan
    assert steps(push_filters(plan)) == [
        "Source s",
        "Project a",
        "Filter a > 1",
        "Source s",
        "Project b",
        "Filter b > 1",
        "Project b AS a",
        "Union of 2",
    ]


def test_a_filter_on_keys_goes_below_the_aggregate_and_not_below_the_watermark(s: Any) -> None:
    counts = s.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key").count()
    plan = push_filters(counts.where("key = 'x'").where("count > 2").plan)
    assert [type(o).__name__ for o in walk(plan)] == ["Source", "Watermark", "Filter", "Aggregate", "Filter"]
    both = push_filters(counts.where("key = 'x' OR count > 2").plan)
    assert [type(o).__name__ for o in walk(both)] == ["Source", "Watermark", "Aggregate", "Filter"]


def test_a_filter_that_only_spark_can_ask_does_not_move(s: Any) -> None:
    plan = s.select("key").where("soundex(key) = 'R100'").plan
    assert [type(o).__name__ for o in walk(push_filters(plan))] == ["Source", "Project", "Filter"]


def test_filters_on_one_side_go_below_a_join(s: Any) -> None:
    window = F.window("ts", "5 seconds").alias("w")
    left = s.withWatermark("ts", "1 second").select(window, "key", "a")
    right = s.withWatermark("ts", "1 second").select(window, "key", "b")
    plan = push_filters(left.join(right, on=["w", "key"]).where("b > 3").plan)
    names = [type(o).__name__ for o in walk(plan)]
    assert names[-1] == "Join"
    assert names.count("Filter") == 3  # two guard the windows against rows without a time
    for how in ("left", "right", "full"):  # a side without a match is null there, and the filter must see that
        outer = push_filters(left.join(right, on=["w", "key"], how=how).where("b > 3").plan)
        assert type(outer).__name__ == "Filter", how


def test_the_condition_of_an_inner_join_at_the_edge_is_a_filter_after_it(s: Any) -> None:
    window = F.window("ts", "5 seconds")
    left = s.withWatermark("ts", "1 second").select(window.alias("w"), "a")
    right = s.withWatermark("ts", "1 second").select(window.alias("v"), "b")
    within = filter_after_join(left.join(right, F.expr("w = v AND a < b")).plan)
    assert [type(o).__name__ for o in walk(within)][-2:] == ["Join", "Filter"]
    for how, condition in (("inner", "a = b AND a < 3"), ("left", "w = v AND a < b")):
        in_spark = left.join(right, F.expr(condition), how).plan
        assert filter_after_join(in_spark) == in_spark


def test_neighbours_fuse(s: Any) -> None:
    plan = s.where("a > 1").where("b > 2").selectExpr("a + b AS c", "key").selectExpr("c * 2 AS e").plan
    assert steps(fuse_neighbours(plan)) == ["Source s", "Filter (a > 1) AND (b > 2)", "Project (a + b) * 2 AS e"]


def test_a_value_used_twice_is_not_computed_twice(s: Any) -> None:
    plan = s.selectExpr("d * d AS square").selectExpr("square + square AS twice").plan
    assert len(steps(fuse_neighbours(plan))) == 3


def test_a_value_that_can_raise_is_not_moved_into_a_branch(s: Any) -> None:
    plan = s.selectExpr("a + b AS c", "key").selectExpr("CASE WHEN key = 'x' THEN c END AS c").plan
    assert len(steps(fuse_neighbours(plan))) == 3


def test_columns_nobody_reads_go_at_the_source(s: Any) -> None:
    counts = s.where("a > 1").withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key").count()
    assert steps(prune_columns(counts.plan))[:2] == ["Source s", "Project key, ts, a"]


def test_only_the_columns_that_are_read_are_received_and_event_time_with_them(s: Any) -> None:
    filtered = highest_cut(optimize(s.where("a > 1").selectExpr("soundex(key) AS sound", "a + 1 AS more").plan)).upper
    assert [o.schema.names for o in walk(prune_columns(filtered)) if isinstance(o, Received)] == [["key", "a"]]
    timed = s.withWatermark("ts", "1 second")
    received = Received("edge0", timed.plan.schema, timed.plan.traits)
    picked = Project(received, (("a", column_of(received.schema, "a")),))
    assert [o.schema.names for o in walk(prune_columns(picked))] == [["ts", "a"], ["a"]]
    assert prune_columns(received) is received


def test_only_the_fields_that_are_read_go_through_a_filter(s: Any) -> None:
    plan = s.where("a > 1").select("place.lat").plan
    assert steps(narrow_structs(plan)) == [
        "Source s",
        "Project a, place.lat AS place.lat",
        "Filter a > 1",
        "Project `place.lat` AS lat",
    ]


def test_a_struct_that_is_read_whole_stays_whole(s: Any) -> None:
    plan = s.where("a > 1").select("place", "place.lat").plan
    assert narrow_structs(plan) == plan


def test_an_aggregate_splits_and_merges_back(s: Any) -> None:
    plan = s.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key").agg(F.avg("d").alias("m")).plan
    split = split_aggregates(plan)
    assert [getattr(o, "mode", "") for o in walk(split)] == ["", "", "partial", "final"]
    assert split.schema == plan.schema
    assert merge_aggregates(split) == plan


def test_an_aggregate_that_the_edge_cannot_begin_is_not_split(s: Any) -> None:
    plan = s.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds")).agg(F.collect_list("d")).plan
    assert split_aggregates(plan) == plan


def test_watermarks_go_below_what_only_spark_can_run(s: Any) -> None:
    names = s.session.read.schema("key string, name string").table("names")
    joined = s.select("key", F.col("ts").alias("t")).join(names, on="key").withColumn("sound", F.soundex("name"))
    assert steps(lower_watermarks(joined.where("sound <> ''").withWatermark("t", "1 second").plan)) == [
        "Source s",
        "Project key, ts AS t",
        "Watermark t, delay 1 second",
        "Table names: key string, name string",
        "Join inner on key",
        "Project key, t, name, soundex(name) AS sound",
        "Filter sound <> ''",
    ]
    other = names.join(s.select("key", "ts"), on="key", how="right").withWatermark("ts", "1 second")
    assert steps(lower_watermarks(other.plan))[-2:] == ["Watermark ts, delay 1 second", "Join right_outer on key"]


def test_a_watermark_stays_above_what_the_edge_can_run_and_what_computes_its_column(s: Any) -> None:
    edge = s.where("a > 1").withWatermark("ts", "1 second").plan
    assert lower_watermarks(edge) == edge
    computed = s.selectExpr("date_trunc('HOUR', ts) AS t", "soundex(key) AS sound").withWatermark("t", "1 second").plan
    assert lower_watermarks(computed) == computed
    copied = s.selectExpr("ts AS t", "ts", "soundex(key) AS sound").withWatermark("t", "1 second").plan
    assert lower_watermarks(copied) == copied
    of_the_table = s.session.read.schema("key string, since timestamp").table("names").withWatermark("since", "1 day")
    assert lower_watermarks(of_the_table.plan) == of_the_table.plan


def test_equal_beginnings_of_one_query_become_one(s: Any) -> None:
    other = rove.Session.local().stream("s", schema=SCHEMA)
    plans = {"x": s.where("a > 1").select("key").plan, "y": other.where("a > 1").select("b").plan}
    shared = Stages.of({name: optimize(plan) for name, plan in plans.items()})
    assert len(shared.sources()) == 1
    assert len(shared.operators) < sum(len(Stages.of({name: optimize(p)}).operators) for name, p in plans.items())


def test_the_optimizer_settles(s: Any) -> None:
    plan = s.select("place", "a", "ts").where("place.lat > 1").select("place.lon", "a").where("a > 2").plan
    once = optimize(plan)
    assert optimize(once) == once
    assert len(RULES) == 8
