"""Spark queries on a machine that may be busy. Spark gives a Python process ten seconds to start, and no setting
changes that. A start that took longer is made again, as `CloudRuntime` does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.errors import StreamingQueryException

from rove.cloud.runtime import RETRY_S_MAX, RETRY_S_MIN, started_too_slowly

T = TypeVar("T")
STARTS_MAX = 10


def patiently(run: Callable[[], T]) -> T:
    """What `run` returns. It starts a query and waits for it; it is called again if a process came up too slowly."""
    for failures in range(STARTS_MAX):
        try:
            return run()
        except StreamingQueryException as failed:
            if not started_too_slowly(failed):
                raise
            time.sleep(min(RETRY_S_MAX, RETRY_S_MIN * 2**failures))
    raise AssertionError(f"Spark's processes did not come up in {STARTS_MAX} starts; this machine is too busy")


def begun(start: Callable[[], Any]) -> Any:
    """A query that has taken all rows there are."""

    def run() -> Any:
        query = start()
        query.processAllAvailable()
        return query

    return patiently(run)
