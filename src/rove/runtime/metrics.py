"""Serves the coordinator's numbers to Prometheus at `http://…/metrics`, while the coordinator runs.

Law: a scrape shows one moment. The server's thread asks for a snapshot and waits; the coordinator's thread takes it
between two rounds. So no other thread touches the machine, and nothing is computed without a scrape.

Series are named `rove_<part>_<what>_<unit>`. Their number is bounded by what runs: the label `origin` leaves out the
start, so a device that restarts continues its series, and stopped queries have none. For each query and origin,
`produced = delivered + evicted + late + lost + faulted + in_flight`. Rows that are buffered, in open
windows or missing are in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from queue import Empty, Full, Queue, SimpleQueue
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rove.control.asks.requests import AccountLine, Progress
from rove.control.asks.snapshot import Snapshot
from rove.model.errors import RoveError, SetupError
from rove.model.ids import read_origin
from rove.runtime.network.bell import Bell
from rove.runtime.network.sockets import on_this_computer

WAIT_S = 5.0  # how long a scrape waits for the coordinator
ASKED_MAX = 16  # scrapes that may wait at a time

ROWS_OF = {
    "produced": "Rows that sources made for the query.",
    "delivered": "Rows that have reached the end of the query, or a stateful operator and are in no open window.",
    "evicted": "Rows that a full store evicted.",
    "late": "Rows that came after the watermark had passed them; they are in the late table.",
    "lost": "Rows that no node has any more.",
    "faulted": "Rows that could not be computed; they are in the fault table.",
}
GAUGES = {
    "in_flight": "Rows in flight, including buffered, open and missing ones.",
    "open": "Rows in open windows of stateful operators.",
    "missing": "Rows in flight that no node has.",
}


class MetricsServer(Collector):
    """Answers scrapes at `address` (host:port). `bell` wakes the coordinator's thread."""

    def __init__(self, address: str, bell: Bell, keys: bool) -> None:
        host, port = _place(address)
        if not keys and not on_this_computer(f"tcp://{address}"):
            raise SetupError(
                f"without keys metrics are only served to this computer, not at {address}; give 127.0.0.1:{port}"
            )
        self._bell = bell
        self._asked: Queue[SimpleQueue[Snapshot | Exception]] = Queue(ASKED_MAX)
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            raise SetupError(f"metrics cannot be served at {address}: {error.strerror}; choose another") from error
        self.url = f"http://{host}:{self._server.server_port}/metrics"

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> list[Metric]:
        """The present metrics. Called by the server's thread."""
        answer: SimpleQueue[Snapshot | Exception] = SimpleQueue()
        try:
            self._asked.put_nowait(answer)
            self._bell.ring()
            found = answer.get(timeout=WAIT_S)
        except (Full, Empty) as error:
            raise RoveError(f"the coordinator was too busy for metrics for {WAIT_S:g} s") from error
        if isinstance(found, Exception):
            raise found
        return families(found)

    def answer(self, take: Callable[[], Snapshot]) -> None:
        """Give waiting scrapes one snapshot. Called by the coordinator's thread. O(1) if none waits."""
        if self._asked.empty():
            return
        found: Snapshot | Exception
        try:
            found = take()
        except Exception as error:  # a failing scrape must not affect the coordinator
            found = error
        while not self._asked.empty():
            self._asked.get_nowait().put(found)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def families(snapshot: Snapshot) -> list[Metric]:
    """A snapshot as Prometheus' families."""
    return [*_accounts(snapshot), *_holdings(snapshot), *_nodes(snapshot), *_queries(snapshot), *_spark(snapshot)]


def _accounts(snapshot: Snapshot) -> list[Metric]:
    labels = ("query", "origin")
    lines = _by_origin(snapshot)
    found: list[Metric] = []
    for what, text in ROWS_OF.items():
        family = CounterMetricFamily(f"rove_query_{what}_rows", text, labels=labels)
        for key, same in lines.items():
            family.add_metric(key, sum(getattr(line, what) for line in same))
        found.append(family)
    gauges = {what: GaugeMetricFamily(f"rove_query_{what}_rows", text, None, labels) for what, text in GAUGES.items()}
    lag = GaugeMetricFamily(
        "rove_query_watermark_lag_seconds", "How far an origin's watermark is behind the clock.", None, labels
    )
    for key, same in lines.items():
        for what, gauge in gauges.items():
            gauge.add_metric(key, sum(getattr(line, what) for line in same))
        lags = [line.watermark_lag_ms for line in same if line.watermark_lag_ms is not None]
        if lags:
            lag.add_metric(key, min(lags) / 1_000)  # an old start would lag behind for ever
    return [*found, *gauges.values(), lag]


