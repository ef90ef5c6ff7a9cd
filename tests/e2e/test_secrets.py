"""A password that comes in with a sink is in no file, no log and no listing of a coordinator that is a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.control.asks.requests import CloudSink, QueryLine, Submit, Submitted
from rove.model.errors import RoveError
from rove.model.messages import Sink
from tests.control.test_sink_options import WITH_PASSWORD
from tests.e2e.cluster import Cluster
from tests.runtime.queries import trains


def test_the_coordinator_keeps_no_password_whoever_sends_it(cluster: Cluster, tmp_path: Path) -> None:
    """The client here checks nothing, as a client of another make may not."""
    plan = trains().where("boarding > 30").writeStream.asked("busy", Sink(kind="log")).plan

    def submit(name: str, url: str) -> None:
        sink = CloudSink(kind="postgres", name="busy", options={"url": url})
        cluster.client.ask("submit", Submit(name=name, plan=plan, sink=Sink(kind="log"), cloud=sink), Submitted)

    for n, url in enumerate(WITH_PASSWORD):
        with pytest.raises(RoveError, match="option `url` of table busy") as raised:
            submit(f"busy-{n}", url)
        assert "hunter" not in str(raised.value)
    submit("busy", "postgresql://rove@db/trams")
    (line,) = cluster.client.ask("queries", None, list[QueryLine])
    assert (line.query, line.sink) == ("busy", "postgres busy in Spark")
    cluster.end("coordinator")
    found = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"rove@db/trams" in data for path, data in found.items() if "catalog" in path)  # what is kept is found
    assert [path for path, data in found.items() if b"hunter" in data] == []
