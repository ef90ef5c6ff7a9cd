"""Who is no longer named is disconnected, and whoever may have been reached by an earlier start is not called lost."""

from __future__ import annotations

from msgspec.structs import replace

from rove.data.events import Produced
from rove.data.link.link import SILENT_US, Link
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.events import Allow, Arrived, Drop, Tick
from rove.model.ids import NodeId, Origin
from rove.model.messages import PROTOCOL, Hello, Peer, Welcome
from tests.data.link.test_routes import EAST, NORTH, WEST, device, sent
from tests.data.test_worker import ORIGIN, data, edge, encode_rows, fragment, orders, rows
from tests.lines import lines


def test_a_peer_that_is_no_longer_named_is_disconnected_and_says_hello_before_anything_else() -> None:
    worker = edge()
    peer = Peer(node=NodeId("device"))
    worker.handle(orders(fragment(), peers=(peer,)), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    assert worker.handle(orders(peers=()), 2) == [Allow(()), Drop(b"c")]
    assert lines(worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 3)) == ["to c: Refused, unexpected"]
    worker.validate()


def test_the_first_route_in_the_list_is_taken_of_several_that_are_there() -> None:
    worker = device(copies=False)
    for parent in (NORTH, EAST):
        worker.handle(Arrived(parent, Welcome(PROTOCOL, parent, 7, 1, 0, 10**6)), 10)
    worker.handle(Tick(), SILENT_US // 2)
    assert lines(worker.handle(Produced(ORIGIN, rows(), 0), SILENT_US // 2 + 1)) == sent(EAST, 0)


def test_a_batch_is_copied_once_however_often_parents_come_back() -> None:
    worker = device(copies=True)
    worker.handle(Produced(ORIGIN, rows(), 0), 0)
    now = 10
    for parent in (WEST, EAST, NORTH):
        worker.handle(Arrived(parent, Welcome(PROTOCOL, parent, 7, 1, 0, 10**6)), now)
        now += SILENT_US // 5
        worker.handle(Tick(), now)
    copies = [entry for entry in worker.store if entry.original is not None]
    assert len(copies) == 1
    worker.validate()


def test_what_an_earlier_start_may_have_sent_is_not_called_lost_when_its_query_ends() -> None:
    store = Store(10**6)
    link = Link(NodeId("device"), 1, NodeId("edge"), store)
    header = Header(query="q", origin=Origin("s", "device"), seq=0, through=0, rows=1, born=1)
    for seq, alone in ((0, True), (1, False)):
        link.offer(store.put(replace(header, seq=seq, through=seq), b"rows", alone=alone), 0)
    assert [lost.seq for lost in link.forget("q")] == [1]
    assert len(store) == 0
