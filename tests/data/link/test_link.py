"""Two ends of a link over a network that delays, cuts and forgets, against a dumb twin: a list of what was offered."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rove.data.events import Load, Loaded
from rove.data.link.backlog import READING_MAX
from rove.data.link.link import BEATS, SILENT_US, Link, Said
from rove.data.link.loading import ATTEMPTS_MAX
from rove.data.log.segments.stored import Stored
from rove.data.settings import BacklogOrder
from rove.data.store.kept_batch import KEPT_BYTES_MIN, KeptBatch, size_of
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.events import Send
from rove.model.ids import NodeId, Origin
from rove.model.messages import Ack, Data, Hello, Refused
from tests.lines import line, lines

BEAT_US = SILENT_US // BEATS

DEVICE, EDGE = NodeId("device"), NodeId("edge")
WINDOW = 600  # bytes of credit: a few frames


class End:
    """One process with its end of the link; what it has taken survives it, as a disk would."""

    def __init__(self, name: NodeId, peer: NodeId, conn: str | bytes, backlog: BacklogOrder = "beside") -> None:
        self.name, self.peer, self.conn, self.backlog = name, peer, conn, backlog
        self.number = 0
        self.taken: list[int] = []
        self.pending: deque[tuple[int, int, Header]] = deque()  # number, session, header
        self.start()

    def start(self) -> None:
        self.number += 1
        self.store = Store(10**9)
        self.link = Link(self.name, self.number, self.peer, self.store, self.backlog)
        self.pending.clear()
        if isinstance(self.conn, str):
            self.link.dial(self.conn)


class LinkMachine(RuleBasedStateMachine):
    """The device offers, the edge takes. The edge may restart; the device remembers what it was not acked for."""

    @initialize(backlog=st.sampled_from(["beside", "first", "last"]), overtakes=st.booleans())
    def begin(self, backlog: BacklogOrder, overtakes: bool) -> None:
        self.now, self.overtakes = 0, overtakes
        self.device, self.edge = End(DEVICE, EDGE, "edge", backlog), End(EDGE, DEVICE, b"device")
        self.wires: dict[NodeId, deque[Send]] = {DEVICE: deque(), EDGE: deque()}
        self.offered = 0
        self.rows_offered = self.rows_taken = self.rows_evicted = 0
        self.cut = self.restarted = False

    def say(self, sender: End, sends: list[Send]) -> None:
        if not self.cut:
            self.wires[sender.name].extend(sends)

    @rule(rows=st.integers(0, 300), filtered=st.integers(0, 3))
    def offer(self, rows: int, filtered: int) -> None:
        born = rows + filtered
        header = Header(origin=Origin("o"), seq=self.offered, through=self.offered, rows=rows, born=born, query="q")
        self.offered += 1
        self.rows_offered += born
        entry = self.device.store.put(header, bytes(rows) if rows else None)
        self.say(self.device, self.device.link.offer(entry, self.now, self.overtakes))

    @rule(of=st.sampled_from([DEVICE, EDGE]), most=st.integers(1, 5))
    def deliver(self, of: NodeId, most: int) -> None:
        receiver = self.edge if of == DEVICE else self.device
        for _ in range(min(most, len(self.wires[of]))):
            send = self.wires[of].popleft()
            link, conn = receiver.link, receiver.conn
            match send.message:
                case Data(number=number, header=header):
                    size = KEPT_BYTES_MIN + (0 if send.payload is None else len(send.payload))
                    fresh, sends = link.receive(number, size, self.now)
                    if fresh:
                        receiver.pending.append((number, link.sessions, header))
                    elif not link.up:
                        sends = [Send(conn, Refused("unexpected", "say hello first"))]
                    self.say(receiver, sends)
                case Refused():
                    link.refused()
                case Hello() as hello:
                    self.say(receiver, link.heard(hello, conn, self.now))
                case message:
                    self.say(receiver, link.heard(message, conn, self.now))

    @precondition(lambda self: self.edge.pending)
    @rule(most=st.integers(1, 4))
    def take(self, most: int) -> None:
        """The edge makes some frames safe, and says so."""
        for _ in range(min(most, len(self.edge.pending))):
            number, session, header = self.edge.pending.popleft()
            new = set(range(header.seq, header.through + 1)) - set(self.edge.taken)
            if new:
                assert len(new) == header.through - header.seq + 1, "a header says what it said, or all of it is new"
                self.edge.taken += sorted(new)
                self.rows_taken += header.born
                self.rows_evicted += header.evicted
            self.edge.link.took(number, session)

    @rule(most=st.integers(1, 6))
    def throw_away(self, most: int) -> None:
        """The device's store makes room."""
        for _ in range(most):
            victim = self.device.store.in_memory.oldest("q")
            if victim is not None:
                self.device.store.evict(victim)
                self.device.link.sweep()

    @rule()
    def flush(self) -> None:
        for end in (self.device, self.edge):
            end.link.grant(WINDOW)
            self.say(end, end.link.flush(self.now))

    @rule(micros=st.sampled_from([1_000, BEAT_US, SILENT_US + BEAT_US]))
    def wait(self, micros: int) -> None:
        self.now += micros
        for end in (self.device, self.edge):
            self.say(end, end.link.tick(self.now))

    @rule(lasts=st.booleans())
    def cut_the_wire(self, lasts: bool) -> None:
        self.wires = {DEVICE: deque(), EDGE: deque()}
        self.cut = lasts

    @rule()
    def restart_the_edge(self) -> None:
        self.wires = {DEVICE: deque(), EDGE: deque()}
        self.restarted = True
        self.edge.start()

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """What was offered is with the device, or was taken."""
        if not hasattr(self, "device"):
            return
        headers = [entry.header for entry in self.device.link.entries()]
        kept = {seq for h in headers for seq in range(h.seq, h.through + 1)}
        assert set(range(self.offered)) <= kept | set(self.edge.taken)

    @invariant()
    def headers_that_wait_are_one_with_their_neighbours(self) -> None:
        if hasattr(self, "device"):
            waiting = sorted((e.header.seq, e) for e in self.device.link.entries() if not e.number)
            heads = [e for _, e in waiting if e.payload is None]
            assert not any(a.header.through + 1 == b.header.seq for a, b in pairwise(heads))

    @invariant()
    def the_accounts_are_exact(self) -> None:
        if hasattr(self, "device"):
            store = self.device.store
            assert store.bytes == sum(entry.bytes for entry in store)
            assert sum(store.rows().values()) == sum(entry.header.born for entry in store)

    def teardown(self) -> None:
        """In peace, everything arrives and nothing is left."""
        if not hasattr(self, "device"):
            return
        self.cut = False
        for _ in range(400):
            self.wait(BEAT_US)
            for of in (DEVICE, EDGE, DEVICE, EDGE):
                self.deliver(of, 50)
            if self.edge.pending:
                self.take(50)
            self.flush()
            if not len(self.device.store):
                break
        assert not len(self.device.store)
        assert sorted(self.edge.taken) == list(range(self.offered))
        if not self.overtakes and not self.restarted:
            assert self.edge.taken == list(range(self.offered)), "nothing overtakes that may not"
        assert self.rows_taken + self.rows_evicted == self.rows_offered


