"""Keys: a coordinator that uses them, and a node that is invited, joins, and is revoked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from socket import socket
from threading import Thread

import pytest

from rove.runtime.process import Stopped, run_coordinator
from rove.runtime.settings import CoordinatorSection
from tests.cli.conftest import Rove

URL = "tcp://127.0.0.1:4700"


@pytest.fixture
def url() -> str:
    """An address that nobody listens at."""
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture
def keys(rove: Rove, url: str, tmp_path: Path) -> Iterator[str]:
    """The keys of a coordinator that runs in a thread beside the test."""
    folder = tmp_path / "keys"
    said = rove("keys", "new", "--keys", str(folder), "--coordinator", url)
    assert said.code == 0, said.error
    stopped = Stopped()
    section = CoordinatorSection(listen=url, folder=str(tmp_path / "coordinator"), keys=str(folder))
    thread = Thread(target=run_coordinator, args=(section, stopped))
    thread.start()
    assert rove("topology", "--keys", str(folder)).out.endswith("No nodes yet. Type: rove gateway --data DIR\n")
    yield str(folder)
    stopped.ask()
    thread.join(10)


def test_a_token_makes_a_machine_a_node_until_it_is_shut_out(rove: Rove, keys: str, tmp_path: Path) -> None:
    said = rove("keys", "invite", "tram", "--keys", keys, "--json")
    assert said.code == 0, said.error
    token, mine = json.loads(said.out)["token"], str(tmp_path / "tram")
    assert rove("join", "--token", token, "--keys", mine).out == (
        f"this machine is now node `tram`; start it with: rove device --keys {mine}\n"
    )
    assert rove("keys", "revoke", "tram", "--keys", keys).code == 0
    nodes = json.loads(rove("topology", "--keys", keys, "--json").out)
    assert [(n["node"], n["state"]) for n in nodes] == [("tram", "revoked")]


def test_a_token_for_rove_cloud_says_how_to_start_it_and_can_be_revoked(rove: Rove, keys: str, tmp_path: Path) -> None:
    said = rove("keys", "invite", "spark", "--kind", "cloud", "--keys", keys, "--json")
    assert said.code == 0, said.error
    token, mine = json.loads(said.out)["token"], str(tmp_path / "spark")
    assert rove("join", "--token", token, "--keys", mine).out == (
        f"this machine may run Spark as `spark`; start it with: rove cloud --keys {mine} --logs DIR\n"
    )
    assert json.loads(rove("topology", "--keys", keys, "--json").out) == []
    assert rove("keys", "revoke", "spark", "--keys", keys).code == 0
    assert "no node `spark`" in rove("keys", "revoke", "spark", "--keys", keys).error


def test_rove_cloud_without_a_key_is_told_how_to_get_one(rove: Rove, tmp_path: Path) -> None:
    said = rove("cloud", "--keys", str(tmp_path), "--logs", str(tmp_path))
    assert said.code == 1
    assert "node.keys cannot be read: No such file or directory; get one with a token: rove join" in said.error


def test_keys_of_one_coordinator_are_not_taken_for_anothers(rove: Rove, tmp_path: Path) -> None:
    assert rove("keys", "new", "--keys", str(tmp_path), "--coordinator", URL).code == 0
    said = rove("keys", "new", "--keys", str(tmp_path), "--coordinator", "tcp://127.0.0.1:1")
    assert said.code == 1
    assert f"holds the keys of a coordinator at {URL}" in said.error
