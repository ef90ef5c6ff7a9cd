"""Queries in one Spark: a failure of one does not affect the others."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import rove
from rove.cloud.runtime import CloudRuntime, first_line
from rove.cloud.source import register
from rove.control.asks.requests import CloudQuery, CloudSink
from rove.model.schema import parse_schema
from rove.plan.codec import encode
from rove.plan.operators import InSpark, Received
from rove.plan.stages import Stages
from tests.cloud.gateway_log import Gateway

MEMORY = CloudSink(kind="memory", name="m")


def asked(query: str, function: Any, sink: CloudSink = MEMORY) -> CloudQuery:
    """Spark's part of a query: a function over what a log holds of it."""
    rows = rove.Session.local().stream("s", schema="a int").plan
    plan = InSpark(Received("out", rows.schema, rows.traits), function)
    return CloudQuery(query=query, plan=encode(Stages.of({"out": plan}), cloudpickle.dumps), sink=sink)


@pytest.mark.parametrize("trusts", [False, True])
def test_a_function_by_value_is_read_only_where_that_is_allowed(spark: Any, tmp_path: Path, trusts: bool) -> None:
    now = 0.0
    runtime = CloudRuntime(spark, tmp_path, tmp_path, tmp_path, trusts=trusts, clock=lambda: now)
    queries = [asked("by-value", lambda frame: frame), asked("damaged", int)]
    queries[1] = CloudQuery(query="damaged", plan=queries[1].plan[:-1], sink=MEMORY)
    waits = []
    for _ in range(4):
        runtime.settle(queries)
        said = {progress.query: progress for progress in runtime.watch()}
        now += 1.0
        waits.append(said["by-value"].state)
    assert set(waits) == {"starting" if trusts else "failed"}  # it waits for its log, which is not there
    assert ("trust_functions" in said["by-value"].trouble) != trusts
    assert said["damaged"].state == "failed"
    assert "not a plan of Rove" in said["damaged"].trouble
    runtime.stop()


@pytest.mark.slow
def test_a_python_process_that_is_up_too_late_for_spark_is_started_again_and_is_no_trouble(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slow = tmp_path / "python"
    slow.write_text(
        f"""#!/bin/sh
case "$*" in *streaming_source_runner*) [ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; sleep 11; }};; esac
exec {sys.executable} "$@"
"""
    )
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    register(spark)
    schema = parse_schema("a int")
    Gateway(tmp_path, schema=schema).put("x", pa.RecordBatch.from_pylist([{"a": 1}], schema), None)
    runtime = CloudRuntime(spark, tmp_path, tmp_path / "tables", tmp_path / "state", trusts=True)
    query, states = asked("q", lambda frame: frame, CloudSink(kind="table", name="t")), []
    for _ in range(600):
        runtime.settle([query])
        (said,) = runtime.watch()
        states.append(said.state)
        if said.state == "running":
            break
        time.sleep(0.1)
    runtime.stop()
    assert (tmp_path / "once").exists()
    assert set(states) == {"starting", "running"}
    assert (said.restarts, said.trouble) == (1, "")
    assert "it starts again" in caplog.text


LOST = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 3.0 (TID 3) (localhost executor driver): "
)
CAUSED = 'java.lang.NumberFormatException: For input string: "x"'
LEFT = "ExecutorLostFailure (executor 1 exited): gone"


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (RuntimeError(""), "RuntimeError: without a message"),
        (ValueError("one\ntwo"), "ValueError: one"),
        ("failed [id = 7, runId = 8] here", "failed here"),
        (
            f"{LOST}java.lang.Wrapped\n\tat a.b\nCaused by: {CAUSED}\n\t... 27 more\n\nDriver stacktrace:\n\tat d",
            CAUSED,
        ),
        (f"{LOST}{LEFT}\nDriver stacktrace:", LEFT),
    ],
)
def test_an_error_is_told_in_one_line_that_is_the_same_at_each_attempt(raised: BaseException | str, said: str) -> None:
    assert first_line(raised) == said
