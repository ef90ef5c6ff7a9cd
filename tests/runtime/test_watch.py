"""A node logs a problem once when it begins, and once when it is over."""

from __future__ import annotations

import logging
from random import Random

import pytest
from msgspec.structs import replace

from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived, Tick
from rove.model.ids import NodeId, QueryId, Stage, Version
from rove.model.messages import (
    PROTOCOL,
    Fragment,
    Hello,
    Message,
    Orders,
    Peer,
    Refused,
    Sink,
    Welcome,
    plan_digest,
)
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.operators import Source
from rove.plan.stages import Stages
from rove.runtime.watch import Watch
from tests.data.disk_driver import done_at_once
from tests.data.ends.test_output import FullShelf
from tests.data.test_worker import data, encode_rows, fragment, orders, rows

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
    assert log.at(1) == [], "it may just be starting, too"
    assert log.at(4) == [
        ("WARNING", "the coordinator: cannot be reached; trying again. Start it, or correct --coordinator")
    ]
    assert log.at(5) == []
    log.watch.reached = True
    assert ("INFO", "the coordinator: over") in log.at(6)


def test_a_node_that_was_reached_before_may_be_away_for_a_while(log: Log) -> None:
    log.watch.reached = True
    log.at(1, Orders(PROTOCOL, (), (), peers=(Peer(node=NodeId("mast"), address="there"),)))
    assert log.at(10, Welcome(PROTOCOL, NodeId("mast"), 7, 1, 0, 10**6), "mast") == [("INFO", "link to mast: up")]
    log.watch.reached = False
    log.worker.handle(Tick(), 20 * SECOND)
    assert log.at(39) == [("INFO", "link to mast: down")], "a tunnel is no problem"
    assert log.at(40) == [
        ("WARNING", "the coordinator: cannot be reached; trying again. Start it, or correct --coordinator"),
        ("WARNING", "parents: cannot be reached: mast. Rows are kept here; start one of them, or mend the way"),
    ]


def test_a_parent_that_nobody_knows_is_named(log: Log) -> None:
    log.watch.reached = True
    ((level, text),) = log.at(4)
    assert level == "WARNING"
    assert text.startswith("parent mast: the coordinator does not know a node of that name")
    met = log.at(5, Orders(PROTOCOL, (), (), peers=(Peer(node=NodeId("mast"), address="there"),)))
    assert met == [
        ("WARNING", "parents: cannot be reached: mast. Rows are kept here; start one of them, or mend the way"),
        ("INFO", "link to mast: down"),
        ("INFO", "parent mast: over"),
    ]
    assert log.at(6) == []


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


def test_the_trouble_of_a_query_is_logged_once_and_once_when_it_is_over(log: Log) -> None:
    plan = codec.encode(Stages.of({"out": Source("s", parse_schema("a int"))}))
    part = Fragment(
        query=QueryId("q"),
        version=Version(1),
        plan=plan_digest(plan),
        runs=(),
        makes={},
        waits={},
        next=None,
        sinks={Stage(0): Sink(kind="log")},
    )
    said = "query q: query `q` ends here, on a node without a disk; give it one"
    assert log.at(1, Orders(PROTOCOL, (part,), (), plans={part.plan: plan})) == [("WARNING", said)]
    assert log.at(1) == []
    over = log.at(2, Orders(PROTOCOL, (), (QueryId("q"),)))
    assert over == [("INFO", said.replace("query q: ", "query q: over: ", 1))]


def test_a_full_disk_is_said_of_the_query_and_not_of_its_folder_as_well(caplog: pytest.LogCaptureFixture) -> None:
    shelf = FullShelf(Random(4))
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 1, durable=True)
    part = replace(fragment(), sinks={Stage(0): Sink(kind="log")})
    done_at_once(worker, shelf, worker.handle(orders(part), 0), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    shelf.full = True
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 2)
    done_at_once(worker, shelf, worker.handle(Tick(), 3), 3)
    watch = Watch(0)
    for now in range(3):
        watch.look(worker, {}, now)
    (said,) = [record.getMessage() for record in caplog.records if "No space left" in record.getMessage()]
    assert said.startswith("query q: log/q/out: No space left on device; what it should take is not acknowledged")


def test_frames_that_are_refused_for_their_name_are_logged_once_however_many_come(log: Log) -> None:
    said = []
    for second in range(2, 30):
        log.worker.refused["identity"] = 10 * second
        said += [text for level, text in log.at(second) if level == "WARNING" and "identity" in text]
    (text,) = said
    assert text.startswith("refused `identity`: peers send what they may not send")