def _by_origin(snapshot: Snapshot) -> dict[tuple[str, str], list[AccountLine]]:
    """The accounts of running queries, by query and origin without its start."""
    live = _live(snapshot)
    found: dict[tuple[str, str], list[AccountLine]] = {}
    for line in snapshot.accounts:
        if line.query in live:
            found.setdefault((line.query, str(read_origin(line.origin).any_start)), []).append(line)
    return found


def _holdings(snapshot: Snapshot) -> list[Metric]:
    live, labels = _live(snapshot), ("query", "node")
    held = [holding for holding in snapshot.holdings if holding.query in live]
    rows = GaugeMetricFamily(
        "rove_node_buffered_rows", "Rows that a node keeps until the next node has them.", None, labels
    )
    size = GaugeMetricFamily("rove_node_buffered_bytes", "Bytes of batches that a node keeps.", None, labels)
    age = GaugeMetricFamily("rove_node_buffered_age_seconds", "How long the oldest batch has waited.", None, labels)
    resent = CounterMetricFamily("rove_node_resent_rows", "Rows that a node sent again.", labels=labels)
    again = CounterMetricFamily("rove_node_duplicate_batches", "Duplicate batches that were dropped.", labels=labels)
    for each in held:
        key = (each.query, each.node)
        rows.add_metric(key, each.rows)
        size.add_metric(key, each.bytes)
        age.add_metric(key, each.age_us / 1_000_000)
        resent.add_metric(key, each.resent)
        again.add_metric(key, each.duplicates)
    return [rows, size, age, resent, again]


def _nodes(snapshot: Snapshot) -> list[Metric]:
    up = GaugeMetricFamily("rove_node_up", "1 if the node reported lately.", None, ("node", "kind"))
    for node in snapshot.nodes:
        up.add_metric((node.node, node.kind), node.state == "up")
    return [up]


def _queries(snapshot: Snapshot) -> list[Metric]:
    runs = GaugeMetricFamily("rove_query_up", "1 if all nodes run their fragment and rows flow.", None, ("query",))
    for query in snapshot.queries:
        if query.state != "stopped":
            runs.add_metric((query.query,), query.state == "running")
    return [runs]


# Name, text, and value of a query's progress in Spark.
_GAUGES: tuple[tuple[str, str, Callable[[Progress], float]], ...] = (
    ("up", "1 if Spark runs the query.", lambda said: said.state == "running"),
    ("throughput_rows_per_second", "Rows a second in the last micro-batch.", lambda said: said.rows_per_s),
    ("batch_seconds", "How long the last micro-batch took.", lambda said: said.batch_ms / 1_000),
    ("state_rows", "Rows in Spark's state.", lambda said: said.state_rows),
    ("lag_entries", "Batches in the log that Spark has not read.", lambda said: said.lag_entries),
)
_COUNTERS: tuple[tuple[str, str, Callable[[Progress], float]], ...] = (
    ("read_rows", "Rows that Spark has read.", lambda said: said.rows),
    ("dropped_rows", "Rows that Spark's own watermark dropped.", lambda said: said.dropped_rows),
    ("restarts", "How often Spark started the query again.", lambda said: said.restarts),
)


def _spark(snapshot: Snapshot) -> list[Metric]:
    live = _live(snapshot)
    said = [query.spark for query in snapshot.queries if query.spark is not None and query.query in live]
    found: list[Metric] = []
    kinds: tuple[tuple[Any, Any], ...] = ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS))
    for kind, entries in kinds:
        for name, text, value in entries:
            family = kind(f"rove_spark_{name}", text, labels=("query",))
            for each in said:
                family.add_metric((each.query,), value(each))
            found.append(family)
    mark = GaugeMetricFamily("rove_spark_watermark_timestamp_seconds", "Spark's watermark.", None, ("query",))
    for each in said:
        if (seconds := _seconds(each.watermark)) is not None:
            mark.add_metric((each.query,), seconds)
    return [*found, mark]


def _seconds(moment: str) -> float | None:
    """A timestamp as Spark writes it; None if it is empty."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None


def _live(snapshot: Snapshot) -> set[str]:
    return {query.query for query in snapshot.queries if query.state != "stopped"}


def _place(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise SetupError(f"`{address}` is not an address for metrics; write it like 127.0.0.1:9470")
    return host.strip("[]"), int(port)
