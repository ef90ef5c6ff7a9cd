"""A user's hooks are called for each event, and their errors and delays do no harm."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rove.data.events import Cut, Evicted, Met
from rove.model.errors import SetupError
from rove.model.ids import NodeId, QueryId
from rove.runtime import hooks
from rove.runtime.hooks import Hooks

ALL = """
from tests.runtime.test_hooks import told

def on_disconnect(parent): told(("lost", parent))
def on_reconnect(parent, away_s): told(("found", parent, away_s))
def on_evict(query, origin, first, last, rows): told(("gone", query, origin, first, last, rows))
"""
SLOW = """
from tests.runtime.test_hooks import told, go_on

def on_disconnect(parent):
    go_on.wait()
    told(parent)
    if parent == "bad":
        raise ValueError("no")
"""
heard: list[object] = []
grew = threading.Condition()
go_on = threading.Event()


def told(what: object) -> None:
    with grew:
        heard.append(what)
        grew.notify()


def wait_for(count: int) -> list[object]:
    with grew:
        assert grew.wait_for(lambda: len(heard) >= count, 10)
        return list(heard)


@pytest.fixture(autouse=True)
def silence() -> None:
    heard.clear()
    go_on.clear()


def file(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_functions_hear_what_happens_in_its_order(tmp_path: Path) -> None:
    functions = Hooks(file(tmp_path, ALL))
    functions.tell(Cut(NodeId("west")))
    functions.tell(Evicted(QueryId("q"), "s/d", 3, 5, 20))
    functions.tell(Met(NodeId("west"), 1_500_000))
    assert wait_for(3) == [("lost", "west"), ("gone", "q", "s/d", 3, 5, 20), ("found", "west", 1.5)]


def test_a_slow_one_keeps_nobody_waiting_and_an_error_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "WAITING_MAX", 2)
    functions = Hooks(file(tmp_path, SLOW))
    for name in ("bad", "b", "c", "d", "e"):
        functions.tell(Cut(NodeId(name)))
    functions.tell(Met(NodeId("b"), 1))  # for which it has no function
    assert functions.missed in (2, 3), "one is being told, two wait"
    go_on.set()
    assert wait_for(5 - functions.missed)[:2] == ["bad", "b"]


@pytest.mark.parametrize("text", ["def on_dinner(): ...", "on_evict = 5", "1 +"])
def test_a_file_without_functions_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SetupError, match=r"mine\.py"):
        Hooks(file(tmp_path, text))


def test_a_module_that_is_not_there_is_refused() -> None:
    with pytest.raises(SetupError, match=r"no_such_module.*give a module or a file\.py"):
        Hooks("no_such_module")
