"""Columns of one name: inside a plan each has a name of its own, and the result shows the names that were written."""

from __future__ import annotations

import pytest

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.model.errors import PlanError
from rove.plan.codec import decode, encode
from rove.plan.expressions.tree import Column
from rove.plan.operators import Filter, Project
from rove.plan.optimizer import optimize
from rove.plan.shown import Shown, by_position, shown
from rove.plan.sites import site
from rove.plan.stages import Stages


@pytest.fixture
def t() -> Stream:
    return rove.Session.local().stream("t", schema="a int, b int, s string")


def test_a_name_that_is_given_twice_is_only_in_the_result(t: Stream) -> None:
    plan = t.select("a", F.col("b").alias("a")).plan
    assert isinstance(plan, Shown)
    assert plan.schema.names == ["a", "a"]
    assert plan.input.schema.names == ["a", "__1_a"]


def test_one_column_that_is_listed_twice_is_computed_once(t: Stream) -> None:
    plan = t.select("a", "s", "a").plan
    assert isinstance(plan, Shown)
    assert plan.input.schema.names == ["a", "s"]


def test_names_that_differ_in_case_only_are_one_name(t: Stream) -> None:
    assert isinstance(t.select("a", F.col("b").alias("A")).plan, Shown)


def test_names_that_are_given_once_need_no_last_step(t: Stream) -> None:
    assert isinstance(shown(t.plan, [("x", "a"), ("y", "b")]), Project)
    assert shown(t.plan, [("a", "a"), ("b", "b"), ("s", "s")]) is t.plan


def test_no_other_step_stands_on_columns_of_one_name(t: Stream) -> None:
    plan = t.select("a", F.col("b").alias("a")).plan
    with pytest.raises(PlanError, match="column `a` appears twice"):
        Project(plan, (("a", Column(plan.schema.field(0).type, "a")),))
    with pytest.raises(PlanError, match="column `a` appears twice"):
        Filter(plan, rove.Session.local().stream("u", schema="c boolean").where("c").plan.condition)  # type: ignore[attr-defined]


def test_a_result_shows_all_that_is_computed_for_it(t: Stream) -> None:
    with pytest.raises(PlanError, match="column `b` is computed for a result that does not show it"):
        Shown(t.plan, (("a", "a"), ("a", "s")))


def test_columns_of_one_name_have_a_place_each(t: Stream) -> None:
    assert by_position(t.select("a", "a", "a").plan).schema.names == ["a", "__1_a", "__2_a"]
    assert by_position(t.plan) is t.plan


def test_such_a_result_is_sent_and_read_and_ends_in_spark(t: Stream) -> None:
    plan = optimize(t.select("a", F.col("b").alias("a")).plan)
    stages = Stages.of({"out": plan})
    assert decode(encode(stages)) == stages
    assert not site(plan).edge
    assert site(plan.inputs[0]).edge


def test_all_rows_of_such_a_result_are_given_without_spark() -> None:
    session = rove.Session.local()
    t = session.stream("t", schema="a int, b int", data=[{"a": 1, "b": 2}])
    found = t.select("b", F.col("a").alias("b"), "b").toArrow()
    assert found.schema.names == ["b", "b", "b"]
    assert [c.to_pylist() for c in found.columns] == [[2], [1], [2]]
