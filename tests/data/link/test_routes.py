"""A device that knows several routes uses them without asking anybody."""

from __future__ import annotations

from msgspec.structs import replace

from rove.control.members.accounts import account_lines
from rove.data.events import Evicted, Produced
from rove.data.link.link import SILENT_US
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import PROTOCOL, Ack, Orders, Peer, Tally, Welcome
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, orders, rows
from tests.lines import lines

WEST, EAST, NORTH = NodeId("west"), NodeId("east"), NodeId("north")
PARENTS = (WEST, EAST, NORTH)


def device(copies: bool, **settings: object) -> Worker:
    """It knows three routes, and is on none of them."""
    found = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=PARENTS, **settings), 1)  # type: ignore[arg-type]
    found.add_source("s", ORIGIN, COLUMNS)
    part = replace(fragment(WEST, (ORIGIN,)), others=(EAST, NORTH), copies=copies)
    found.handle(orders(part, peers=tuple(Peer(node=p, address="there") for p in PARENTS)), 0)
    found.handle(Tick(), 1)
    return found


def meets(worker: Worker, parent: NodeId, now: int) -> list[str]:
    """A parent is there, with room for everything; what is said to it, and when the device looks around."""
    said = worker.handle(Arrived(parent, Welcome(PROTOCOL, parent, 7, 1, 0, 10**6)), now)
    return lines(said) + lines(worker.handle(Tick(), now + SILENT_US // 2))


def sent(parent: NodeId, *seqs: int) -> list[str]:
    """These batches as they go to a parent, the first of all that go there."""
    return [f"to {parent}: Data {number}: q {ORIGIN} {seq}, 2 rows" for number, seq in enumerate(seqs, start=1)]


def test_what_was_kept_goes_over_the_first_route_that_is_there() -> None:
    worker = device(copies=False)
    for n in range(3):
        worker.handle(Produced(ORIGIN, rows(), n), n)
    assert meets(worker, EAST, 10) == [
        "to east: Ack 0",
        "to east: Ack 0",  # with more credit
        "to west: Hello, start 1",
        "to east: Beat, sent 0, acked 0",
        "to north: Hello, start 1",
        *sent(EAST, 0, 1, 2),
        "to coordinator: News, reaches east",
    ]
    assert worker.handle(Arrived("east", Ack(3, 10**6)), 20) == []
    assert len(worker.store) == 0
    assert lines(worker.handle(Produced(ORIGIN, rows(), 3), 30)) == [f"to east: Data 4: q {ORIGIN} 3, 2 rows"]


def test_a_route_that_is_not_heard_any_more_is_left_for_another() -> None:
    worker = device(copies=False)
    meets(worker, WEST, 10)
    assert lines(worker.handle(Produced(ORIGIN, rows(), 0), 20)) == sent(WEST, 0)
    there = worker.handle(Arrived("east", Welcome(PROTOCOL, EAST, 7, 1, 0, 10**6)), 10 + SILENT_US)
    assert lines(there) == ["to east: Ack 0"]
    assert lines(worker.handle(Tick(), 20 + SILENT_US + SILENT_US // 2)) == [
        "to east: Ack 0",
        "to west: Hello, start 1, has 0 frames of start 7",
        "to east: Beat, sent 0, acked 0",
        "to north: Hello, start 1",
        "cut from west",
        *sent(EAST, 0),
        "to coordinator: News, reaches east",
    ]
    (tally,) = worker.report().tallies
    assert (tally.produced, tally.buffered, tally.resent) == (2, 2, 2)


def test_what_was_kept_goes_over_all_routes_and_counts_once() -> None:
    worker = device(copies=True)
    for n in range(3):
        worker.handle(Produced(ORIGIN, rows(), n), n)
    assert meets(worker, WEST, 10) == [
        *sent(WEST, 0, 1, 2),
        "to west: Ack 0",
        "to west: Ack 0",
        "to west: Beat, sent 3, acked 0",
        "to east: Hello, start 1",
        "to north: Hello, start 1",
        "to coordinator: News, reaches west",
    ]
    assert meets(worker, EAST, SILENT_US // 5) == [
        "to east: Ack 0",
        "to east: Ack 0",
        "to west: Beat, sent 3, acked 0",
        "to east: Beat, sent 0, acked 0",
        "to north: Hello, start 1",
        *sent(EAST, 0, 1, 2),
        "to coordinator: News, reaches west, east",
    ]
    (tally,) = worker.report().tallies
    assert (tally.produced, tally.buffered) == (6, 6)
    worker.handle(Arrived("west", Ack(2, 10**6)), 30)
    (tally,) = worker.report().tallies
    assert tally.buffered == 2
    worker.handle(Arrived("east", Ack(3, 10**6)), 40)
    worker.handle(Arrived("west", Ack(3, 10**6)), 50)
    assert (len(worker.store), worker.store.bytes) == (0, 0)


def test_copies_that_were_not_sent_go_with_what_they_are_copies_of() -> None:
    worker = device(copies=True)
    for n in range(3):
        worker.handle(Produced(ORIGIN, rows(), n), n)
    worker.handle(Arrived("east", Welcome(PROTOCOL, EAST, 7, 1, 0, 1)), 10)  # room for one frame
    meets(worker, WEST, 10)
    assert len(worker.store) == 6
    worker.handle(Arrived("west", Ack(3, 10**6)), 20)
    assert len(worker.store) == 1  # the one that was sent
    assert worker.report().tallies[0].buffered == 0
    assert worker.handle(Arrived("east", Ack(1, 10**6)), 30) == []
    assert (len(worker.store), worker.store.bytes) == (0, 0)


def test_a_device_that_is_told_again_stays_where_somebody_hears_it() -> None:
    worker = device(copies=False)
    meets(worker, EAST, 10)
    part = replace(fragment(WEST, (ORIGIN,)), others=(EAST, NORTH), version=Version(2))
    assert worker.handle(orders(part, peers=tuple(Peer(node=p, address="there") for p in PARENTS)), 20) == []
    assert lines(worker.handle(Produced(ORIGIN, rows(), 0), 30)) == sent(EAST, 0)


def test_what_is_on_its_way_as_a_copy_is_not_touched() -> None:
    worker = device(copies=True, memory_bytes=4_000, evict="fifo", compress="off")
    for n in range(5):
        worker.handle(Produced(ORIGIN, rows(), n), n)
    worker.handle(Arrived("east", Welcome(PROTOCOL, EAST, 7, 1, 0, 10**6)), 10)
    worker.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 1)), 10)  # room for one frame
    worker.handle(Tick(), SILENT_US // 2)
    copied = [e for e in worker.store if e.copies]
    assert copied
    assert not any(e.may_go or e.whole or e.folds for e in worker.store if e.copies or e.original)
    gone: list[Evicted] = []
    for n in range(5, 60):
        for command in worker.handle(Produced(ORIGIN, rows(), n), 10**7):
            assert isinstance(command, Evicted)
            gone.append(command)
    assert gone
    assert {c.seq for c in gone}.isdisjoint(e.header.seq for e in copied)


def test_what_a_stopped_query_kept_is_lost_once_however_many_copies_there_are() -> None:
    worker = device(copies=True)
    for n in range(3):
        worker.handle(Produced(ORIGIN, rows(), n), n)
    for parent in (EAST, WEST):
        worker.handle(Arrived(parent, Welcome(PROTOCOL, parent, 7, 1, 0, 1)), 10)
    worker.handle(Tick(), SILENT_US // 2)
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), SILENT_US)
    (tally,) = worker.report().tallies
    assert (tally.produced, tally.lost, tally.buffered) == (6, 0, 2)  # one batch is on its way
    for arrived in (0, 2):
        there = Tally(query=QueryId("q"), origin=ORIGIN, delivered=arrived)
        (line,) = account_lines((tally, there), 0, {ORIGIN}, stopped={"q"})
        assert (line.produced, line.delivered, line.lost) == (6, arrived, 6 - arrived)
