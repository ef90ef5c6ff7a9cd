"""A node logs a problem once when it begins, and once when it is over."""

from __future__ import annotations

import logging

import pytest

from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived
from rove.model.ids import NodeId
from rove.model.messages import PROTOCOL, Message, Orders, Peer, Refused
from rove.runtime.watch import Watch

SECOND = 1_000_000


class Log:
    """A device with one parent, and what its log has said since the last look."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "rove")
        self.worker = Worker(WorkerSettings(node=NodeId("tram"), kind="device", parents=(NodeId("mast"),)), 1)
        self.watch, self._caplog = Watch(0), caplog

    def at(self, second: int, message: Message | None = None, conn: str = COORDINATOR) -> list[tuple[str, str]]:
        if message is not None:
            event = Arrived(conn, message)
            self.watch.heard(event, second * SECOND)
            self.worker.handle(event, second * SECOND)
        self._caplog.clear()
        self.watch.look(self.worker, {}, second * SECOND)
        return [(record.levelname, record.getMessage()) for record in self._caplog.records]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_a_coordinator_that_is_not_there_is_missed_after_a_while(log: Log) -> None:
    log.watch.reached = False
    assert log.at(1) == [], "it may just be starting, too"
    assert log.at(4) == [("WARNING", "the coordinator: cannot be reached; trying again")]
    assert log.at(5) == []
    log.watch.reached = True
    assert ("INFO", "the coordinator: over") in log.at(6)


def test_a_parent_that_nobody_knows_is_named(log: Log) -> None:
    ((level, text),) = log.at(4)
    assert level == "WARNING"
    assert text.startswith("parent mast: the coordinator does not know a node of that name")
    met = log.at(5, Orders(PROTOCOL, (), (), peers=(Peer(node=NodeId("mast"), address="there"),)))
    assert met == [("INFO", "link to mast: down"), ("INFO", "parent mast: over")]


@pytest.mark.parametrize(
    "message",
    [Refused("identity", "another runs as `tram`"), Orders(PROTOCOL, (), (), trouble="another runs as `tram`")],
)
def test_what_the_coordinator_finds_wrong_is_told_as_long_as_it_says_so(log: Log, message: Message) -> None:
    said = [("WARNING", "the coordinator says: another runs as `tram`")]
    assert log.at(1, message) == said
    assert log.at(2, message) == []
    assert log.at(2, message, "mast") == []
    assert ("INFO", "the coordinator says: over") in log.at(20)


def test_looks_are_a_second_apart(log: Log) -> None:
    assert [log.watch.due(now) for now in (0, SECOND // 2, SECOND, SECOND + 1)] == [True, False, True, False]
