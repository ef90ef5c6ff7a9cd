"""Fixtures for several folders of tests: one Spark and one PostgreSQL, each started once."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from rove.runtime.memory import look_for_cycles_seldom
from tests import depth

if TYPE_CHECKING:
    from tests.cloud.postgres_server import Server

os.environ["ROVE_CLASS_ARCHIVE"] = "off"  # tests leave nothing behind in anybody's home
settings.register_profile("rove", deadline=None)  # how fast things are is for benchmarks to say
settings.load_profile("rove")

STARTS_PROCESSES = {"spark", "postgres", "cluster", "processes", "wheel", "programs"}  # fixtures
LONGEST = ("test_portable", "test_seeds", "test_forms")  # these files begin first, so that none is left for the end
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small local Spark; the compiler that starts fastest wins over the one that runs fastest."""
    from rove.cloud.start.session import spark_session

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


@pytest.fixture(scope="session")
def processes() -> None:
    """For tests and fixtures where the code that is tested starts processes: `--quick` leaves them out."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, processes: None) -> Path:
    """The wheel of this tree, built once."""
    from tests.installed import built_wheel

    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `rove` and `python` of an environment in which Rove is installed from its wheel."""
    from tests.installed import with_our_packages

    return with_our_packages(tmp_path_factory.mktemp("installed"), wheel)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-docs", action="store_true", help="write generated documents instead of comparing")
    parser.addoption("--all-queries", action="store_true", help="all portable queries through streaming Spark")
    parser.addoption("--all-functions", action="store_true", help="the table of Spark's result types, made again")
    parser.addoption("--all-kills", action="store_true", help="kill every part of the cloud five times")
    parser.addoption("--cellular", action="store_true", help="ten devices for five minutes over mobile networks")
    parser.addoption("--long-absence", action="store_true", help="a device that is away for a minute")
    parser.addoption("--quick", action="store_true", help="only tests that need no Spark, no process and no simulation")

    parser.addoption("--slow", action="store_true", help="only tests that are slow, and those that can look deeper")


def pytest_configure(config: pytest.Config) -> None:
    depth.slow = config.getoption("--slow")
    look_for_cycles_seldom()  # as the processes that are tested
    if config.getoption("--quick"):
        sys.addaudithook(_refuse_processes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run is not for, and put first what takes longest."""
    slow, quick = config.getoption("--slow"), config.getoption("--quick")
    suites = ("all-queries", "all-functions", "all-kills", "cellular", "long-absence")
    asked = any(config.getoption(f"--{name}") for name in suites)

    def wanted(item: pytest.Item) -> bool:
        marks = {mark.name for mark in item.iter_markers()}
        if slow:
            return bool(marks & {"slow", "deep"})
        if asked:
            return True  # the files that are named, whole
        return "slow" not in marks and not (quick and (_takes_long(item) or _needs_processes(item)))

    left_out = [item for item in items if not wanted(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if wanted(item)]
    long = {item.path for item in items if _needs_processes(item)}
    items.sort(key=lambda item: (item.path.stem not in LONGEST, item.path not in long))


def _takes_long(item: pytest.Item) -> bool:
    """Whether a test runs whole simulated histories, or looks for one that catches a machine broken on purpose."""
    return "simulation" in item.path.parts or item.path.stem.endswith("_mutants")


def _needs_processes(item: pytest.Item) -> bool:
    """Whether a test takes a fixture that starts processes, or names `subprocess`, itself or in a function beside it.
    A test that gets past this fails when it starts one."""
    if not isinstance(item, pytest.Function) or STARTS_PROCESSES & set(item.fixturenames):
        return True
    beside = vars(item.module)
    names = _names(item.function.__code__)
    called = (beside[name] for name in names if inspect.isfunction(beside.get(name)))
    return "subprocess" in names or any("subprocess" in _names(each.__code__) for each in called)


def _names(code: CodeType) -> set[str]:
    """All names that a function uses, and functions within it."""
    within = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, within))


def _refuse_processes(event: str, args: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn") and "PYTEST_CURRENT_TEST" in os.environ:
        raise RuntimeError("a test under --quick starts a process; let it take the fixture `processes`")
