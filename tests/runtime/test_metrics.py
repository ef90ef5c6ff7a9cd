"""Prometheus reads the numbers that nodes reported, under a bounded number of names."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

import rove
from rove.api import session
from rove.control.asks.requests import Named, Progress
from rove.model.ids import QueryId, read_origin
from rove.model.messages import Held, Tally
from rove.runtime.metrics import families
from tests.api.desk import START_US, Desk
from tests.runtime.scraping import values

ENDS = ("delivered_rows_total", "evicted_rows_total", "late_rows_total", "lost_rows_total", "in_flight_rows")
BUSY = QueryId("busy")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A coordinator with one query."""
    found = Desk()
    found.line_up()
    monkeypatch.setattr(session, "_dialled", lambda url, keys: found)
    rove.Session("tcp://127.0.0.1:4700").stream("trains").where("boarding > 0").writeStream.toTable("busy")
    return found


def scraped(desk: Desk) -> dict[str, dict[str, float]]:
    class Once(Collector):
        def collect(self) -> list[Metric]:
            return families(desk.machine.snapshot(desk.now, START_US + desk.now))

    registry = CollectorRegistry()
    registry.register(Once())
    return values(generate_latest(registry).decode())


def tally(origin: str, **counts: int) -> Tally:
    return Tally(query=BUSY, origin=read_origin(origin), **counts)


def test_starts_of_an_origin_are_one_series_and_its_rows_add_up(desk: Desk) -> None:
    made = (tally("trains/tram~1", produced=100), tally("trains/tram", produced=40, evicted=3, lost=1))
    desk.report("tram", "device", ("mast",), ("trains",), tallies=made)
    ended = (
        tally("trains/tram~1", delivered=90, late=10, watermark=START_US - 60_000_000),
        tally("trains/tram", delivered=30, duplicates=2, watermark=START_US - 2_000_000),
    )
    desk.report("gateway", "gateway", tallies=ended)
    found, series = scraped(desk), "busy trains/tram"
    assert found["rove_query_produced_rows_total"] == {series: 140}
    assert [found[f"rove_query_{end}"][series] for end in ENDS] == [120, 3, 10, 1, 6]
    assert found["rove_query_watermark_lag_seconds"] == {series: 2}
    assert found["rove_node_duplicate_batches_total"]["busy gateway"] == 2


def test_what_a_node_keeps_is_counted_where_it_is_and_ages_while_nobody_hears_of_it(desk: Desk) -> None:
    held = (Held(BUSY, 4_096, 1_500_000),)
    waiting = (tally("trains/tram~1", produced=50, buffered=20, resent=5),)
    desk.report("tram", "device", ("mast",), ("trains",), tallies=waiting, held=held)
    desk.now = 10_000_000
    found, here = scraped(desk), "busy tram"
    assert found["rove_node_buffered_rows"][here] == 20
    assert found["rove_node_buffered_bytes"][here] == 4_096
    assert found["rove_node_buffered_age_seconds"][here] == 11.5
    assert found["rove_node_resent_rows_total"][here] == 5
    assert found["rove_node_up"] == {"gateway gateway": 0, "mast edge": 0, "tram device": 0}


def test_how_spark_gets_on_is_there_once_it_has_said_so(desk: Desk) -> None:
    assert "rove_spark_up" not in scraped(desk)
    said = Progress(
        query="busy",
        state="running",
        rows=1_000,
        rows_per_s=250.5,
        batch_ms=120,
        state_rows=7,
        lag_entries=3,
        restarts=2,
        watermark="1970-01-01T00:01:00.000Z",
    )
    desk.ask("progress", said, Named)
    found = {name: found["busy"] for name, found in scraped(desk).items() if name.startswith("rove_spark_")}
    assert found == {
        "rove_spark_up": 1,
        "rove_spark_throughput_rows_per_second": 250.5,
        "rove_spark_batch_seconds": 0.12,
        "rove_spark_state_rows": 7,
        "rove_spark_lag_entries": 3,
        "rove_spark_read_rows_total": 1_000,
        "rove_spark_dropped_rows_total": 0,
        "rove_spark_restarts_total": 2,
        "rove_spark_watermark_timestamp_seconds": 60,
    }


def test_a_query_that_was_stopped_has_no_series(desk: Desk) -> None:
    desk.report("tram", "device", ("mast",), ("trains",), tallies=(tally("trains/tram~1", produced=1),))
    assert scraped(desk)["rove_query_up"] == {"busy": 0}
    desk.ask("stop", Named(name="busy"), Named)
    assert {name for name in scraped(desk) if not name.startswith("rove_node_up")} == set()
