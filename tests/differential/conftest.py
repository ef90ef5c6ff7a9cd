"""Spark's errors are expected here by the thousand; PySpark logs each with its stack unless told not to."""

from __future__ import annotations

import logging

logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
