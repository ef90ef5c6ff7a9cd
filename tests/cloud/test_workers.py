"""What the process of Spark's Python workers prints."""

from __future__ import annotations

import traceback

import pytest

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
