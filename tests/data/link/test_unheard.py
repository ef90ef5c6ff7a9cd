"""A window on a node without a disk takes a batch when its sender has heard the ack: no two starts compute it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rove.data.link.unheard import PATIENCE_US
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Ack, Beat, Counted, Data, Fragment, Hello, Learned, Orders, Sink
from rove.plan import codec
from rove.plan.stages import Stages
from tests.data.link.test_gaps import FRAME_BYTES, met, offered
from tests.data.plans import named, plans_of
from tests.data.test_worker import made, timed, windowed
from tests.lines import lines

VAN = Origin("t", "van")
PLAN = Stages.of({"out": windowed()})
WINDOW = Stage(len(PLAN.operators) - 1)
LATER_US = 4_000_000  # a peer is away after less silence than this
ROUTES = (b"east", b"west")  # two relays below the edge


def part(version: int, *origins: Origin) -> Fragment:
    return Fragment(
        query=QueryId("w"),
        version=Version(version),
        plan=named(codec.encode(PLAN)),
        runs=tuple(Stage(n) for n in range(1, len(PLAN.operators))),
        makes={WINDOW: Origin("w", stage=1)},
        waits={Stage(0): origins},
        next=None,
        sinks={WINDOW: Sink(kind="discard")},
    )


def deploy(worker: Worker, fragment: Fragment, now: int, counted: Counted = ()) -> None:
    orders = Orders(PROTOCOL, (fragment,), (), plans=plans_of(fragment), counted={fragment.query: counted})
    worker.handle(Arrived("coordinator", orders), now)


@pytest.fixture
def edge() -> Worker:
    """An edge without a disk that counts a van's rows in windows of ten seconds. The van is below two relays."""
    return begun()


def begun(counted: Counted = (), fragment: Fragment | None = None) -> Worker:
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge"), 1)
    deploy(worker, fragment or part(1, VAN), 0, counted)
    below = Learned(0, tuple((NodeId(route.decode()), VAN.node) for route in ROUTES))
    worker.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), learn=below)), 0)
    for route in ROUTES:
        worker.handle(Arrived(route, hello(route, 1)), 0)
    worker.handle(Tick(), 1)
    return worker


def hello(route: bytes, start: int, left: int = 0, left_acked: int = 0) -> Hello:
    return Hello(PROTOCOL, NodeId(route.decode()), start, left=left, left_acked=left_acked)


def send(worker: Worker, number: int, seq: int, now: int = 2, route: bytes = b"east") -> list[str]:
    """A row of second `60 × seq`, so that each row closes the window before it."""
    header = Header(origin=VAN, seq=seq, through=seq, rows=1, born=1, query="w")
    worker.handle(Arrived(route, Data(number, header), encode_rows(timed(60 * seq))), now)
    return [said for said in lines(worker.handle(Tick(), now)) if "Ack" in said]


def heard(worker: Worker, acked: int, now: int = 3, route: bytes = b"east") -> None:
    worker.handle(Arrived(route, Beat(acked, acked, 0)), now)
    worker.handle(Tick(), now)


def delivered(worker: Worker) -> tuple[int, int, int]:
    """The van's rows: those in results, those in open windows, and those that are held before the window."""
    (tally,) = [t for t in worker.report().tallies if t.origin == VAN]
    return tally.delivered, tally.open, tally.buffered


def test_a_batch_is_computed_when_its_sender_has_heard_the_ack(edge: Worker) -> None:
    assert send(edge, 1, 0) == ["to east: Ack 1, tell"]
    assert send(edge, 2, 1) == ["to east: Ack 2, tell"]
    assert delivered(edge) == (0, 0, 2)
    heard(edge, 1)
    assert delivered(edge) == (0, 1, 1)
    heard(edge, 2)
    assert (delivered(edge), made(edge)) == ((1, 1, 0), 1)
    edge.validate()


def test_what_an_earlier_start_has_computed_to_the_end_is_not_computed_again() -> None:
    """The sender has a disk and has died: it computes its output again, and does not know what was taken."""
    edge = begun(((str(WINDOW), VAN, (0, 2)),))
    for number, seq in enumerate(range(4), 1):
        send(edge, number, seq)
        heard(edge, number)
    assert delivered(edge) == (1, 1, 0), "the row of batch 2, whose window batch 3 has closed"
    (tally,) = [t for t in edge.report().tallies if t.origin == VAN]
    assert tally.counted == ((str(WINDOW), (0, 3)),)
    assert made(edge) == 1
    edge.validate()


