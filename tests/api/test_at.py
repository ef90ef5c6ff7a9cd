"""`at` takes a place and is refused without one."""

from __future__ import annotations

from typing import Any

import pytest

import rove
from rove.model.errors import PlanError


@pytest.fixture
def trains() -> Any:
    return rove.Session.local().stream("trains", schema="train string, boarding int")


@pytest.mark.parametrize("where", ["", "  "])
def test_no_place_is_refused(trains: Any, where: Any) -> None:
    with pytest.raises(PlanError, match="`device`, `edge`, `cloud`, or the name of a node"):
        trains.where("boarding > 0").at(where)


def test_verbs_go_on_behind_it(trains: Any) -> None:
    after = trains.where("boarding > 0").at("device").withColumnRenamed("train", "t").at("edge-7")
    assert after.columns == ["t", "boarding"]
    assert after.select("t").dtypes == [("t", "string")]


def test_a_step_after_in_spark_is_refused_behind_it_as_well(trains: Any) -> None:
    with pytest.raises(PlanError, match="put this step into its function"):
        trains.inSpark(lambda frame: frame).at("cloud").where("true")
