"""A whole network of processes, started and asked by the `rove` command as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rove as api
from rove.control.asks.requests import NodeLine
from rove.runtime import process
from rove.runtime.settings import WorkerSection
from tests.cli.conftest import Rove
from tests.e2e.cluster import free_port
from tests.runtime.scraping import values

COMMAND = (sys.executable, "-c", "from rove.cli import main; main()")
COLUMNS = "train string, ts timestamp, boarding int"
LOOPBACK = "tcp://127.0.0.1:0"
PATIENCE_S = 30


class Network:
    """Processes that were started, and where their coordinator is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        self.metrics = f"127.0.0.1:{free_port()}"
        flags = ("--data", str(folder / "coordinator"), "--metrics", self.metrics)
        self.url = self.start("coordinator", "--listen", "tcp://127.0.0.1:0", *flags)

    def start(self, *args: str) -> str:
        """Start a node; the address it says it is ready at."""
        log = open(self.folder / f"{args[0]}.log", "ab")  # noqa: SIM115
        started = subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()
        self._processes.append(started)
        assert started.stdout is not None
        said = started.stdout.readline().split()
        assert said[:1] == ["ready"], (self.folder / f"{args[0]}.log").read_text()
        return said[-1]

    def rove(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, *args, "--coordinator", self.url]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def told(self, *args: str) -> Any:
        said = self.rove(*args, "--json")
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    def scraped(self) -> dict[str, dict[str, float]]:
        """What Prometheus would read."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=PATIENCE_S) as answer:
            return values(answer.read().decode())

    def end(self) -> None:
        for each in self._processes:
            each.terminate()
        for each in self._processes:
            each.communicate(timeout=PATIENCE_S)
            assert each.returncode == 0


@pytest.fixture(scope="module")
def network(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """A gateway, an edge, and a tram that makes 200 rows once there is somebody to read them."""
    folder = tmp_path_factory.mktemp("network")
    found = Network(folder)
    try:
        where = ("--coordinator", found.url)
        found.start("gateway", "--name", "gateway", "--data", str(folder / "gateway"), *where)
        found.start("worker", "--name", "mast", "--parent", "gateway", "--slots", "4", "--memory", "16MiB", *where)
        source = f"trains=generate:start_us=1000000,rows=20,rate=50,batches=10,seed=7,when={folder / 'go'}"
        columns = ("--columns", f"trains: {COLUMNS}")
        found.start("device", "--name", "tram", "--parent", "mast", "--source", source, *columns, *where)
        yield found
    finally:
        found.end()


def until(true: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.3)


def test_a_query_runs_from_the_device_to_the_gateway_and_every_row_is_accounted_for(network: Network) -> None:
    with api.Session(network.url) as session:
        until(lambda: [n.state for n in session.ask("topology", None, list[NodeLine])] == ["up"] * 3)
        file = network.folder / "all.sql"
        file.write_text("SELECT train, boarding FROM trains")
        said = network.rove("submit", str(file))
        assert said.returncode == 0, said.stderr
        assert "tram ─► mast" in said.stdout
        query = session.query("all")
        until(lambda: query.listed().state == "running")
        (network.folder / "go").touch()
        until(lambda: query.lastProgress["produced"] == query.lastProgress["delivered"] == 200)
    assert "The sums add up: 200 produced = 200 delivered" in network.rove("status").stdout
    assert network.told("status", "all")["adds_up"]
    scraped = network.scraped()
    ends = ("delivered_rows_total", "evicted_rows_total", "late_rows_total", "lost_rows_total", "in_flight_rows")
    assert scraped["rove_query_produced_rows_total"] == {"all trains/tram": 200}
    assert sum(scraped[f"rove_query_{end}"]["all trains/tram"] for end in ends) == 200
    assert scraped["rove_query_delivered_rows_total"]["all trains/tram"] == 200
    assert scraped["rove_node_up"] == {"gateway gateway": 1, "mast edge": 1, "tram device": 1}
    until(lambda: set(network.scraped()["rove_node_buffered_rows"].values()) == {0})
    assert scraped["rove_query_up"] == {"all": 1}
    assert network.rove("stop", "all").returncode == 0
    assert network.told("queries")[0]["state"] == "stopped"
    assert "rove_query_produced_rows_total" not in network.scraped()  # series are of queries that run


def test_a_query_is_written_stopped_and_awaited_from_python(network: Network) -> None:
    with api.Session(network.url) as session:
        until(lambda: session.ask("streams", None, dict[str, str]) == {"trains": COLUMNS})
        query = session.stream("trains").where("boarding > 100").writeStream.toTable("api")
        assert query.listed().query == "api"
        assert query.lastProgress["adds_up"]
        query.stop()
        assert query.awaitTermination(5)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("gateway", "--name", "g"), "gateway `g` needs a folder for its log; give one: --data DIR"),
        (("worker",), "a node needs a name that no other node has; give it one: rove worker --name NAME"),
        (("worker", "--name", "w", "--memory", "much"), "`much` is not a size; write it like 64MiB"),
        (("worker", "--name", "a worker"), "`a worker` cannot name a node; use letters a to z, digits"),
        (("device", "--name", "d", "--parent", "a/b"), "`a/b` cannot name a node"),
        (("device", "--name", "d", "--source", "a b=generate:rows=1"), "`a b` cannot name a stream"),
        (("device", "--name", "d", "--columns", "a~1: n int"), "`a~1` cannot name a stream"),
        (("worker", "--keys", "{tmp}"), "node.keys cannot be read: No such file or directory"),
        (("device", "--name", "d", "--columns", "a int"), "`a int` is not a stream with its columns"),
        (("device", "--name", "d", "--source", "s=generate:rows=1"), "source `s=generate:rows=1` has no columns"),
        (("coordinator", "--data", "{tmp}", "--listen", "tcp://192.0.2.1:1"), "without keys only addresses of this"),
        (("coordinator", "--settings", "none.toml"), "settings none.toml cannot be read"),
        (("coordinator", "--data", "{tmp}", "--listen", LOOPBACK, "--metrics", "9470"), "write it like 127.0.0.1:9470"),
        (
            ("coordinator", "--data", "{tmp}", "--listen", LOOPBACK, "--metrics", "0.0.0.0:9470"),
            "without keys metrics are only served to this computer",
        ),
    ],
)
def test_a_node_that_cannot_start_says_why_in_one_line(
    rove: Rove, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.setattr(process.Stopped, "on_signals", lambda self: None)  # they are pytest's here
    said = rove(*(a.format(tmp=tmp_path) for a in arguments))
    assert said.code == 1
    assert complaint in said.error
    assert len(said.error.splitlines()) == 1


def test_flags_win_over_the_environment_and_that_over_the_file(
    rove: Rove, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[WorkerSection] = []
    monkeypatch.setattr(process, "run_worker", started.append)
    file = tmp_path / "mast.toml"
    file.write_text('[worker]\nnode = "mast"\nslots = 1\nreport_ms = 7\nparents = ["roof"]\nmemory_bytes = 1\n')
    monkeypatch.setenv("ROVE__WORKER__SLOTS", "2")
    monkeypatch.setenv("ROVE__WORKER__MEMORY_BYTES", "2")
    said = rove("worker", "--settings", str(file), "--memory", "1.5 kB", "--parent", "a", "--parent", "b")
    assert said.code == 0, said.error
    (section,) = started
    assert (section.node, section.kind, section.slots, section.report_ms) == ("mast", "edge", 2, 7)
    assert (section.memory_bytes, section.parents) == (1_500, ("a", "b"))
    assert (section.listen, section.coordinator) == ("tcp://127.0.0.1:0", "tcp://127.0.0.1:4700")
