"""A source whose batches can be made again: its position never passes what is not safe, and counts go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rove.data.events import Go, KeepPositions, Produced
from rove.data.settings import WorkerSettings
from rove.data.sources.positions import AHEAD_MAX, Fed, Replayed, SourceAt
from rove.data.sources.sources import PATIENCE_US, Sources
from rove.data.worker import Worker
from rove.model.batch import Header, empty
from rove.model.clock import MICROS_MIN
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, QueryId
from rove.model.messages import PROTOCOL, Data, Peer, Tally, Welcome
from rove.model.spans import Coverage
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, orders, rows
from tests.lines import lines

Q, LATER = QueryId("q"), QueryId("later")


def header(seq: int, born: int = 3) -> Header:
    return Header(origin=ORIGIN, seq=seq, through=seq, watermark=MICROS_MIN, rows=born, born=born, produced_at=0)


def test_a_position_stays_before_the_first_batch_that_is_not_safe() -> None:
    source = Replayed(ORIGIN)
    source.begins(Q, 0)
    for seq in range(4):
        assert source.gives(Q, header(seq), 3) == (True, True)
    source.safe({Q: 2}, 4)
    assert source.at(4) == SourceAt(ORIGIN, 4, {Q: Fed(0, 2, 6)})
    source.safe({Q: 0}, 4)
    assert source.at(4).next == 2, "it never goes back"
    source.safe({}, 4)
    assert source.at(4) == SourceAt(ORIGIN, 4, {Q: Fed(0, 4, 12)})


def test_a_later_start_gives_each_query_what_it_lacks_and_counts_it_once() -> None:
    at = SourceAt(ORIGIN, 9, {Q: Fed(0, 5, 15), LATER: Fed(7, 7, 0)})
    source = Replayed(ORIGIN, at)
    assert at.next == 5
    assert [source.gives(Q, header(seq), 3) for seq in (5, 6)] == [(True, True), (True, True)]
    assert source.begins(LATER, 5) == 7, "it begins where it began before"
    assert source.gives(LATER, empty(ORIGIN, 0, 6, MICROS_MIN).header, 0) == (True, True), (
        "what it missed is told again"
    )
    assert [source.gives(LATER, header(seq), 3) for seq in (5, 6)] == [(False, False), (False, False)]
    assert source.gives(LATER, header(7), 3) == (True, True)


def test_what_an_earlier_start_left_on_the_disk_counts_and_is_not_made_again() -> None:
    source = Replayed(ORIGIN, SourceAt(ORIGIN, 9, {Q: Fed(0, 5, 15)}))
    kept = Coverage()
    kept.add(6, 7)
    source.left_behind({Q: kept})
    assert [source.gives(Q, header(seq), 3) for seq in (5, 6, 7, 8)] == [
        (True, True),
        (True, False),
        (True, False),
        (True, True),
    ]


def test_what_leaves_more_than_once_is_made_again_although_a_part_of_it_is_on_the_disk() -> None:
    source = Replayed(ORIGIN, SourceAt(ORIGIN, 9, {Q: Fed(0, 5, 15)}))
    kept = Coverage()
    kept.add(6, 6)
    source.left_behind({Q: kept})
    assert [source.gives(Q, header(seq), 3, forks=True) for seq in (4, 5, 6)] == [
        (False, False),
        (True, True),
        (True, True),
    ]


def test_a_source_goes_on_under_its_name_when_what_is_on_the_disk_is_known() -> None:
    sources = Sources()
    sources.add("s", ORIGIN, COLUMNS, replays=True, at=SourceAt(ORIGIN, 6, {Q: Fed(2, 4, 6)}))
    assert sources.held(100, 100, known=False) == []
    assert sources.held(100, 100) == [Go(ORIGIN)]
    assert list(sources.missed(Q, [ORIGIN])) == [], "that it began with batch 2 is safe"
    assert sources.named(Produced(ORIGIN, rows(), 0))[1].header.seq == 4
    (here,) = sources.listed()
    assert here.goes_on
    sources.missed(LATER, [ORIGIN])
    assert sources.positions() == [KeepPositions((SourceAt(ORIGIN, 6, {Q: Fed(2, 4, 6)}),))]
    assert sources.positions() == [], "only what has changed is kept"


def test_a_source_waits_for_queries_that_its_node_has_forgotten_until_they_must_have_been_stopped() -> None:
    sources = Sources()
    sources.add("s", ORIGIN, COLUMNS, replays=True, at=SourceAt(ORIGIN, 6, {Q: Fed(2, 4, 6), LATER: Fed(5, 6, 0)}))
    assert sources.complete([Q, LATER], None, 0)
    assert not sources.complete([Q], None, 10 * PATIENCE_US), "the coordinator has not said anything yet"
    assert not sources.complete([Q], 7, 7 + PATIENCE_US)
    assert sources.complete([Q], 7, 8 + PATIENCE_US)
    assert [at.fed for kept in sources.positions() for at in kept.positions] == [{Q: Fed(2, 4, 6)}]


def test_a_source_that_goes_on_has_a_line_before_it_has_counted_a_row() -> None:
    """The coordinator has counts of the earlier start for it, and must not add them to those that come."""
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device"), 2)
    device.accounts.goes_on(SourceAt(ORIGIN, 3, {Q: Fed(0, 0, 0)}))
    assert device.report().tallies == (Tally(query=Q, origin=ORIGIN),)


def reading(start: int, at: SourceAt | None) -> Worker:
    """A device that reads a file, has little room, and has not reached its parent yet."""
    settings = WorkerSettings(
        node=NodeId("device"), kind="device", parents=(NodeId("west"),), memory_bytes=4_000, evict="fifo"
    )
    device = Worker(settings, start)
    device.add_source("s", ORIGIN, COLUMNS, replays=True, at=at)
    peers = (Peer(node=NodeId("west"), address="there"),)
    device.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=peers), 0)
    return device


def heard(device: Worker) -> list[Header]:
    """The parent hears a device; the headers of the batches that are sent now."""
    welcome = Welcome(PROTOCOL, NodeId("west"), 7, device.start, 0, 10**6)
    said = device.handle(Arrived("west", welcome), 1_000)
    sent = [each.message for each in said if isinstance(each, Send)]
    found = [message.header for message in sent if isinstance(message, Data)]
    *kept, ack = (each for each in said if not (isinstance(each, Send) and isinstance(each.message, Data)))
    assert lines([ack]) == ["to west: Ack 0"], "beside the batches it says only what it has heard"
    assert all(isinstance(each, KeepPositions) for each in kept)
    return found


def test_a_position_is_kept_before_batches_are_sent_that_no_start_has_sent_before() -> None:
    device = reading(1, None)
    heard(device)
    kept: list[tuple[int, SourceAt]] = []
    for seq in range(60):
        sent = device.handle(Produced(ORIGIN, rows(), seq), 2_000 + seq)
        assert isinstance(sent[-1], Send)
        kept += [(seq, at) for each in sent[:-1] if isinstance(each, KeepPositions) for at in each.positions]
        assert kept[-1][1].sent > seq
        assert sum(not isinstance(each, Send) for each in sent) <= 1
    assert [seq for seq, _ in kept] == [0, 5, 16, 39], "few batches wait for the disk"


def test_numbers_are_reserved_when_positions_are_kept_anyway_and_within_a_bound() -> None:
    source = Replayed(ORIGIN)
    assert source.sends(header(0))
    for seq in range(1, 5):
        assert not source.sends(header(seq))
    source.safe({}, 5)
    assert source.at(5).sent == 13, "twice as many as since the last time"
    source.safe({}, 5)
    assert source.at(5).sent == 13, "nothing was sent since"
    for seq in range(5, 3_000):
        source.sends(header(seq))
        source.safe({}, seq + 1) if seq % 1_000 == 0 else None
        assert seq < source.at(seq + 1).sent <= seq + 1 + AHEAD_MAX
    later = Replayed(ORIGIN, source.at(3_000))
    assert later.sent_before(source.at(3_000).sent - 1)
    assert not later.sent_before(source.at(3_000).sent)
    assert later.at(3_000).sent == source.at(3_000).sent


def test_batches_that_may_have_arrived_before_a_restart_are_not_merged_with_later_ones() -> None:
    """Whoever has taken batch 0 before drops its header, and counts the others."""
    device, position = reading(1, None), SourceAt(ORIGIN, 0)
    heard(device)
    for each in device.handle(Produced(ORIGIN, rows(), 0), 2_000):
        position = each.positions[0] if isinstance(each, KeepPositions) else position
    again = reading(2, position)
    for seq in range(100):
        again.handle(Produced(ORIGIN, rows(), seq), seq)
    headers = heard(again)
    evicted = [(h.seq, h.through, h.evicted) for h in headers if h.evicted]
    apart, merged = evicted[: position.sent], evicted[position.sent :]
    assert apart == [(seq, seq, 2) for seq in range(position.sent)]
    assert [seq for seq, _, _ in merged] == [position.sent], "all others are merged"
    assert sum(h.evicted + h.born for h in headers) == 200


@given(st.data())
def test_whatever_dies_every_batch_is_counted_once_and_none_that_is_lost_is_passed(data: st.DataObject) -> None:
    """A twin: the set of batches that are safe. At each crash some of the others are left on the disk. The rest is
    gone, and must be made again."""
    at: SourceAt | None = None
    left = set[int]()
    first, safe, taken = data.draw(st.integers(0, 4)), set[int](), dict[int, int]()
    for _ in range(data.draw(st.integers(1, 5))):
        source = Replayed(ORIGIN, at)
        number = 0 if at is None else at.next
        begins = at.fed[Q].first if at is not None and Q in at.fed else None
        counted = 0 if at is None or Q not in at.fed else at.fed[Q].produced
        here = set(left)
        source.left_behind({Q: covered(left)})
        for _ in range(data.draw(st.integers(0, 12))):
            safe |= set(data.draw(st.lists(st.sampled_from(sorted(here)), max_size=2))) if here else set()
            if begins is not None:
                source.safe({Q: min(here - safe)} if here - safe else {}, number)
            if begins is None and number >= first:
                begins = number
                assert source.begins(Q, number) == number
                at = source.at(number)  # stored before anything is sent
            if begins is not None:
                counts, gets = source.gives(Q, header(number, number + 1), number + 1)
                counted += (number + 1) * counts
                if gets:
                    taken[number] = taken.get(number, 0) + (number not in safe)
                    here.add(number)
            number += 1
            if begins is not None:
                made = range(begins, number)
                assert counted == sum(each + 1 for each in made), "as many rows as were made"
            if data.draw(st.booleans()):
                at = source.at(number)
        left = {number for number in sorted(here - safe) if data.draw(st.booleans())}
        if at is not None and Q in at.fed:
            assert set(range(at.fed[Q].first, at.fed[Q].next)) <= safe


def covered(numbers: set[int]) -> Coverage:
    found = Coverage()
    for number in sorted(numbers):
        found.add(number, number)
    return found
