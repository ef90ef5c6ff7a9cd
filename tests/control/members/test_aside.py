"""Spark is told the columns of rows that a query sets aside, before there are any."""

from __future__ import annotations

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.control.members.spark_side import _aside
from rove.plan.stages import Stages


def columns(stream: Stream) -> tuple[str, str]:
    return _aside(Stages.of({"out": stream.plan}))


def test_late_rows_have_the_columns_that_go_into_the_operator_they_are_late_for() -> None:
    trams = rove.Session.local().stream("trams", schema="tram string, ts timestamp, riders int")
    busy = trams.where("riders > 3").withWatermark("ts", "5 seconds")
    window = busy.groupBy(F.window("ts", "10 seconds"), "tram").agg(F.sum("riders").alias("n"))
    assert columns(window) == ("tram string, ts timestamp, riders int", "tram string, ts timestamp, riders int")


def test_rows_of_a_query_without_event_time_have_the_columns_of_its_output_if_they_are_late() -> None:
    trams = rove.Session.local().stream("trams", schema="tram string, riders int")
    assert columns(trams.select("tram")) == ("tram string", "tram string, riders int")
