"""A device speaks for itself only, an edge for those below it: they cannot silence anybody else."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from msgspec.structs import replace

from rove.data.events import Command, Remember
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import PROTOCOL, Beat, Data, Hello, Learned, Orders, Peer, Welcome
from rove.sim.shelf import SimShelf
from tests.data.acks import heard
from tests.data.disk_driver import done_at_once
from tests.data.plans import plans_of
from tests.data.test_strangers import KNOWN, SCHEMA, UP, part
from tests.lines import lines

OWN = Origin("s", "device")
MERGED = Origin("q", stage=3)
FOREVER = 2**61
DEVICE = NodeId("device")


def edge(device: bool = True, below: tuple[str, ...] = (), parents: tuple[NodeId, ...] = (UP,)) -> Worker:
    """An edge that waits for rows of two devices. The peer `device` is one of them, or another edge with makers
    `below` it."""
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge", parents=parents), 1)
    run = part(UP, (KNOWN, OWN))
    peers = (Peer(node=UP, address="there"), Peer(node=DEVICE, device=device, address="here"))
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (run,), (), peers, plans=plans_of(run))), 0)
    if below:
        worker.handle(learn(*below), 0)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, DEVICE, 1)), 0)
    worker.handle(Tick(), 1)
    worker.handle(Arrived("up", Welcome(PROTOCOL, UP, 7, 1, 0, 10**6)), 2)
    worker.handle(Tick(), 3)
    return worker


def learn(*makers: str, after: int = 0) -> Arrived:
    news = Learned(after, tuple((DEVICE, maker) for maker in makers))
    return Arrived("coordinator", Orders(PROTOCOL, (), (), learn=news))


def empty(worker: Worker, number: int, origin: Origin, through: int, stage: int = 0) -> list[Command]:
    header = Header(query="q", origin=origin, seq=0, through=through, stage=stage)
    return worker.handle(Arrived(b"d", Data(number, header)), 4)


def rows_of(worker: Worker, number: int, origin: Origin, now: int = 5) -> list[Command]:
    rows = pa.record_batch([["a", "b"], [0, 1], [1, 2]], schema=SCHEMA)
    header = Header(query="q", origin=origin, seq=0, through=0, rows=2, born=2)
    return worker.handle(Arrived(b"d", Data(number, header), encode_rows(rows)), now)


def took(worker: Worker, origin: Origin) -> bool:
    """Whether the first batch of an origin was let in, computed or not."""
    pipeline = worker.running()[QueryId("q")].pipeline
    return pipeline.took(origin, 0) or any(batch.header.origin == origin for batch in pipeline.held())


def acks(worker: Worker, now: int) -> list[str]:
    """What the worker says to its peer when time passes."""
    return [said for said in lines(worker.handle(Tick(), now)) if said.startswith("to d: Ack")]


def test_a_device_cannot_use_up_the_numbers_of_another() -> None:
    worker = edge()
    assert lines(empty(worker, 1, KNOWN, FOREVER)) == ["to d: Refused, identity"]
    assert not took(worker, KNOWN)
    assert worker.refused == {"identity": 1}
    assert [tally for tally in worker.report().tallies if tally.origin == KNOWN] == []
    rows_of(worker, 1, OWN)
    assert took(worker, OWN)


def test_an_edge_passes_batches_of_makers_below_it_on() -> None:
    worker = edge(device=False, below=(KNOWN.node,))
    rows_of(worker, 1, KNOWN)
    assert took(worker, KNOWN)
    assert worker.refused == {}
    assert acks(worker, 6) == ["to d: Ack 1, tell"]


def test_an_edge_cannot_use_up_the_numbers_of_a_device_that_is_not_below_it() -> None:
    worker = edge(device=False, below=("another",))
    assert lines(empty(worker, 1, KNOWN, FOREVER)) == ["to d: Refused, identity"]
    assert worker.refused == {"identity": 1}
    assert not took(worker, KNOWN)
    assert acks(worker, 5) == []
    rows_of(worker, 1, OWN)
    assert took(worker, OWN), "the true frame of that number may still come"
    assert acks(worker, 6) == ["to d: Ack 1, tell"]


def test_a_node_that_has_not_heard_from_the_coordinator_takes_nothing_that_is_passed_on_and_acks_nothing() -> None:
    worker = edge(device=False)
    assert lines(rows_of(worker, 1, KNOWN)) == ["to d: Refused, identity"]
    assert not took(worker, KNOWN)
    assert acks(worker, 6) == []


def test_a_frame_that_comes_before_the_news_of_its_maker_is_requested_when_the_news_come() -> None:
    worker = edge(device=False, below=("another",))
    rows_of(worker, 1, KNOWN)
    rows_of(worker, 2, OWN)
    assert not took(worker, OWN), "frames are taken in their order"
    assert lines(worker.handle(learn("a-third", after=1), 6)) == [], "it is not about this maker"
    assert lines(worker.handle(learn(KNOWN.node, after=2), 7)) == ["to d: Resend after 0"]
    rows_of(worker, 1, KNOWN, 8)
    rows_of(worker, 2, OWN, 8)
    assert took(worker, KNOWN)
    assert took(worker, OWN)
    assert acks(worker, 9) == ["to d: Ack 2, tell"]


def test_while_a_link_stands_still_its_frames_are_requested_seldom() -> None:
    worker = edge(device=False, below=("another",))
    rows_of(worker, 1, KNOWN)
    said = [lines(worker.handle(Arrived(b"d", Beat(1, 0, 0)), 5 + n * 500_000)) for n in range(1, 25)]
    assert [line for lines in said for line in lines] == ["to d: Resend after 0"] * 2


def test_a_link_that_stands_still_is_trouble_of_the_query_and_of_the_node_after_a_moment() -> None:
    worker = edge(device=False, below=("another",))
    empty(worker, 1, KNOWN, FOREVER)
    worker.handle(Tick(), 1_000_000)
    assert (worker.troubles(), worker.troubles_of_queries()) == ({}, {}), "news of the coordinator may be on their way"
    worker.handle(Tick(), 4_000_000)
    (text,) = worker.troubles().values()
    assert text.startswith("`device` sends batches of `s/known`, which is not below it")
    assert "rove keys revoke device" in text
    ((trouble,),) = worker.troubles_of_queries().values()
    assert (trouble.text, trouble.holds) == (text, False)
    worker.handle(Arrived(b"d", Hello(PROTOCOL, DEVICE, 1)), 4_000_000)
    rows_of(worker, 1, OWN, 4_000_001)
    assert took(worker, OWN)
    assert (worker.troubles(), worker.troubles_of_queries()) == ({}, {})


def test_pairs_that_do_not_follow_what_is_known_wait_until_they_do() -> None:
    worker = edge(device=False, below=("another",))
    worker.handle(learn(KNOWN.node, after=2), 4)
    assert worker.report().learned == edge(device=False, below=("another",)).report().learned
    worker.handle(learn(KNOWN.node), 4)
    assert worker.report().learned == edge(device=False, below=(KNOWN.node,)).report().learned
    rows_of(worker, 1, KNOWN)
    assert took(worker, KNOWN)


def test_a_parent_speaks_for_everybody() -> None:
    """Rows that were made anywhere come down from it, to a sink or an operator here."""
    worker = edge(device=False, parents=(UP, DEVICE))
    rows_of(worker, 1, KNOWN)
    assert took(worker, KNOWN)


def test_what_neighbours_may_send_is_known_after_a_start_without_the_coordinator() -> None:
    shelf = SimShelf(Random(1))
    settings = WorkerSettings(node=NodeId("gateway"), kind="gateway")
    worker, run = Worker(settings, 1, durable=True), replace(part(None, (KNOWN,)), next=None)
    news = Learned(0, ((DEVICE, KNOWN.node),))
    orders = Orders(PROTOCOL, (run,), (), (Peer(node=DEVICE),), plans=plans_of(run), learn=news)
    commands = worker.handle(Arrived("coordinator", orders), 0) + worker.handle(Tick(), 1)
    assert lines(commands) == [
        "allow device",
        "disk open memory/q",
        "remember q v1 ends in discard; peers device",
        "to coordinator: Report, runs nothing, reaches nothing, asks for q",
    ]
    (kept,) = [command for command in commands if isinstance(command, Remember)]
    again = Worker(settings, 2, durable=True)
    done_at_once(again, shelf, again.remembered(kept), 2)
    for now in (3, 4, 5):
        done_at_once(again, shelf, again.handle(Tick(), now), now)
    assert again.report().learned == worker.report().learned
    again.handle(Arrived(b"d", Hello(PROTOCOL, DEVICE, 1)), 6)
    again.handle(Tick(), 6)
    rows_of(again, 1, KNOWN, 7)
    rows_of(again, 2, Origin("s", "another"), 8)
    assert again.refused == {"identity": 1}


@pytest.mark.parametrize("device", [True, False])
@pytest.mark.parametrize(("owned", "refused"), [((), 1), (("q#2",), 1), (("q#3",), 0)])
def test_only_neighbours_of_the_owner_of_a_merging_operator_may_send_its_batches(
    device: bool, owned: tuple[str, ...], refused: int
) -> None:
    worker = edge(device, owned)
    said = lines(empty(worker, 1, MERGED, FOREVER, stage=3))
    assert ("to d: Refused, identity" in said) == bool(refused)
    assert worker.refused.get("identity", 0) == refused
    assert bool(acks(worker, 5)) == (not refused), "a frame that is refused is not acked"
    known = [tally for tally in worker.report().tallies if tally.origin == MERGED]
    assert len(known) == 1 - refused
    assert all(tally.lost == 0 for tally in known)


def test_a_device_has_nobody_below_it_whatever_others_say() -> None:
    worker = edge(device=True, below=(KNOWN.node,))
    empty(worker, 1, KNOWN, FOREVER)
    assert worker.refused == {"identity": 1}


def test_a_batch_that_cannot_be_read_is_lost_once_however_often_it_comes() -> None:
    worker = edge()
    header = Header(query="q", origin=OWN, seq=0, through=0, rows=2, born=2)
    for start in (1, 2, 3):  # its sender had no ack, or computed it again
        worker.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), start)), 4)
        worker.handle(Arrived(b"d", Data(1, header), b"not rows"), 5)
        heard(worker, b"d", 5)
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
    heard(worker, b"d", 6)
    (tally,) = [tally for tally in worker.report().tallies if tally.origin == OWN]
    assert (tally.lost, tally.evicted, tally.delivered + tally.open) == (0, 0, 2)
    assert all(taker for taker, spans in tally.counted if spans)
