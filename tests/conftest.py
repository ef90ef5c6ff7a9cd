"""What several folders of tests share: one Spark, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def spark_session():  # type: ignore[no-untyped-def]
    """A small local Spark with the settings that Rove's answers are defined by: ANSI on, UTC."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("rove-tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.python.unix.domain.socket.enabled": "true",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    session = spark_session()
    yield session
    session.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-docs", action="store_true", help="write generated documents instead of comparing")
