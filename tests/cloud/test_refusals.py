"""What Spark's analysis refuses is refused when it is submitted to a network, and never tried again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove.api import session as sessions
from rove.cloud import own
from rove.cloud.process import follow
from rove.cloud.runtime import CloudRuntime
from rove.control.asks.requests import CloudAsk, CloudQuery, Named, Progress
from rove.model.errors import PlanError, RoveError
from rove.model.schema import parse_schema
from tests.api.desk import COLUMNS, Desk
from tests.cloud.gateway_log import Gateway
from tests.cloud.test_runtime import asked

URL = "tcp://127.0.0.1:4700"
REFUSED = "SELECT train, array_position(array(1.0D), 1.5) AS q FROM trains"
TAKEN = "SELECT train, soundex(train) AS q FROM trains"


class Shared(Desk):
    """A desk at which Spark's thread asks as well."""

    def __init__(self) -> None:
        super().__init__()
        self._one = threading.Lock()

    def ask(self, *args: Any) -> Any:
        with self._one:
            return super().ask(*args)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Shared()
    found.line_up()
    monkeypatch.setattr(sessions, "_dialled", lambda url, keys: found)
    return found


@pytest.fixture
def cloud(spark: Any, desk: Desk, tmp_path: Path) -> Iterator[None]:
    """A `rove cloud` that asks the desk."""
    runtime, ended = CloudRuntime(spark, tmp_path, tmp_path, tmp_path), threading.Event()
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    thread = threading.Thread(target=follow, args=(runtime, desk.ask, 0.05, ended))
    thread.start()
    yield
    ended.set()
    thread.join()
    runtime.stop()


def submit(statement: str) -> None:
    session = rove.Session(URL)
    session.stream("trains", schema=COLUMNS)
    session.sql(statement).writeStream.toTable("x")


def test_the_networks_spark_is_asked_before_a_query_is_taken(
    cloud: None, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "refused_here", lambda *_: "nobody should ask this computer")
    with pytest.raises(PlanError, match="Spark refuses this query: Cannot resolve"):
        submit(REFUSED)
    assert not desk.machine.queries
    submit(TAKEN)
    assert list(desk.machine.queries) == ["x"]


def test_the_spark_of_this_computer_is_asked_if_the_network_has_none(spark: Any, desk: Desk) -> None:
    with pytest.raises(PlanError, match="Spark refuses this query: Cannot resolve"):
        submit(REFUSED)
    assert not desk.machine.queries
    submit(TAKEN)
    assert list(desk.machine.queries) == ["x"]


@pytest.mark.slow
def test_a_process_of_its_own_asks_spark_and_leaves_none_behind(
    spark: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(PlanError, match="Spark refuses this query: Cannot resolve"):
        submit(REFUSED)
    submit(TAKEN)


def test_without_java_nothing_is_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr(own, "find_java", lambda: None)
    submit(REFUSED)
    assert list(desk.machine.queries) == ["x"]


def test_what_nodes_compute_needs_no_spark(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "refused_here", lambda *_: "nobody should ask this computer")
    submit("SELECT train FROM trains WHERE boarding > 3")
    assert list(desk.machine.queries) == ["x"]


def tries(spark: Any, folder: Path, function: Any) -> tuple[Progress, int]:
    """The last report on a query with a log, and how often it was tried in 100 s."""
    now, schema, tried = 0.0, parse_schema("a int"), str(folder / "tried")

    def counted(frame: Any) -> Any:
        with open(tried, "a") as file:
            file.write(".")
        return function(frame)

    Gateway(folder, schema=schema).put("x", pa.RecordBatch.from_pylist([{"a": 1}], schema), None)
    runtime = CloudRuntime(spark, folder, folder / "tables", folder / "state", trusts=True, clock=lambda: now)
    for _ in range(20):
        runtime.settle([asked("q", counted)])
        (said,) = runtime.watch()
        now += 5.0
    runtime.stop()
    return said, len(Path(tried).read_text())


def test_a_query_that_analysis_refuses_at_its_start_is_tried_once(
    spark: Any, tmp_path: Path, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    said, times = tries(spark, tmp_path, lambda frame: frame.selectExpr("nope"))
    assert (said.state, said.final, times) == ("failed", True, 1)
    assert said.trouble.startswith("Spark refuses this query: A column, variable, or function parameter")
    assert "It is not tried again. Stop it: rove stop q" in caplog.text

    submit("SELECT train FROM trains WHERE boarding > 3")
    desk.ask("progress", Progress(query="x", state="failed", final=True, trouble="Spark refuses this"), Named)
    query = rove.Session(URL).query("x")
    (line,) = [trouble for trouble in query.listed().troubles if trouble.who == "Spark"]
    assert (line.final, line.holds) == (True, True)
    assert "it is not tried again; stop the query" in line.reason
    desk.report("tram", "device", ("mast",), ("trains",), running={"x": 1})
    with pytest.raises(RoveError, match=r"query `x` cannot go on: .*Spark refuses this"):
        query.processAllAvailable(5)


def test_a_query_whose_table_is_not_there_yet_is_tried_again(spark: Any, tmp_path: Path) -> None:
    said, times = tries(spark, tmp_path, lambda frame: frame.sparkSession.table("nowhere"))
    assert (said.state, said.final) == ("failed", False)
    assert times > 3
