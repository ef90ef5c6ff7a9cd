"""Where steps can run, and why not elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import rove
from rove import functions as F
from rove.plan.operators import Aggregate, Received, Table, walk
from rove.plan.optimizer import optimize
from rove.plan.sites import site
from rove.plan.spark.cuts import highest_cut, legal_cuts
from rove.plan.windows import Window


@pytest.fixture
def s() -> Any:
    return rove.Session.local().stream("s", schema="key string, ts timestamp, a int")


def counts(s: Any, size: str = "10 seconds") -> Any:
    return s.withWatermark("ts", "1 second").groupBy(F.window("ts", size)).count()


def test_a_table_and_what_reads_it_run_in_spark(s: Any) -> None:
    names = s.session.read.schema("key string, name string").table("names")
    found = site(s.join(names, on="key").plan)
    assert (found.edge, found.spark, found.why) == (False, True, "it joins a table, which Spark reads")
    assert site(names.where("name <> ''").plan).why == "its input, Table, runs in Spark"
    for cut in legal_cuts(optimize(s.where("a > 1").join(names, on="key").plan)):
        assert not any(isinstance(op, Table) for _, lower in cut.lower for op in walk(lower))
        assert any(isinstance(op, Table) for op in walk(cut.upper))


def test_windows_of_window_starts_close_at_the_edge_alone(s: Any) -> None:
    of_starts = counts(s).groupBy(F.window("window.start", "15 seconds")).agg(F.sum("count").alias("n"))
    found = site(of_starts.plan)
    assert (found.edge, found.spark) == (True, False)
    assert "write window(`window`, …)" in found.why
    assert site(counts(s).groupBy("window").agg(F.sum("count").alias("n")).plan).spark
    for cut in legal_cuts(optimize(of_starts.plan)):
        assert all(op.mode == "final" for op in walk(cut.upper) if isinstance(op, Aggregate))


def test_windows_of_two_lengths_are_windows_of_event_time_still(s: Any) -> None:
    both = counts(s).union(counts(s, "20 seconds")).withColumnRenamed("window", "w")
    assert both.plan.traits.windows == (("w", None),)
    assert counts(s).union(counts(s)).plan.traits.windows == (("window", Window(10_000_000, 10_000_000, 0)),)
    above = both.groupBy(F.window("w", "1 minute")).agg(F.sum("count").alias("n"))
    received = next(op for op in walk(highest_cut(optimize(above.plan)).upper) if isinstance(op, Received))
    assert received.traits.windows == (("w", None),)
