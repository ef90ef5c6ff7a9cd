"""A user's own eviction policy, from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.data.events import Evicted, Note, Produced
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.errors import SetupError
from rove.model.events import Tick
from rove.model.ids import NodeId
from rove.model.messages import Peer
from rove.runtime.loading import policy_at
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, orders, rows
from tests.lines import line, lines

NEWEST = """
class Newest:
    def victim(self, candidates, query):
        waiting = list(candidates)
        return waiting[-2] if len(waiting) > 1 else None
"""
BAD = {
    "fails": "class Bad:\n    def victim(self, candidates, query): raise ValueError('no')\n",
    "points at what is gone": (
        "class Bad:\n"
        "    first = None\n"
        "    def victim(self, candidates, query):\n"
        "        self.first = self.first or next(iter(candidates))\n"
        "        return self.first\n"
    ),
}


def evicted(text: str) -> tuple[list[int], list[Note]]:
    """The batches that go on a device with room for a few, and what is said about it."""
    settings = WorkerSettings(
        node=NodeId("device"), kind="device", parents=(NodeId("west"),), memory_bytes=4_000, evict=text, compress="off"
    )
    worker = Worker(settings, 1, policy=policy_at(text))
    worker.add_source("s", ORIGIN, COLUMNS)
    peers = (Peer(node=NodeId("west"), address="there"),)
    worker.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=peers), 0)
    gone, notes, said = [], [], set()
    for n in range(30):
        for command in worker.handle(Produced(ORIGIN, rows(), n), n) + worker.handle(Tick(), n):
            match command:
                case Evicted(seq=seq):
                    gone.append(seq)
                case Note():
                    notes.append(command)
                case other:
                    said.add(line(other).split(",")[0])
        assert worker.store.bytes <= 4_000
    assert said == {"to west: Hello", "to coordinator: Report"}, "nothing else is asked for"
    return gone, notes


def test_a_policy_of_the_users_own_decides(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NEWEST)
    gone, notes = evicted(f"{tmp_path}/mine.py:Newest")
    assert not notes
    assert gone
    assert 0 not in gone, "the oldest stays"
    assert policy_at("fifo") is None


@pytest.mark.parametrize("what", BAD)
def test_one_that_is_wrong_is_done_without(tmp_path: Path, what: str) -> None:
    (tmp_path / "bad.py").write_text(BAD[what])
    gone, notes = evicted(f"{tmp_path}/bad.py:Bad")
    assert gone == list(range(len(gone)))
    assert gone, "the oldest went"
    raised = [note.error for note in notes]
    assert [str(error) for error in raised] == (["no"] if what == "fails" else []), "it is told once"


def test_one_that_gives_nothing_up_lets_sources_wait(tmp_path: Path) -> None:
    (tmp_path / "never.py").write_text("class Never:\n    def victim(self, candidates, query): return None\n")
    text = f"{tmp_path}/never.py:Never"
    settings = WorkerSettings(
        node=NodeId("device"), kind="device", parents=(NodeId("west"),), memory_bytes=4_000, evict=text, compress="off"
    )
    worker = Worker(settings, 1, policy=policy_at(text))
    worker.add_source("s", ORIGIN, COLUMNS)
    worker.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=(Peer(node=NodeId("west"), address="x"),)), 0)
    said = [c for n in range(30) for c in worker.handle(Produced(ORIGIN, rows(), n), n)]
    assert lines(said) == ["s/device waits"]


def test_a_file_alone_is_no_policy() -> None:
    with pytest.raises(SetupError, match=r"name one: mine.py:Name"):
        policy_at("mine.py")


@pytest.mark.parametrize(
    "text", ["no_such_module:Name", "rove.data.store.eviction:Nothing", "rove.data.store.eviction:POLICIES"]
)
def test_one_that_is_not_there_says_so(text: str) -> None:
    with pytest.raises(SetupError, match=r"cannot be read|has no policy"):
        policy_at(text)
