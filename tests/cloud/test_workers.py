"""What the process of Spark's Python workers prints."""

from __future__ import annotations

import socket
import sys
import traceback
from typing import Any

import pytest
from pyspark import daemon

from rove.cloud.start.workers import said


@pytest.mark.parametrize(("error", "printed"), [(BrokenPipeError(32, "Broken pipe"), False), (ValueError("x"), True)])
def test_that_spark_has_left_a_worker_is_not_printed(
    error: Exception, printed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except Exception:
        said("PySpark daemon failed to flush the output to the worker process:\n" + traceback.format_exc())
    assert ("failed to flush" in capsys.readouterr().err) == printed


@pytest.mark.parametrize("ours", [True, False])
def test_pysparks_process_prints_a_traceback_of_a_worker_that_was_left_and_ours_does_not(
    ours: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, spark = socket.socketpair()

    def work(infile: Any, outfile: Any) -> None:
        outfile.write(b"rows")
        spark.close()

    monkeypatch.setattr(sys, "argv", ["daemon"])
    monkeypatch.setattr("pyspark.worker.main", work)
    if ours:
        monkeypatch.setattr(daemon, "print", said, raising=False)
    assert daemon.worker(here, True) == 0
    assert ("BrokenPipeError" in capsys.readouterr().err) != ours
