"""A sender is told that its batch, or a duplicate of it, is safe when it is on the disk, and not before."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from rove.data.ends.appending import Appending
from rove.data.events import DiskDone
from rove.data.link.receipts import FrameReceipt
from rove.data.log.segments.partition import Partition
from rove.data.rows import encode_rows
from rove.model.batch import Header
from rove.model.events import COORDINATOR, Arrived
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import PROTOCOL, Hello, Orders
from rove.sim.shelf import SimShelf
from tests.data.fragment.test_opening import LOG, Gateway
from tests.data.test_worker import SCHEMA, data, orders, rows

ROWS = encode_rows(rows())


class Receipt:
    """Counts as the receipt of a frame does; its creator has released its own part."""

    def __init__(self) -> None:
        self.open = 0

    def hold(self) -> None:
        self.open += 1

    def release(self) -> None:
        self.open -= 1


def append(log: Appending, seq: int) -> Receipt:
    receipt = Receipt()
    header = Header(query="q", origin=Origin("s", "d"), seq=seq, through=seq, rows=2, born=2)
    log.append(header, ROWS, receipt)  # type: ignore[arg-type]
    return receipt


def test_a_batch_and_its_duplicates_are_safe_when_the_disk_has_it() -> None:
    log = Appending(QueryId("q"), Partition("q", SCHEMA))
    first = append(log, 0)
    group = log.partition.flush(1)
    assert group is not None
    second, again = append(log, 1), append(log, 1)
    assert [each.open for each in (first, second, again)] == [1, 1, 1]
    log.done(DiskDone("f", group.token))
    assert [each.open for each in (first, second, again)] == [0, 1, 1], "only the first was in that group"
    assert append(log, 0).open == 1, "nobody knows which batch it repeats, so it waits for all before it"
    group = log.partition.flush(2)
    assert group is not None
    log.done(DiskDone("f", group.token, trouble="the disk is full"))
    assert [each.open for each in (second, again)] == [1, 1]
    group = log.partition.flush(10**9)
    assert group is not None
    log.done(DiskDone("f", group.token))
    assert [each.open for each in (second, again)] == [0, 0]
    assert append(log, 1).open == 0, "everything is on the disk"
    log.validate()


def test_what_is_being_written_is_let_go_of_when_its_query_ends() -> None:
    log = Appending(QueryId("q"), Partition("q", SCHEMA))
    receipts = [append(log, 0), append(log, 1), append(log, 1)]
    assert [header.seq for header in log.close()] == [0, 1]
    assert [each.open for each in receipts] == [0, 0, 0]


def late_batch() -> Gateway:
    """A gateway that has got late rows and whose folder for them is not open yet."""
    gateway = Gateway(SimShelf(Random(1)))
    gateway.handle(orders(LOG))
    gateway.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)))
    gateway.disk()
    gateway.handle(Arrived(b"d", replace(data(1, 0), header=replace(data(1, 0).header, late=True)), ROWS))
    return gateway


def test_late_rows_are_acked_when_they_are_in_their_folder() -> None:
    gateway = late_batch()
    assert gateway.acked() == 0
    assert gateway.worker.output.pending_bytes > 0
    gateway.worker.validate()
    gateway.disk()
    gateway.disk()
    assert gateway.acked() == 1
    assert gateway.worker.output.pending_bytes == 0
    gateway.worker.validate()


def test_late_rows_of_a_query_that_is_stopped_are_acked() -> None:
    gateway = late_batch()
    gateway.handle(Arrived(COORDINATOR, Orders(PROTOCOL, (), (QueryId("q"),))))
    assert gateway.acked() == 1
    assert gateway.worker.output.pending_bytes == 0
    gateway.worker.validate()


def test_a_receipt_is_for_one_ack() -> None:
    class Link:
        sessions, peer = 3, NodeId("d")

        def __init__(self) -> None:
            self.took_all: list[tuple[int, int]] = []

        def took(self, number: int, session: int) -> None:
            self.took_all.append((number, session))

    link = Link()
    receipt = FrameReceipt(link, 7, 100)  # type: ignore[arg-type]
    for _ in range(2):
        receipt.hold()
    for _ in range(2):
        receipt.release()
        assert link.took_all == []
    receipt.release()
    assert link.took_all == [(7, 3)]


def test_bytes_of_late_rows_that_wait_are_counted() -> None:
    gateway = late_batch()
    before = gateway.worker.room
    header = replace(data(2, 1).header, late=True)
    gateway.handle(Arrived(b"d", replace(data(2, 1), header=header), ROWS))
    assert ROWS is not None
    assert gateway.worker.room == before - len(ROWS)
