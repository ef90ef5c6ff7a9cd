"""Keys, tokens and asking: against a coordinator in a thread of this process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rove.control.asks.requests import Named, NodeLine, QueryLine
from rove.model.errors import BadName, RoveError, SetupError
from rove.runtime.network.client import Client
from rove.runtime.network.keys import (
    Keys,
    coordinator_keys,
    join,
    load_keys,
    new_keys,
    new_token,
    read_token,
    save_keys,
)
from rove.runtime.network.keys import token_text as text_of
from rove.runtime.process import Stopped, run_coordinator
from rove.runtime.settings import CoordinatorSection
from tests.e2e.cluster import free_port


class Running:
    """A coordinator that runs in a thread."""

    def __init__(self, folder: Path, keyed: bool) -> None:
        self.url = f"tcp://127.0.0.1:{free_port()}"
        self._section = CoordinatorSection(
            listen=self.url, folder=str(folder / "catalog"), keys=str(folder) if keyed else ""
        )
        self.operator = coordinator_keys(folder, self.url)[1] if keyed else None
        self.start()

    def start(self) -> None:
        self._stopped = Stopped()
        self._thread = threading.Thread(target=run_coordinator, args=(self._section, self._stopped))
        self._thread.start()

    def stop(self) -> None:
        self._stopped.ask()
        self._thread.join()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path, keyed=False)
    yield found
    found.stop()


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path, keyed=True)
    yield found
    found.stop()


def test_an_ask_is_answered(plain: Running) -> None:
    with Client(plain.url, None) as client:
        assert client.ask("queries", None, list[QueryLine]) == []


def test_trouble_is_an_error_in_the_coordinators_words(plain: Running) -> None:
    with Client(plain.url, None) as client, pytest.raises(RoveError, match="no query `x`; there are: none"):
        client.ask("stop", Named(name="x"), Named)


def test_nobody_there_is_said_with_the_url_and_what_to_do() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    with Client(url, None, timeout_s=0.5) as client, pytest.raises(SetupError, match=f"{url} .*rove coordinator"):
        client.ask("queries", None, list[QueryLine])


def test_an_ask_waits_for_a_coordinator_that_restarts(plain: Running) -> None:
    with Client(plain.url, None) as client:
        client.ask("queries", None, list[QueryLine])
        plain.stop()
        threading.Timer(0.5, plain.start).start()
        assert client.ask("queries", None, list[QueryLine]) == []


def test_a_token_lets_one_node_join_once(keyed: Running, tmp_path: Path) -> None:
    assert keyed.operator is not None
    token, invite = new_token(keyed.operator, "edge1", "edge")
    with Client(keyed.url, keyed.operator) as client:
        client.ask("invite", invite, Named)
        keys = join(text_of(token), tmp_path / "edge1")
        assert (keys.node, keys.url, keys.coordinator) == ("edge1", keyed.url, keyed.operator.coordinator)
        assert load_keys(tmp_path / "edge1" / "node.keys") == keys
        assert [n.node for n in client.ask("topology", None, list[NodeLine])] == ["edge1"]
    with pytest.raises(SetupError, match=r"does not accept the key in use. A token works once.*rove keys invite"):
        join(text_of(token), tmp_path / "another", timeout_s=1)


def test_a_key_nobody_invited_gets_no_answer(keyed: Running) -> None:
    assert keyed.operator is not None
    stranger = new_keys(coordinator=keyed.operator.coordinator)
    with Client(keyed.url, stranger, timeout_s=1) as client, pytest.raises(SetupError, match="does not accept the key"):
        client.ask("queries", None, list[QueryLine])


def test_a_nodes_key_gives_no_commands(keyed: Running, tmp_path: Path) -> None:
    assert keyed.operator is not None
    token, invite = new_token(keyed.operator, "edge1", "edge")
    with Client(keyed.url, keyed.operator) as client:
        client.ask("invite", invite, Named)
    keys = join(text_of(token), tmp_path / "edge1")
    with Client(keyed.url, keys) as client, pytest.raises(RoveError, match="may not give commands"):
        client.ask("stop", Named(name="q"), Named)


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "my.keys"
    save_keys(path, new_keys(node="edge1"))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(SetupError, match=f"chmod 600 {path}"):
        load_keys(path)
    with pytest.raises(SetupError, match="holds keys already"):
        save_keys(path, new_keys())


def test_halves_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.keys"
    save_keys(path, Keys(public=new_keys().public, secret=new_keys().secret))
    with pytest.raises(SetupError, match="do not belong together"):
        load_keys(path)


def test_tokens_and_keys_are_of_nodes_that_can_be(tmp_path: Path) -> None:
    with pytest.raises(BadName, match="`a b` cannot name a node"):
        new_token(new_keys(), "a b", "edge")
    token, _ = new_token(new_keys(), "a", "edge")
    with pytest.raises(BadName, match="`a/b` cannot name a node"):
        read_token(text_of(replace(token, node="a/b")))
    save_keys(tmp_path / "keys", new_keys(node="a~1"))
    with pytest.raises(BadName, match="`a~1` cannot name a node"):
        load_keys(tmp_path / "keys")


def test_a_secret_is_not_in_what_is_printed() -> None:
    keys = new_keys(node="edge1")
    assert keys.secret not in repr(keys)
    assert keys.secret not in str(keys)


@pytest.mark.parametrize("text", ["", "nonsense", "!!!", "gqNmb2_DomJh"])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(SetupError, match="not a token"):
        read_token(text)


def test_a_token_is_one_word_and_expires() -> None:
    token, _ = new_token(new_keys(coordinator=new_keys().public, url="tcp://h:1"), "edge1", "edge")
    assert read_token(text_of(token)) == token
    old, _ = new_token(new_keys(), "edge1", "edge", hours=-1)
    time.sleep(0.01)
    with pytest.raises(SetupError, match="has expired"):
        read_token(text_of(old))


def test_a_client_that_nobody_closes_keeps_nobody_waiting(processes: None) -> None:
    """It is part of a cycle, as after an exception, and collected with its sockets in any order."""
    script = (
        "import gc\n"
        "from rove.runtime.network.client import Client\n"
        "client = Client('tcp://127.0.0.1:9', None, 0.1)\n"
        "client.itself = client\n"
        "try: client.ask('queries', None, list)\n"
        "except Exception as error: print(error)\n"
        "del client; gc.collect(); print('done')"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert said.stdout.endswith("done\n"), said.stderr
