"""A device speaks for itself only: it cannot silence another device, nor an operator that runs elsewhere."""

from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

from rove.data.events import Command
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import PROTOCOL, Data, Hello, Orders, Peer, Welcome
from tests.data.plans import plans_of
from tests.data.test_strangers import KNOWN, SCHEMA, UP, part
from tests.lines import lines

OWN = Origin("s", "device")
MERGED = Origin("q", stage=3)
FOREVER = 2**61


def edge(device: bool = True, owner: str = "") -> Worker:
    """An edge that waits for rows of two devices. The peer `device` may be one of them, or another edge."""
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=(UP,)), 1)
    run = replace(part(UP, (KNOWN, OWN)), owners={Stage(3): NodeId(owner)} if owner else {})
    peers = (Peer(node=UP, address="there"), Peer(node=NodeId("device"), device=device))
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (run,), (), peers, plans=plans_of(run))), 0)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived("up", Welcome(PROTOCOL, UP, 7, 1, 0, 10**6)), 2)
    worker.handle(Tick(), 3)
    return worker


def empty(worker: Worker, number: int, origin: Origin, through: int, stage: int = 0) -> list[Command]:
    header = Header(query="q", origin=origin, seq=0, through=through, stage=stage)
    return worker.handle(Arrived(b"d", Data(number, header)), 4)


def rows_of(worker: Worker, number: int, origin: Origin) -> None:
    rows = pa.record_batch([["a", "b"], [0, 1], [1, 2]], schema=SCHEMA)
    header = Header(query="q", origin=origin, seq=0, through=0, rows=2, born=2)
    worker.handle(Arrived(b"d", Data(number, header), encode_rows(rows)), 5)


def test_a_device_cannot_use_up_the_numbers_of_another() -> None:
    worker = edge()
    assert lines(empty(worker, 1, KNOWN, FOREVER)) == ["to d: Refused, identity"]
    assert not worker.running()[QueryId("q")].pipeline.took(KNOWN, 0)
    assert worker.refused == {"identity": 1}
    assert [tally for tally in worker.report().tallies if tally.origin == KNOWN] == []
    rows_of(worker, 1, OWN)
    assert worker.running()[QueryId("q")].pipeline.took(OWN, 0)


def test_an_edge_passes_batches_of_devices_on() -> None:
    worker = edge(device=False)
    rows_of(worker, 1, KNOWN)
    assert worker.running()[QueryId("q")].pipeline.took(KNOWN, 0)
    assert worker.refused == {}


@pytest.mark.parametrize(("owner", "refused"), [("", 1), ("edge-2", 1), ("device", 0)])
def test_only_the_owner_of_a_merging_operator_may_send_its_batches(owner: str, refused: int) -> None:
    worker = edge(owner=owner)
    empty(worker, 1, MERGED, FOREVER, stage=3)
    assert worker.refused.get("identity", 0) == refused
    known = [tally for tally in worker.report().tallies if tally.origin == MERGED]
    assert len(known) == 1 - refused
    assert all(tally.lost == 0 for tally in known)


def test_a_batch_that_cannot_be_read_is_lost_once_however_often_it_comes() -> None:
    worker = edge()
    header = Header(query="q", origin=OWN, seq=0, through=0, rows=2, born=2)
    for start in (1, 2, 3):  # its sender had no ack, or computed it again
        worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), start)), 4)
        worker.handle(Arrived(b"d", Data(1, header), b"not rows"), 5)
        assert [tally.lost for tally in worker.report().tallies if tally.origin == OWN] == [2]
    worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 4)), 6)
    rows_of(worker, 1, OWN)
    (tally,) = [tally for tally in worker.report().tallies if tally.origin == OWN]
    assert (tally.lost, tally.delivered, tally.open) == (2, 0, 0), "what is counted as lost does not arrive later"
    pipeline = worker.running()[QueryId("q")].pipeline
    assert pipeline.took(OWN, 0), "its name goes on, so no operator waits for it"
    assert pipeline.duplicates == 3


def test_a_batch_that_is_taken_after_it_was_counted_as_lost_is_not_lost() -> None:
    worker = edge()
    header = Header(query="q", origin=OWN, seq=0, through=0, rows=2, born=2, evicted=1)
    for _ in range(2):
        worker.accounts.write_off("q", header)
    (tally,) = worker.report().tallies
    assert (tally.lost, tally.evicted, tally.counted) == (2, 1, (("", (0, 1)),))
    rows_of(worker, 1, OWN)
    (tally,) = worker.report().tallies
    assert (tally.lost, tally.evicted, tally.delivered + tally.open) == (0, 0, 2)
    assert all(taker for taker, spans in tally.counted if spans)