TestLink = LinkMachine.TestCase
TestLink.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_credit_holds_the_sender_back_and_a_large_frame_still_gets_through() -> None:
    device, edge = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device")
    (hello,) = device.link.tick(0)
    welcome = edge.link.heard(hello.message, b"device", 0)
    for send in welcome:
        device.link.heard(send.message, "edge", 0)
    sent = []
    for seq in range(5):
        header = Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query="q")
        sent += device.link.offer(device.store.put(header, bytes(100_000)), 0)
    assert lines(sent) == ["to edge: Data 1: q o 0, 1 rows"]
    assert len(list(device.link.entries())) == 5


ROWS = bytes(1_000)


class Fading:
    """A disk that is read until it cannot be any more."""

    def __init__(self) -> None:
        self.breaks = False
        self.reads = 0

    def sent(self, link: Link, said: list[Said]) -> list[Send]:
        """Rows that a link asks for are read at once; what it sends, in order."""
        sends, todo = [], deque(said)
        while todo:
            each = todo.popleft()
            if isinstance(each, Load):
                self.reads += 1
                rows, gone = (None, True) if self.breaks else (ROWS, False)
                todo.extend(link.loaded(Loaded(each.peer, each.order, rows, gone=gone), 0))
            else:
                sends.append(each)
        return sends


def on_disk(seq: int) -> Stored:
    return Stored("retention/1/q", "rows", seq * 1_000, 1_000, crc32(ROWS))


@pytest.mark.parametrize("sent_before", [False, True])
def test_rows_that_cannot_be_read_any_more_take_no_credit(sent_before: bool) -> None:
    """Far more of them than there is credit for, before some that can be read; sent for the first time, or again."""
    device, edge, disk = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device"), Fading()
    for seq in range(100):
        header = Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query="q")
        device.link.offer(device.store.put(header, on_disk(seq) if seq < 95 else ROWS), 0)
    if sent_before:
        assert met(device, edge, disk)  # nobody takes these
        assert device.link.refused()
        device.link._greeted_us = device.link._spoke_us = -device.link.beat_us  # a heartbeat ago
    disk.breaks = True
    said = met(device, edge, disk)
    while said:
        for frame in said:
            if isinstance(frame.message, Ack):  # after the welcome; the edge has sent nothing
                assert frame.message.through == 0
                continue
            assert isinstance(frame.message, Data)
            size = size_of(frame.message.header, frame.payload)
            assert edge.link.receive(frame.message.number, size, 0) == (True, [])
            edge.link.took(frame.message.number, edge.link.sessions)
            edge.taken.append(frame.message.header.seq)
        said = granted(device, edge, disk)
    assert edge.taken == list(range(100))
    assert not len(device.store)


