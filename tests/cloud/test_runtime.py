"""Queries in one Spark: a failure of one does not affect the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import rove
from rove.cloud.runtime import CloudRuntime
from rove.control.asks.requests import CloudQuery, CloudSink
from rove.plan.codec import encode
from rove.plan.operators import InSpark, Received
from rove.plan.stages import Stages

MEMORY = CloudSink(kind="memory", name="m")


def asked(query: str, function: Any) -> CloudQuery:
    """Spark's part of a query: a function over what a log holds of it."""
    rows = rove.Session.local().stream("s", schema="a int").plan
    plan = InSpark(Received("out", rows.schema, rows.traits), function)
    return CloudQuery(query=query, plan=encode(Stages.of({"out": plan}), cloudpickle.dumps), sink=MEMORY)


@pytest.mark.parametrize("trusts", [False, True])
def test_a_function_by_value_is_read_only_where_that_is_allowed(spark: Any, tmp_path: Path, trusts: bool) -> None:
    now = 0.0
    runtime = CloudRuntime(spark, tmp_path, tmp_path, tmp_path, trusts=trusts, clock=lambda: now)
    queries = [asked("by value", lambda frame: frame), asked("damaged", int)]
    queries[1] = CloudQuery(query="damaged", plan=queries[1].plan[:-1], sink=MEMORY)
    waits = []
    for _ in range(4):
        runtime.settle(queries)
        said = {progress.query: progress for progress in runtime.watch()}
        now += 1.0
        waits.append(said["by value"].state)
    assert set(waits) == {"starting" if trusts else "failed"}  # it waits for its log, which is not there
    assert ("trust_functions" in said["by value"].trouble) != trusts
    assert said["damaged"].state == "failed"
    assert "not a plan of Rove" in said["damaged"].trouble
    runtime.stop()
