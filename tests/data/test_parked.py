"""Frames of a query that a node does not know: acked when the query has ended, kept by their sender when it goes on."""

from __future__ import annotations

import pytest

from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import PROTOCOL, Data, Hello, Orders
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
