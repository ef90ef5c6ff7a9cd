"""A device that is away: what it keeps, what it evicts, and what it reports when it is back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

import rove
from rove.control.members.accounts import account_lines
from rove.data.events import Evicted, Produced, Remember
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Ack, Data, Fragment, Hello, Orders, Peer, Tally, Welcome
from rove.plan import codec
from rove.plan.stages import Stages
from tests.data.plans import named, plans_of
from tests.data.test_strangers import KNOWN, UP, part
from tests.data.test_strangers import SCHEMA as KEPT_SCHEMA
from tests.data.test_worker import COLUMNS, ORIGIN, alone, fragment, orders, rows
from tests.lines import line, lines


def kept(before: Fragment) -> Remember:
    """What a device had kept that ran one fragment."""
    return Remember((before,), (Peer(node=NodeId("west"), address="there"),), plans_of(before))


def heard(device: Worker) -> list[Header]:
    """Somebody hears a device; the headers of what it sends, and nothing but its ack behind them."""
    *frames, last = device.handle(Arrived("west", Welcome(PROTOCOL, NodeId("west"), 7, 1, 0, 10**6)), 1_000)
    assert line(last) == "to west: Ack 0"
    headers = [f.message.header for f in frames if isinstance(f, Send) and isinstance(f.message, Data)]
    assert len(headers) == len(frames)
    return headers


@pytest.mark.parametrize("evict", ["fifo", "query_aware", "priority"])
def test_a_device_that_is_away_makes_room_and_says_later_what_went(evict: str) -> None:
    device = alone(memory_bytes=4_000, evict=evict)
    for n in range(100):
        commands = device.handle(Produced(ORIGIN, rows(), n), n)
        assert all(isinstance(c, Evicted) for c in commands), "no source waits"
        assert device.store.bytes <= 4_000
    (tally,) = device.report().tallies
    assert tally.produced == 200
    assert 0 < tally.buffered < 30
    headers = heard(device)
    assert (headers[0].seq, headers[0].rows, headers[0].evicted) == (0, 0, 200 - tally.buffered)
    assert [h.seq for h in headers[1:]] == list(range(headers[0].through + 1, 100))
    assert sum(h.born for h in headers) == tally.buffered


def test_a_query_that_ends_on_the_device_goes_on_while_another_waits() -> None:
    device = alone()
    here = replace(fragment(None, (ORIGIN,)), query=QueryId("alerts"))
    device.handle(orders(here), 0)
    for n in range(10):
        device.handle(Produced(ORIGIN, rows(), n), n)
    counted = {t.query: (t.produced, t.delivered, t.buffered) for t in device.report().tallies}
    assert counted == {"alerts": (20, 20, 0), "q": (20, 0, 20)}


@pytest.mark.parametrize("known", [True, False])
def test_what_went_leaves_nothing_behind_however_long_a_device_is_away(known: bool) -> None:
    settings = WorkerSettings(node=NodeId("device"), kind="device", parents=(NodeId("west"),), memory_bytes=4_000)
    device = Worker(replace(settings, evict="fifo", compress="off"), 2)
    device.add_source("s", ORIGIN, COLUMNS)
    peers = (Peer(node=NodeId("west"), address="there"),)
    if known:
        device.handle(orders(fragment(NodeId("west"), (ORIGIN,)), peers=peers), 0)
    else:
        device.remembered(kept(fragment(NodeId("west"), (ORIGIN,))))
    for n in range(1_000):
        device.handle(Produced(ORIGIN, rows(), n), n)
    (running,) = device.running().values()
    waiting = running.kept if running.holds else device.links()[NodeId("west")]._backlog
    assert len(device.store) < 30
    assert len([*waiting]) < 3 * len(device.store)


def test_rows_that_leave_at_two_stages_stay_within_the_store() -> None:
    stream = rove.Session.local().stream("s", schema=COLUMNS)
    stages = Stages.of({"small": stream.where("value > 0").plan, "large": stream.where("value < 5").plan})
    both = replace(fragment(NodeId("west"), (ORIGIN,)), plan=named(codec.encode(stages)), runs=(Stage(1), Stage(2)))
    device = Worker(
        WorkerSettings(
            node=NodeId("device"), kind="device", parents=(NodeId("west"),), memory_bytes=4_000, evict="fifo"
        ),
        1,
    )
    device.add_source("s", ORIGIN, COLUMNS)
    device.handle(orders(both, peers=(Peer(node=NodeId("west"), address="there"),)), 0)
    for n in range(300):
        device.handle(Produced(ORIGIN, rows(), n), n)
        assert device.store.bytes <= 4_000
    assert device.store.rows() != {}, "some rows are kept"


@pytest.mark.parametrize("evict", ["fifo", "query_aware", "priority"])
def test_a_batch_that_is_larger_than_the_store_goes_at_once_and_is_counted(evict: str) -> None:
    device = alone(memory_bytes=1_000, evict=evict)
    for n in range(3):
        commands = device.handle(Produced(ORIGIN, rows(500), n), n)
        assert lines(commands) == ["pack rows of q 0", f"evicted q {ORIGIN} {n}, 500 rows"]
    (tally,) = device.report().tallies
    assert (tally.produced, tally.buffered) == (1_500, 0)
    assert lines(device.handle(Arrived("west", Welcome(PROTOCOL, NodeId("west"), 7, 1, 0, 10**6)), 1_000)) == [
        f"to west: Data 1: q {ORIGIN} 0 to 2, 0 rows, 1500 evicted",
        "to west: Ack 0",
    ]


def test_a_batch_that_is_larger_than_the_store_makes_its_source_wait_and_gets_through() -> None:
    device = alone(memory_bytes=1_000)
    commands = device.handle(Produced(ORIGIN, rows(500), 0), 0)
    assert lines(commands) == ["pack rows of q 0", f"{ORIGIN} waits"]
    device.handle(Tick(), 1)
    assert lines(device.handle(Arrived("west", Welcome(PROTOCOL, NodeId("west"), 7, 1, 0, 10**6)), 2)) == [
        f"to west: Data 1: q {ORIGIN} 0, 500 rows",
        "to west: Ack 0",
    ]
    assert device.handle(Arrived("west", Ack(1, 10**6)), 3) == []
    assert lines(device.handle(Tick(), 4)) == ["to west: Ack 0", f"{ORIGIN} goes on"]


@pytest.mark.parametrize("jump_us", [-(10**15), 10**15])
def test_a_clock_that_jumps_while_a_device_is_away_loses_nothing_and_breaks_no_promise(jump_us: int) -> None:
    device = alone()
    for n, wall in enumerate((10**15, 10**15 + jump_us, 10**15 + 1)):
        device.handle(Produced(ORIGIN, rows(), wall, promise=wall - 10**6), n)
    headers = heard(device)
    assert [h.seq for h in headers] == [0, 1, 2]
    assert sum(h.born for h in headers) == 6
    marks = [h.watermark for h in headers]
    assert marks == sorted(marks)


def test_a_device_that_starts_where_nobody_hears_it_runs_what_it_ran_before() -> None:
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(NodeId("west"),)), 2)
    device.add_source("s", Origin("s", "device", 2), COLUMNS)
    before = fragment(NodeId("west"), (Origin("s", "device", 1),))
    before = replace(before, waits={Stage(0): (Origin("s", "device", 1), Origin("s", "other", 1))})
    device.remembered(kept(before))
    device.handle(Produced(Origin("s", "device", 2), rows(), 0), 1)
    assert device.store.rows() == {("q", Origin("s", "device", 2)): 2}
    (running,) = device.running().values()
    assert running.fragment.waits == {Stage(0): (Origin("s", "device", 2), Origin("s", "other", 1))}


def test_rows_of_sources_that_nobody_above_knows_yet_are_kept_until_they_are_known() -> None:
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(NodeId("west"),)), 2)
    origin = Origin("s", "device", 2)
    device.add_source("s", origin, COLUMNS)
    before = fragment(NodeId("west"), (Origin("s", "device", 1),))
    device.remembered(kept(before))
    for n in range(2):
        device.handle(Produced(origin, rows(), 0), n)
    device.handle(Tick(), 2)
    there = device.handle(Arrived("west", Welcome(PROTOCOL, NodeId("west"), 7, 2, 0, 10**6)), 3)
    assert lines(there) == ["to west: Ack 0"]
    now = replace(before, version=Version(2), feeds=(origin,), waits={Stage(0): (origin,)})
    assert lines(device.handle(orders(now, peers=(Peer(node=NodeId("west"), address="there"),)), 4)) == [
        f"to west: Data 1: q {origin} 0, 2 rows",
        f"to west: Data 2: q {origin} 1, 2 rows",
    ]
    assert lines(device.handle(Produced(origin, rows(), 0), 5)) == [f"to west: Data 3: q {origin} 2, 2 rows"]


def test_a_query_that_is_stopped_loses_what_was_kept_until_it_is_known() -> None:
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(NodeId("west"),)), 2)
    device.add_source("s", Origin("s", "device", 2), COLUMNS)
    device.remembered(kept(fragment(NodeId("west"), (Origin("s", "device", 1),))))
    device.handle(Produced(Origin("s", "device", 2), rows(), 0), 1)
    device.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), 2)
    (tally,) = device.report().tallies
    assert (tally.produced, tally.lost, tally.buffered) == (2, 2, 0)


def test_whoever_wants_to_know_is_told_of_a_route_that_is_cut_and_there_again() -> None:
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(NodeId("west"),)), 1)
    device.handle(orders(peers=(Peer(node=NodeId("west"), address="there"),)), 0)

    def told(now: int) -> list[str]:
        return lines(device.handle(Tick(), now))

    reached, not_reached = (f"to coordinator: News, reaches {who}" for who in ("west", "nothing"))
    assert told(1) == ["to west: Hello, start 1", "to coordinator: Report, runs nothing, reaches nothing"]
    device.handle(Arrived("west", Welcome(PROTOCOL, NodeId("west"), 7, 1, 0, 10**6)), 2)
    assert told(1_000_000) == ["to west: Ack 0", "to west: Beat, sent 0, acked 0", reached], "no news at first"
    hello = "to west: Hello, start 1, has 0 frames of start 7"
    assert told(5_000_000) == [hello, "cut from west", not_reached]
    assert told(6_000_000) == [hello, "to coordinator: News, nothing new"]
    device.handle(Arrived("west", Welcome(PROTOCOL, NodeId("west"), 7, 1, 0, 10**6)), 8_000_000)
    assert told(9_000_000) == ["to west: Beat, sent 0, acked 0", "met west", reached]


@pytest.mark.parametrize("answers", [True, False])
def test_a_route_that_is_left_while_it_is_there_is_not_cut(answers: bool) -> None:
    west, east = NodeId("west"), NodeId("east")
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(west, east)), 1)
    device.add_source("s", ORIGIN, COLUMNS)
    peers = tuple(Peer(node=p, address="there") for p in (west, east))
    device.handle(orders(fragment(west, (ORIGIN,)), peers=peers), 0)
    device.handle(Tick(), 1)
    for parent in (west, east):
        device.handle(Arrived(parent, Welcome(PROTOCOL, parent, 7, 1, 0, 10**6)), 2)
    device.handle(Tick(), 500_000)
    device.handle(Produced(ORIGIN, rows(), 0), 600_000)  # sent, and not acked when the route turns
    device.handle(orders(replace(fragment(east, (ORIGIN,)), version=Version(2)), peers=peers), 700_000)

    told = device.handle(Tick(), 1_000_000)
    assert lines(told) == [
        "to west: Hello, start 1'",
        "to coordinator: News, runs q v2",
    ]
    hello = told[0].message if isinstance(told[0], Send) else None
    assert isinstance(hello, Hello)
    if answers:
        device.handle(Arrived(west, Welcome(PROTOCOL, west, 7, hello.start, 0, 10**6)), 1_100_000)
    device.handle(Arrived(east, Ack(1, 10**6)), 2_500_000)
    there = ["to west: Ack 0", "to west: Beat, sent 0, acked 0", "to east: Beat, sent 1, acked 1"]
    cut = ["to west: Hello, start 1'", "to east: Beat, sent 1, acked 1", "cut from west"]
    assert lines(device.handle(Tick(), 3_500_000)) == [
        *(there if answers else cut),
        "to coordinator: News, nothing new" if answers else "to coordinator: News, reaches east",
    ]


def test_a_query_that_is_stopped_keeps_count_of_what_was_evicted() -> None:
    device = alone(memory_bytes=4_000, evict="fifo")
    evicted = 0
    for n in range(100):
        for command in device.handle(Produced(ORIGIN, rows(), n), n):
            assert isinstance(command, Evicted)
            evicted += command.rows
    device.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), 200)
    (tally,) = device.report().tallies
    assert (tally.produced, tally.buffered, tally.evicted, tally.lost) == (200, 0, evicted, 200 - evicted)


def test_what_may_have_arrived_is_not_called_lost_by_a_device_whose_query_is_stopped() -> None:
    west, east = NodeId("west"), NodeId("east")
    device = Worker(WorkerSettings(node=NodeId("device"), kind="device", parents=(west, east)), 1)
    device.add_source("s", ORIGIN, COLUMNS)
    peers = (Peer(node=west, address="there"), Peer(node=east, address="there too"))
    device.handle(orders(fragment(west, (ORIGIN,)), peers=peers), 0)
    device.handle(Arrived("west", Welcome(PROTOCOL, west, 7, 1, 0, 10**6)), 1)
    device.handle(Produced(ORIGIN, rows(), 2), 2)  # sent, and not acked when the route turns
    device.handle(orders(replace(fragment(east, (ORIGIN,)), version=Version(2)), peers=peers), 4)
    device.handle(Produced(ORIGIN, rows(), 2), 5)  # never sent
    device.handle(Arrived("coordinator", Orders(PROTOCOL, (), (QueryId("q"),))), 6)
    here = device.report().tallies
    assert [(t.produced, t.lost) for t in here] == [(4, 2)]
    for arrived in (0, 2):
        there = Tally(query=QueryId("q"), origin=ORIGIN, delivered=arrived)
        (line,) = account_lines((*here, there), 0, {ORIGIN}, stopped={"q"})
        assert (line.produced, line.delivered, line.lost, line.in_flight) == (4, arrived, 4 - arrived, 0)


@pytest.mark.parametrize("evict", ["fifo", "query_aware", "priority"])
def test_rows_that_come_too_late_for_a_window_on_a_device_that_is_away_have_a_bound(evict: str) -> None:
    given = WorkerSettings(
        node=NodeId("device"), kind="device", parents=(UP,), memory_bytes=100_000, evict=evict, compress="off"
    )
    device = Worker(given, 1)
    device.add_source("s", KNOWN, "key string, ts timestamp, value bigint")
    device.handle(orders(replace(part(UP), feeds=(KNOWN,)), peers=(Peer(node=UP, address="x"),)), 0)
    for n in range(500):  # a clock that was wrong: every second batch is from long ago
        ts = 10**9 + n * 10**6 if n % 2 == 0 else 10**6
        made = pa.record_batch([["k"] * 50, [ts] * 50, [1] * 50], schema=KEPT_SCHEMA)
        device.handle(Produced(KNOWN, made, n), n)
        assert device.store.bytes <= 100_000
    tally = next(t for t in device.report().tallies if t.origin == KNOWN)
    assert tally.produced == tally.delivered + tally.open + tally.evicted + tally.late == 500 * 50
    assert tally.evicted > 0
    assert sum(e.header.born for e in device.store if e.header.late) == tally.late
