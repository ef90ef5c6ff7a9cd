"""Processes: how they start, what they say, how they stop."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.control.asks.requests import NodeLine
from rove.model.errors import SetupError
from rove.runtime.network.client import Client
from rove.runtime.process import Stopped, main, run_coordinator, run_worker
from rove.runtime.settings import CoordinatorSection, WorkerSection
from tests.e2e.cluster import eventually, free_port


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Where a coordinator is."""
    found, stopped = f"tcp://127.0.0.1:{free_port()}", Stopped()
    section = CoordinatorSection(listen=found, folder=str(tmp_path / "catalog"))
    thread = threading.Thread(target=run_coordinator, args=(section, stopped))
    thread.start()
    yield found
    stopped.ask()
    thread.join()


def states(client: Client) -> dict[str, str]:
    return {line.node: line.state for line in client.ask("topology", None, list[NodeLine])}


@pytest.mark.parametrize("leave", [True, False])
def test_a_node_that_leaves_says_goodbye_and_another_is_expected_back(url: str, leave: bool) -> None:
    stopped = Stopped()
    section = WorkerSection(node="edge1", kind="edge", coordinator=url, listen="tcp://127.0.0.1:0", leave=leave)
    thread = threading.Thread(target=run_worker, args=(section, stopped))
    thread.start()
    with Client(url, None) as client:
        assert eventually(lambda: states(client) == {"edge1": "up"}, 10)
        stopped.ask()
        thread.join()
        assert eventually(lambda: ("edge1" not in states(client)) == leave, 5)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"kind": "edge", "coordinator": "tcp://127.0.0.1:1"}, "must listen"),
        ({"kind": "device"}, "knows no coordinator"),
        ({"kind": "device", "coordinator": "tcp://10.0.0.1:1"}, "join with a token"),
        ({"kind": "device", "coordinator": "tcp://127.0.0.1:1", "sources": ("s=generate:",)}, "has no columns"),
        (
            {
                "kind": "device",
                "coordinator": "tcp://127.0.0.1:1",
                "sources": ("s=file:/no/such.csv",),
                "columns": {"s": "n int"},
            },
            "there is no file /no/such.csv",
        ),
        ({"kind": "device", "coordinator": "nowhere"}, "only addresses of this computer"),
    ],
)
def test_a_node_that_lacks_something_does_not_start_and_says_what(settings: dict[str, object], match: str) -> None:
    with pytest.raises(SetupError, match=match):
        run_worker(WorkerSection(node="n", **settings), Stopped())  # type: ignore[arg-type]


def test_keys_need_an_address_that_stays(tmp_path: Path) -> None:
    section = CoordinatorSection(listen="tcp://127.0.0.1:0", folder=str(tmp_path), keys=str(tmp_path))
    with pytest.raises(SetupError, match="set advertise"):
        run_coordinator(section, Stopped())


@pytest.mark.parametrize("text", ["", '[worker]\nnode = "a"\nkind = "device"\n[coordinator]\n', "[worker]\nx = 1"])
def test_settings_that_start_nothing_are_an_exit_code_and_a_sentence(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rove.toml"
    path.write_text(text)
    assert main(str(path)) == 1
    assert str(path) in capsys.readouterr().err


def test_a_device_loads_nothing_of_the_coordinator() -> None:
    code = """
import sys, rove.runtime.process
print(sorted({"rustworkx", "highspy", "fastapi", "typer", "pyspark"} & set(sys.modules)))
print([m for m in sys.modules if m.startswith("rove.control")])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["[]", "[]"]