def test_rows_on_the_disk_are_asked_for_before_there_is_credit_and_a_bounded_number_of_them() -> None:
    device, edge = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device")
    for seq in range(5_000):
        header = Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query="q")
        device.link.offer(device.store.put(header, on_disk(seq)), 0)
    *loads, ack = shaken(device, edge)
    assert lines(loads) == ["disk load 1000 bytes of retention/1/q"] * READING_MAX
    assert [load.rows.offset for load in loads] == [n * 1_000 for n in range(READING_MAX)]
    assert line(ack) == "to edge: Ack 0"


def test_rows_of_other_origins_go_on_while_rows_are_read_and_none_overtakes_its_own() -> None:
    device, edge, disk = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device"), Fading()
    for seq, origin in enumerate(("slow", "slow", "quick", "slow", "quick")):
        header = Header(origin=origin, seq=seq, through=seq, rows=1, born=1, query="q")
        rows = on_disk(seq) if seq < 2 else ROWS
        device.link.offer(device.store.put(header, rows), 0)
    said = shaken(device, edge) + granted(device, edge)
    assert lines(said) == [
        "to edge: Data 1: q quick 2, 1 rows",
        "disk load 1000 bytes of retention/1/q",
        "disk load 1000 bytes of retention/1/q",
        "to edge: Ack 0",
        "to edge: Data 2: q quick 4, 1 rows",
    ]
    loads = [each for each in said if isinstance(each, Load)]
    assert [load.rows.offset for load in loads] == [0, 1_000]
    assert lines(disk.sent(device.link, list(reversed(loads)))) == [
        "to edge: Data 3: q slow 0, 1 rows",
        "to edge: Data 4: q slow 1, 1 rows",
        "to edge: Data 5: q slow 3, 1 rows",
    ]


@pytest.mark.parametrize("leaves", [Link.forget, Link.take_back])
def test_rows_of_a_query_are_asked_for_again_when_another_query_leaves_the_link(leaves: Any) -> None:
    device, edge, disk = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device"), Fading()
    for seq, query in enumerate(("stays", "goes", "stays")):
        header = Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query=query)
        device.link.offer(device.store.put(header, on_disk(seq)), 0)
    shaken(device, edge)
    granted(device, edge)
    leaves(device.link, "goes")
    again = device.link.flush(0)
    assert lines(again) == ["disk load 1000 bytes of retention/1/q"] * 2
    assert [load.rows.offset for load in again] == [0, 2_000]
    assert lines(disk.sent(device.link, again)) == [
        "to edge: Data 1: stays o 0, 1 rows",
        "to edge: Data 2: stays o 2, 1 rows",
    ]


def test_rows_that_cannot_be_read_now_are_asked_for_again_and_lost_only_in_the_end() -> None:
    device, edge, now = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device"), 0
    header = Header(origin=Origin("o"), seq=0, through=0, rows=1, born=1, query="q")
    device.link.offer(device.store.put(header, on_disk(0)), 0)
    said = shaken(device, edge) + granted(device, edge)
    attempts = 0
    while loads := [each for each in said if isinstance(each, Load)]:
        attempts += 1
        said = device.link.loaded(Loaded(EDGE, loads[0].order, None, "[Errno 5] Input/output error"), now)
        if attempts < ATTEMPTS_MAX:
            assert device.link.trouble == "[Errno 5] Input/output error"
            assert not said, "not at once"
            now += 100_000 * 2 ** (attempts - 1)
            device.link._heard_us = now
            said = device.link.tick(now)
    assert attempts == ATTEMPTS_MAX
    assert lines(said) == ["to edge: Data 1: q o 0, 0 rows, 1 lost"]


def test_many_batches_that_cannot_be_read_once_are_all_sent_and_one_that_never_can_is_lost_alone() -> None:
    device, edge, disk = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device"), Fading()
    number, now = 2 * ATTEMPTS_MAX, 0
    for seq in range(number):
        header = Header(origin=Origin("o", NodeId(str(seq))), seq=0, through=0, rows=1, born=1, query="q")
        device.link.offer(device.store.put(header, on_disk(seq)), 0)
    said, sent, rounds = shaken(device, edge), [], 0
    edge.link.grant(number * 5_000)
    said += granted(device, edge)
    while loads := [each for each in said if isinstance(each, Load)]:
        rounds += 1
        said = []
        for load in loads:
            if rounds == 1 or not load.rows.offset:
                said += device.link.loaded(Loaded(EDGE, load.order, None, "[Errno 5] Input/output error"), now)
            else:
                said += disk.sent(device.link, [load])
        now += 100_000 * 2 ** (rounds - 1)
        device.link._heard_us = now
        said += device.link.tick(now)
        sent += [each.message.header for each in said if isinstance(each, Send) and isinstance(each.message, Data)]
    assert rounds == ATTEMPTS_MAX, "a round of attempts makes the pause longer once, however many fail in it"
    assert sorted(header.origin.node for header in sent if header.rows) == sorted(map(str, range(1, number)))
    assert [header.origin.node for header in sent if header.lost] == ["0"]


