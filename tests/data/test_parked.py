"""Frames of a query that a node does not know: acked when the query has ended, kept by their sender when it goes on,
given up by a sender that has left the query too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rove.data.events import Produced
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import PROTOCOL, Ack, Data, Hello, Orders, Peer, Welcome
from tests.data.test_worker import COLUMNS, fragment, orders, rows
from tests.lines import lines


@pytest.mark.parametrize(("orders", "acks"), [("stop", 2), ("leave", 0)])
def test_parked_frames_are_acked_if_nobody_needs_them_any_more(orders: str, acks: int) -> None:
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge"), 1)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    for number in (1, 2):
        header = Header(query="q", origin=Origin("s", "device"), seq=number, through=number)
        worker.handle(Arrived(b"d", Data(number, header)), 2)
    worker.handle(Tick(), 3)
    assert worker.report().unknown == ("q",)
    told = (QueryId("q"),)
    said = Orders(PROTOCOL, (), told) if orders == "stop" else Orders(PROTOCOL, (), (), leave=told)
    worker.handle(Arrived("coordinator", said), 4)
    acked = [each for each in lines(worker.handle(Tick(), 5)) if each.startswith("to d: Ack")]
    assert acked == ([f"to d: Ack {acks}"] if acks else [])
    assert worker.report().unknown == (() if acks else ("q",))
    worker.validate()


def test_frames_of_a_query_that_was_left_are_dropped_when_their_sender_begins_anew() -> None:
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge"), 1)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived(b"d", Data(1, Header(query="q", origin=Origin("s", "device"), seq=0, through=0))), 2)
    leave = Arrived("coordinator", Orders(PROTOCOL, (), (), leave=(QueryId("q"),)))
    worker.handle(leave, 3)
    assert worker.report().unknown == ("q",)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 2)), 4)
    worker.handle(leave, 5)
    assert worker.report().unknown == ()
    worker.validate()


WEST = NodeId("west")


def relay() -> Worker:
    """An edge with a source of its own that has passed on a batch of each of two queries, and a batch of its own."""
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=(WEST,)), 1)
    own = Origin("s", "edge")
    worker.add_source("s", own, COLUMNS)
    parts = [replace(fragment(WEST, (own,)), waits={}, query=QueryId(query)) for query in ("q", "r")]
    worker.handle(orders(*parts, peers=(Peer(node=WEST, address="there"),)), 0)
    worker.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 10**6)), 1)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 2)
    worker.handle(Tick(), 3)
    said = []
    for number, query in enumerate(("q", "r"), 1):
        header = Header(query=query, origin=Origin("s", "device"), seq=5, through=5)
        said += worker.handle(Arrived(b"d", Data(number, header)), 4)
    said += worker.handle(Produced(own, rows(), 0), 5)
    assert [each for each in lines(said) if "Data" in each] == [
        "to west: Data 1: q s/device 5, 0 rows",
        "to west: Data 2: r s/device 5, 0 rows",
        "to west: Data 3: q s/edge 0, 2 rows",
        "to west: Data 4: r s/edge 0, 2 rows",
    ]
    return worker


def test_a_node_that_leaves_a_query_gives_up_frames_of_others_that_it_has_sent() -> None:
    """The next node may have left the query too. It would ack neither these frames nor those of other queries."""
    worker = relay()
    leave = Arrived("coordinator", Orders(PROTOCOL, (), (), leave=(QueryId("q"),)))
    worker.handle(leave, 6)
    said = worker.handle(Tick(), 7)
    assert lines(said) == ["to d: Ack 1", "to west: Hello, start 1'", "to coordinator: News, runs q no longer"]
    (hello,) = [each for each in said if isinstance(each, Send) and each.conn == "west"]
    assert isinstance(hello.message, Hello)
    assert hello.message.start != 1, "the numbers of the frames are void"
    said = worker.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, hello.message.start, 0, 10**6)), 8)
    assert [each for each in lines(said) if "Data" in each] == [
        "to west: Data 1: r s/device 5, 0 rows",
        "to west: Data 2: r s/edge 0, 2 rows",
        "to west: Data 3: q s/edge 0, 2 rows",
    ]
    worker.handle(leave, 9)
    assert worker.links()[WEST].up, "there is nothing more to give up"
    worker.handle(Arrived("west", Ack(3, 10**6)), 10)
    assert len(worker.store) == 0
    assert "to d: Ack 2" in lines(worker.handle(Tick(), 11)), "the sender may forget what it sends another way"


def test_frames_of_a_stopped_query_keep_their_session() -> None:
    worker = relay()
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), 6)
    assert worker.links()[WEST].up
    assert len(worker.store) == 4