def test_a_batch_that_comes_again_is_not_acked_before_what_was_made_of_it_is_safe() -> None:
    watermark = replace(part(1, VAN), runs=(Stage(1),), makes={}, next=NodeId("gateway"), sinks={})
    edge = begun(fragment=watermark)
    for number in (1, 2):
        assert not [said for said in send(edge, number, number - 1) if "Ack 0" not in said], (
            "the gateway has not it yet"
        )
    edge.handle(Arrived(b"east", hello(b"east", 2, left=1)), 3)
    for number in (1, 2):
        assert not [said for said in send(edge, number, number - 1, 4) if "Ack 0" not in said]
    assert [t.duplicates for t in edge.report().tallies if t.origin == VAN] == [0]
    edge.validate()


def test_a_sender_is_not_asked_when_nothing_waits_for_its_word(edge: Worker) -> None:
    header = Header(origin=VAN, seq=0, through=0, query="w", late=True)
    edge.handle(Arrived(b"east", Data(1, header)), 2)
    assert [said for said in lines(edge.handle(Tick(), 2)) if "Ack" in said] == ["to east: Ack 1"]


def test_a_sender_that_is_asked_answers_at_once() -> None:
    device, _ = met()
    offered(device, 2)
    assert lines(device.link.heard(Ack(1, 10**6, tell=True), "edge", 1)) == ["to edge: Beat, sent 2, acked 1"]
    assert lines(device.link.heard(Ack(2, 10**6), "edge", 2)) == []


def test_a_peer_cannot_have_heard_an_ack_that_was_not_said(edge: Worker) -> None:
    heard(edge, 5)
    send(edge, 1, 0)
    heard(edge, 0)
    assert delivered(edge) == (0, 0, 1)


def test_a_batch_whose_sender_left_the_session_without_the_ack_is_dropped_and_comes_again(edge: Worker) -> None:
    for number, seq in ((1, 0), (2, 1)):
        send(edge, number, seq)
    edge.handle(Arrived(b"east", hello(b"east", 2, left=1, left_acked=1)), 3)
    edge.handle(Tick(), 3)
    assert delivered(edge) == (0, 1, 0), "the first ack was heard, the second was not"
    send(edge, 1, 1, 4)
    heard(edge, 1, 5)
    assert (delivered(edge), made(edge)) == ((1, 1, 0), 1)


def test_a_batch_that_came_again_before_it_was_taken_is_computed_when_the_later_ack_is_heard() -> None:
    """Both frames are parked, because the query is not known yet. The first one is of a session that is over."""
    edge = Worker(WorkerSettings(node=NodeId("edge"), kind="edge"), 1)
    below = Learned(0, ((NodeId("east"), VAN.node),))
    edge.handle(Arrived("coordinator", Orders(PROTOCOL, (), (), learn=below)), 0)
    edge.handle(Arrived(b"east", hello(b"east", 1)), 0)
    send(edge, 1, 0)
    edge.handle(Arrived(b"east", hello(b"east", 2, left=1)), 3)
    send(edge, 1, 0, 4)
    deploy(edge, part(1, VAN), 5)
    assert [said for said in lines(edge.handle(Tick(), 5)) if "Ack" in said] == ["to east: Ack 1, tell"]
    heard(edge, 1, 6)
    assert delivered(edge) == (0, 1, 0)


def test_a_batch_that_one_sender_has_kept_is_dropped_when_the_other_one_cannot_tell(edge: Worker) -> None:
    send(edge, 1, 0)
    send(edge, 1, 0, 3, b"west")
    edge.handle(Arrived(b"west", hello(b"west", 2, left=1)), 4)
    edge.handle(Tick(), 4)
    edge.handle(Arrived(b"east", hello(b"east", 2)), 5)  # its process has died
    edge.handle(Tick(), 5)
    assert delivered(edge) == (0, 0, 1)
    edge.handle(Tick(), 5 + PATIENCE_US)
    assert not [t for t in edge.report().tallies if t.origin == VAN], "it comes again"
    edge.handle(Arrived(b"west", hello(b"west", 3)), 6 + PATIENCE_US)
    send(edge, 1, 0, 6 + PATIENCE_US, b"west")
    heard(edge, 1, 7 + PATIENCE_US, b"west")
    assert delivered(edge) == (0, 1, 0)


