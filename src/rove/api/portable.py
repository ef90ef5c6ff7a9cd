"""For queries that run on a PySpark DataFrame and on a Rove stream."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def functions_for(frame: Any) -> ModuleType:
    """The column functions for a frame: PySpark's for a DataFrame, Rove's for a stream.

    A query that begins with `F = functions_for(df)` can be tried on a static DataFrame before it is sent out.
    """
    if type(frame).__module__.startswith("pyspark."):
        from pyspark.sql import functions as spark_functions

        found: ModuleType = spark_functions
        return found
    from rove.api import functions

    return functions
