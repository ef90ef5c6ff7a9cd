"""Fixtures for several folders of tests: one Spark and one PostgreSQL, each started once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.cloud.postgres_server import Server

os.environ["ROVE_CLASS_ARCHIVE"] = "off"  # tests leave nothing behind in anybody's home
settings.register_profile("rove", deadline=None)  # how fast things are is for benchmarks to say
settings.load_profile("rove")

SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small local Spark; the compiler that starts fastest wins over the one that runs fastest."""
    from rove.cloud.session import spark_session

    session = spark_session("local[1]", SETTINGS, "rove-tests")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL of the tests' own."""
    from tests.cloud.postgres_server import programs, server

    if programs() is None:
        pytest.skip("no PostgreSQL here; on Debian: apt-get install -y --no-install-recommends postgresql")
    with server() as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-docs", action="store_true", help="write generated documents instead of comparing")
    parser.addoption("--all-queries", action="store_true", help="all portable queries through streaming Spark")
    parser.addoption("--all-kills", action="store_true", help="kill every part of the cloud five times")
    parser.addoption("--cellular", action="store_true", help="ten devices for five minutes over mobile networks")
    parser.addoption("--long-absence", action="store_true", help="a device that is away for a minute")