def test_a_pause_is_as_long_as_that_of_the_batch_that_failed_most() -> None:
    device, edge = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device")
    for seq, origin in enumerate("ab"):
        header = Header(origin=Origin(origin), seq=0, through=0, rows=1, born=1, query="q")
        device.link.offer(device.store.put(header, on_disk(seq)), 0)
    said = shaken(device, edge) + granted(device, edge)
    often, once = (each.order for each in said if isinstance(each, Load))
    device.link.loaded(Loaded(EDGE, often, None, "[Errno 5] Input/output error"), 0)
    (again,) = (each for each in device.link.tick(100_000) if isinstance(each, Load))
    for order in (again.order, once):
        device.link.loaded(Loaded(EDGE, order, None, "[Errno 5] Input/output error"), 100_000)
    assert lines(device.link.tick(200_000)) == []
    assert lines(device.link.tick(300_000)) == ["disk load 1000 bytes of retention/1/q"] * 2


def shaken(device: End, edge: End) -> list[Said]:
    """They shake hands; what the device says then."""
    (hello,) = device.link.tick(0)
    assert isinstance(hello, Send)
    welcome = edge.link.heard(hello.message, b"device", 0)
    return [e for said in welcome if isinstance(said, Send) for e in device.link.heard(said.message, "edge", 0)]


def met(device: End, edge: End, disk: Fading) -> list[Send]:
    """They shake hands, and the edge has room; what the device sends then."""
    return disk.sent(device.link, shaken(device, edge)) + granted(device, edge, disk)


def granted(device: End, edge: End, disk: Fading | None = None) -> list[Any]:
    """The edge has room for five frames more; what the device says then."""
    edge.link.grant(5_000)
    acks = [ack for ack in edge.link.flush(0) if isinstance(ack, Send)]
    said = [each for ack in acks for each in device.link.heard(ack.message, "edge", 0)]
    return said if disk is None else disk.sent(device.link, said)


def reached(backlog: BacklogOrder) -> End:
    """A device that has kept three batches while nobody heard it, and is heard now, with credit for one frame at a
    time."""
    device, edge = End(DEVICE, EDGE, "edge", backlog), End(EDGE, DEVICE, b"device")
    for seq in range(3):
        device.link.offer(batch(device, seq), 0, overtakes=True)
    (hello,) = device.link.tick(0)
    for send in edge.link.heard(hello.message, b"device", 0):
        device.link.heard(send.message, "edge", 0)
    return device


def batch(device: End, seq: int) -> KeptBatch:
    header = Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query="q")
    return device.store.put(header, bytes(1_000))


def sent_after(device: End, overtakes: bool) -> list[str]:
    """All that is said when three more come and credit is given for all."""
    for seq in range(3, 6):
        assert device.link.offer(batch(device, seq), 1, overtakes) == []
    return lines(device.link.heard(Ack(0, 10**6), "edge", 2))


def frames(*seqs: int) -> list[str]:
    """These batches as they go out after the first."""
    return [f"to edge: Data {number}: q o {seq}, 1 rows" for number, seq in enumerate(seqs, start=2)]


@pytest.mark.parametrize(
    ("backlog", "order"), [("beside", [3, 1, 4, 2, 5]), ("first", [1, 2, 3, 4, 5]), ("last", [3, 4, 5, 1, 2])]
)
def test_what_is_new_goes_beside_before_or_after_what_was_kept(backlog: BacklogOrder, order: list[int]) -> None:
    assert sent_after(reached(backlog), overtakes=True) == frames(*order)
    assert sent_after(reached(backlog), overtakes=False) == frames(1, 2, 3, 4, 5)


def test_what_was_new_is_kept_like_all_else_when_the_route_is_cut_again() -> None:
    device = reached("last")
    for seq in (3, 4):
        device.link.offer(batch(device, seq), 1, overtakes=True)
    device.link.tick(SILENT_US + 2)
    assert not device.link.up
    assert [e.header.seq for e in device.link.entries()] == [0, 1, 2, 3, 4]
    assert len(list(device.link.entries())) == 5
    assert [e.header.seq for e in device.link.take_back("q")] == [0, 1, 2, 3, 4]
