"""Counts that no origin gives: they are refused on links, and those that are on a disk already end nothing."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from rove.data.counts import Count
from rove.data.link import neighbours
from rove.data.log.segments import ledger
from rove.data.log.segments.ledger import Ledger, LedgerTable
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.store.store import Store
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.foreign import checks
from rove.model.foreign.checks import HEADER_ROWS_MAX, SUM_MAX
from rove.model.ids import NodeId, Origin
from rove.model.messages import PROTOCOL, Ack, Hello, Message, check_report, encode
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.ends.test_damaged_input import BATCHES, MANY, gateway, tally
from tests.data.ends.test_output import MOMENTS
from tests.data.test_identity import DEVICE, OWN, edge, rows_of
from tests.data.test_worker import data, rows
from tests.lines import lines

ABSURD = 2**62 - 1


def test_counts_of_its_own_rows_that_a_device_forges_are_refused_and_its_node_goes_on() -> None:
    worker = edge()
    for number in range(8):
        header = Header(query="q", origin=OWN, seq=number, through=number, born=ABSURD, lost=ABSURD, evicted=ABSURD)
        said = worker.handle(Arrived(b"d", neighbours.Data(1, header)), 10 + number)
        assert lines(said) == ["to d: Refused, malformed"]
    assert worker.refused == {"malformed": 8}
    encode(worker.report())
    assert [each for each in worker.report().tallies if each.origin == OWN] == []
    rows_of(worker, 1, OWN, 20)
    worker.validate()


def test_sums_of_rows_stop_at_a_bound_that_every_coordinator_takes() -> None:
    worker = edge()
    rows_of(worker, 1, OWN)
    worker.output.counts["q", OWN] = Count(delivered=2**80, lost=-(2**70), late=3)
    (found,) = [each for each in worker.report().tallies if each.origin == OWN]
    assert (found.delivered, found.lost, found.late) == (SUM_MAX, 0, 3)
    encode(worker.report())
    check_report(worker.report())


def test_a_ledger_stops_counting_at_a_bound() -> None:
    table = LedgerTable({}, {}, {OWN: [0, 0, SUM_MAX - 1, 0, 0, 0, 0]})
    found = Ledger(table)
    for seq in range(3):
        found.count(Header(origin=OWN, seq=seq, through=seq, born=5), 0)
    assert found.counts()[OWN].born == SUM_MAX
    assert found.refused == {}


@pytest.mark.parametrize("batches", [BATCHES, MANY])
def test_a_disk_with_counts_that_were_not_checked_starts_and_says_whose_counts_it_leaves_out(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more than one segment the sums are in the head of the last one as well."""
    shelf = SimShelf(Random(3))
    with monkeypatch.context() as before:
        before.setattr(neighbours, "check_header", lambda header: None)
        for module in (ledger, checks):
            before.setattr(module, "countable", lambda header: True)
        before.setattr(ledger, "SUM_MAX", 2**80)
        worker = gateway(shelf, 1)
        for seq in range(batches):
            frame = data(seq + 1, seq)
            if seq == 1:
                frame = replace(frame, header=replace(frame.header, born=ABSURD, lost=ABSURD))
            worker.handle(Arrived(b"c", frame, encode_rows(rows().cast(MOMENTS))), 2 + seq)
            done_at_once(worker, shelf, worker.handle(Tick(), 3 + seq), 3 + seq)
    for start in (2, 3):
        again = gateway(shelf, start)
        found = tally(again)
        assert (found.delivered, found.lost) == (2 * batches - 2, 0), "counts that cannot be are left out"
        encode(again.report())
        check_report(again.report())
        again.validate()
        assert again.refused["damaged"] >= 1
        assert "are counted as no origin counts them" in str(again.report().troubles)


@pytest.mark.parametrize("name", ["", "..", "a b", "x" * 15_000, "edge"])
def test_a_peer_has_a_name_that_a_node_can_have(name: str) -> None:
    worker = edge()
    said = worker.handle(Arrived(b"e", Hello(PROTOCOL, NodeId(name), 1)), 4)
    assert lines(said) == ["to e: Refused, identity"]
    assert name not in worker.links()


@pytest.mark.parametrize("message", [Hello(PROTOCOL, DEVICE, -1), Ack(2**63, 1), Ack(1, -1)])
def test_a_message_with_numbers_that_cannot_be_changes_nothing(message: Message) -> None:
    worker = edge()
    assert lines(worker.handle(Arrived(b"d", message), 4)) == ["to d: Refused, malformed"]
    worker.validate()
    rows_of(worker, 1, OWN)


def test_a_peer_that_wants_to_be_silent_for_ever_does_not_silence_its_neighbour() -> None:
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), 1)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, DEVICE, 1, silent_us=2**61)), 4)
    worker.handle(Tick(), 2_000_000)
    assert worker._neighbours.beat_us <= worker.settings.silent_us
    assert worker.links()[DEVICE].beat_us <= 3_600_000_000


@pytest.mark.parametrize("changes", [{"born": 2}, {"evicted": 1}, {"late": True}, {"rows": 2}])
def test_a_piece_of_state_counts_no_rows(changes: dict[str, int]) -> None:
    """Stores count pieces, not their rows. Forged pieces with rows broke these books."""
    worker = edge(below=("q#3",))
    for place, origin in enumerate((OWN, Origin("q", stage=3), Origin("q", "device", 0, 3))):
        header = Header(query="q", origin=origin, seq=0, through=4 if "rows" not in changes else 0, stage=3, state=True)
        worker.handle(Arrived(b"d", neighbours.Data(1, replace(header, **changes))), 10 + place)
        worker.handle(Tick(), 300_000 * place)
        worker.validate()
    assert worker.refused == {"malformed": 3}


@pytest.mark.parametrize(("evicted", "left"), [(HEADER_ROWS_MAX // 2, 1), (HEADER_ROWS_MAX // 2 + 1, 2)])
def test_headers_that_count_more_together_than_a_peer_takes_stay_apart(evicted: int, left: int) -> None:
    store = Store(10_000)
    for seq in (0, 2**20):
        store.put(Header(origin=OWN, seq=seq, through=seq + 2**20 - 1, query="q", evicted=evicted), None)
    headers = [entry.header for entry in store]
    assert len(headers) == left
    for header in headers:
        checks.check_header(header)
    store.validate()


def test_a_ledger_leaves_out_counts_of_an_entry_that_cannot_be_and_says_whose() -> None:
    found = Ledger()
    found.count(Header(origin=OWN, seq=0, through=0, born=ABSURD), 0)
    assert (found.counts()[OWN].born, [*found.refused]) == (0, [OWN])