def test_a_batch_that_came_another_way_is_computed_although_its_first_sender_has_kept_it(edge: Worker) -> None:
    """The first sender leaves the route then, and sends nothing again."""
    send(edge, 1, 0)
    send(edge, 1, 0, 3, b"west")
    edge.handle(Arrived(b"east", hello(b"east", 2, left=1)), 4)
    edge.handle(Tick(), 4)
    assert delivered(edge) == (0, 0, 1)
    heard(edge, 1, 5, b"west")
    assert delivered(edge) == (0, 1, 0)


def test_a_link_that_takes_frames_back_says_which_acks_it_had_heard() -> None:
    device, edge = met()
    offered(device, 3)
    start = device.link._start
    device.link.heard(Ack(1, 10**6), "edge", 1)
    device.link.take_back("q")
    said = device.link.tick(10**9)[0].message  # type: ignore[union-attr]
    assert isinstance(said, Hello)
    assert (said.left, said.left_acked) == (start, 1)
    for number in (1, 2, 3):
        edge.link.receive(number, FRAME_BYTES, 1)
        edge.link.took(number, edge.link.sessions)
    edge.link.flush(2)
    session = edge.link.sessions
    edge.link.heard(said, b"device", 3)
    assert [edge.link.ack_fate(number, session).value for number in (1, 2, 3)] == ["heard", "kept", "kept"]


def test_when_nobody_can_tell_a_batch_waits_until_it_comes_again(edge: Worker) -> None:
    send(edge, 1, 0)
    edge.handle(Arrived(b"east", hello(b"east", 2)), 3)  # its process has died
    edge.handle(Tick(), 3)
    assert delivered(edge) == (0, 0, 1)
    send(edge, 1, 0, 4)
    assert delivered(edge) == (0, 0, 1)
    heard(edge, 1, 5)
    assert delivered(edge) == (0, 1, 0)


def test_when_nobody_can_tell_a_later_batch_that_comes_another_way_shows_that_the_ack_was_heard(edge: Worker) -> None:
    send(edge, 1, 0)
    edge.handle(Arrived(b"east", hello(b"east", 2)), 3)
    send(edge, 1, 1, 4, b"west")
    assert delivered(edge) == (0, 1, 1)


def test_a_batch_that_came_two_ways_waits_for_both_senders(edge: Worker) -> None:
    send(edge, 1, 0)
    send(edge, 1, 0, 3, b"west")
    heard(edge, 1, 4)
    assert delivered(edge) == (0, 0, 1)
    heard(edge, 1, 5, b"west")
    assert delivered(edge) == (0, 1, 0)


@pytest.mark.parametrize("known", [True, False])
def test_a_batch_of_an_origin_that_nobody_waits_for_any_more_is_computed(edge: Worker, known: bool) -> None:
    send(edge, 1, 0)
    knows = {Stage(0): (VAN,)} if known else {}
    deploy(edge, replace(part(2, Origin("t", "another")), knows=knows), 3)
    assert delivered(edge) == (0, 1, 0)


def test_a_batch_of_an_origin_that_is_gone_waits_for_nobody(edge: Worker) -> None:
    send(edge, 1, 0)
    deploy(edge, part(2, Origin("t", "another")), 3)
    send(edge, 2, 1, 4)
    assert delivered(edge)[2] == 0


@pytest.mark.parametrize("died", [True, False])
def test_nobody_waits_for_ever_for_word_of_a_peer_that_died_or_is_silent(edge: Worker, died: bool) -> None:
    send(edge, 1, 0)
    if died:
        edge.handle(Arrived(b"east", hello(b"east", 2)), 3)
    for now in range(LATER_US, PATIENCE_US, 1_000_000):
        edge.handle(Tick(), now)
        assert delivered(edge) == (0, 0, 1)
    for now in range(PATIENCE_US, PATIENCE_US + 2 * LATER_US, 1_000_000):
        edge.handle(Tick(), now)
    assert delivered(edge) == (0, 1, 0)
