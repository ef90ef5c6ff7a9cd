"""Which changes of its plan a running query can take."""

from __future__ import annotations

import pytest

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.plan.optimizer import optimize
from rove.plan.rules.amend import changed, misfit
from rove.plan.stages import Stages

SESSION = rove.Session.local()
TRAINS = SESSION.stream("trains", schema="id string, at timestamp, speed double, doors int").withWatermark(
    "at", "5 seconds"
)


def staged(stream: Stream) -> Stages:
    return Stages.of({"out": optimize(stream.plan)})


def windows(stream: Stream, length: str = "10 seconds") -> Stream:
    return stream.groupBy(F.window("at", length), "id").agg(F.max("speed").alias("top"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TRAINS.where("speed > 10"), TRAINS.where("speed > 20")),
        (TRAINS.selectExpr("id", "speed * 2 AS s"), TRAINS.selectExpr("id", "speed * 3 AS s")),
        (windows(TRAINS.where("speed > 10")), windows(TRAINS.where("speed < 10"))),
        (windows(TRAINS).where("top > 10"), windows(TRAINS).where("top > 20")),
    ],
)
def test_conditions_and_computed_columns_may_change(old: Stream, new: Stream) -> None:
    before, after = staged(old), staged(new)
    assert misfit(before, after) == ""
    assert len(changed(before, after)) == 1
    assert changed(before, staged(old)) == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (TRAINS.where("speed > 10"), TRAINS, "other operators"),
        (TRAINS.selectExpr("id", "speed AS s"), TRAINS.selectExpr("id", "doors AS s"), "would become"),
        (windows(TRAINS), windows(TRAINS, "20 seconds"), "would become"),
        (
            TRAINS.where("speed > 10").scan(F.max("speed").alias("top"), by="id"),
            TRAINS.where("speed > 20").scan(F.max("speed").alias("top"), by="id"),
            "counts the rows of",
        ),
        (
            TRAINS.withWatermark("at", "5 seconds").where("speed > 10"),
            TRAINS.withWatermark("at", "9 seconds").where("speed > 10"),
            "would become",
        ),
    ],
)
def test_everything_else_is_refused_by_name(old: Stream, new: Stream, why: str) -> None:
    assert why in misfit(staged(old), staged(new))


def test_users_functions_are_compared_by_their_names_or_bytes() -> None:
    from rove.plan.codec import decode, encode
    from rove.plan.user_functions import unread
    from tests.runtime.queries import COLUMNS

    stream = SESSION.stream("other", schema=COLUMNS).mapInArrow(iter, COLUMNS)
    once, again = (decode(encode(staged(stream)), unread) for _ in range(2))
    assert misfit(once, again) == ""
    assert changed(once, again) == []
    others = decode(encode(staged(SESSION.stream("other", schema=COLUMNS).mapInArrow(reversed, COLUMNS))), unread)
    assert "would become" in misfit(once, others)
