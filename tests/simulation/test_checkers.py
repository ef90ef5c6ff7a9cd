"""Checkers notice what they are for, and each draw makes the history that it should."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rove.control.members.membership import Member, NodeRecord
from rove.control.members.missing.missing import Doubt
from rove.data.accounts import Accounts
from rove.data.log.segments.commands import Sync, SyncFolder, Write
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Batch, Header
from rove.model.errors import BrokenInvariant
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Ack, Sink
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.sim.books import AckedIsSafe, _check_report
from rove.sim.checkers import BrokenLaw, MissingIsNowhere, NothingLost
from rove.sim.disk import SimDisk
from rove.sim.draws import damage, faults, forger, liar, surprises
from rove.sim.draws.faults import HEAL_US
from rove.sim.nodes import SimNode, SimSource
from rove.sim.queries import SECOND_US, START_US, some_rows, windows
from rove.sim.rows import Made, _compare, _may_have_gaps, check_names, doubtful_nodes, made_for, run
from rove.sim.scenario import build, live, settled
from rove.sim.shelf import SimShelf
from rove.sim.world import World
from tests.data.disk_driver import done_at_once
from tests.data.ends.test_counting_again import end
from tests.data.test_worker import alone, data, rows
from tests.simulation.story import Story

Q, SINK = QueryId("q"), Sink(kind="log")
READER, OTHER = Origin("readings", "a"), Origin("readings", "b")
HEARD = Origin("readings", "c")


def batch(origin: Origin, seq: int) -> Batch:
    return Batch(Header(origin=origin, seq=seq, through=seq))


@pytest.mark.parametrize("numbers", [(0, 2), (0, 1, 1)])
def test_a_gap_and_an_overlap_of_numbers_are_noticed(numbers: tuple[int, ...]) -> None:
    world = World(Random(1))
    check_names(world, Q, "out", {READER: [batch(READER, seq) for seq in range(3)]})
    with pytest.raises(BrokenLaw, match="out of `q` has"):
        check_names(world, Q, "out", {READER: [batch(READER, seq) for seq in numbers]})


def made() -> Made:
    random = Random(1)
    return {
        "readings": {
            origin: [some_rows(random, origin.node, START_US + n * 1_000_000, 4, 0) for n in range(12)]
            for origin in (READER, OTHER, HEARD)
        }
    }


def test_a_result_without_doubtful_rows_is_compared_and_one_with_them_is_not() -> None:
    stages = windows(Random(1), "readings", 5)
    plan = merge_aggregates(stages.operators[stages.outputs[0][1]])
    arrived = pa.Table.from_batches([b.data for b in run(plan, made()) if b.data is not None])
    whole = arrived.to_batches()
    assert _compare(Q, plan, made(), set(), [Batch(Header(origin=READER, seq=0, through=0), b) for b in whole]).rows > 8

    def without(key: str) -> list[Batch]:
        kept = arrived.filter(pc.not_equal(arrived["key"], key))
        return [Batch(Header(origin=READER, seq=0, through=0), b) for b in kept.to_batches()]

    assert _compare(Q, plan, made(), {"b"}, without("b")).rows > 0
    with pytest.raises(BrokenLaw, match="rows missing"):
        _compare(Q, plan, made(), {"b"}, without("a"))


@pytest.mark.parametrize(("died", "rows_expected"), [(False, [4, 0]), (True, [4, 4])])
def test_rows_that_a_device_evicted_may_arrive_if_it_died_and_made_them_again(
    died: bool, rows_expected: list[int]
) -> None:
    world = World(Random(1))
    source = SimSource("readings", READER, 1, 4, 0, made()["readings"][READER][:2], {Q: 0}, died=died, replays=True)
    world.add_node(WorkerSettings(node=NodeId("a"), kind="device"), durable=True, sources=(source,))
    world.evicted.add((Q, READER, 1))
    assert [each.num_rows for each in made_for(world, Q, known=True)["readings"][READER]] == rows_expected


@pytest.mark.parametrize(("forgot", "doubtful"), [(False, set()), (True, {"b"})])
def test_rows_late_for_their_own_origin_may_be_in_results_if_its_watermark_was_forgotten(
    forgot: bool, doubtful: set[str]
) -> None:
    world, stages = World(Random(1)), windows(Random(1), "readings", 5)
    for origin, batches in made()["readings"].items():
        given = [*reversed(batches)] if origin == OTHER else batches  # the clock of one device goes back
        source = SimSource("readings", origin, 1, 4, 0, given, {Q: 0})
        world.add_node(WorkerSettings(node=NodeId(origin.node), kind="device"), sources=(source,))
    world.first[Q] = {READER, OTHER, HEARD}
    world.forgot |= {Q} if forgot else set()
    plan = merge_aggregates(stages.operators[stages.outputs[0][1]])
    assert doubtful_nodes(world, Q, plan, stages, known=True) == doubtful


@pytest.mark.parametrize("durable", [False, True])
def test_nobody_answers_for_what_an_operator_held_that_died_without_a_disk(durable: bool) -> None:
    """A relay has a batch that an operator below it made. First the maker dies, then the relay."""
    world, checker = World(Random(1)), NothingLost()
    low, high = (
        world.add_node(WorkerSettings(node=NodeId(name), kind="edge"), durable=durable and name == "low")
        for name in ("low", "high")
    )
    header = Header(origin=Origin("q", "low", 1, 3), seq=4, through=4, stage=3, rows=1, born=1, query="q")
    low.start().store.put(header, b"12345678")
    kept = high.start().store.put(header, b"12345678")
    checker.stepped(world, high)
    world.kill(low.name)
    low.start()
    assert high.worker is not None
    high.worker.store.drop(kept)
    if durable:
        with pytest.raises(BrokenLaw, match="high let go of"):
            checker.stepped(world, high)
    else:
        checker.stepped(world, high)
    assert _may_have_gaps(world, header.origin) is not durable


def test_a_batch_is_missing_if_no_node_holds_it_and_no_longer_when_a_node_has_said_that_it_does() -> None:
    world, checker, other = World(Random(1)), MissingIsNowhere(), MissingIsNowhere()
    machine, node = world.coordinator.start(), world.add_node(WorkerSettings(node=NodeId("edge"), kind="edge"))
    member = Member(NodeRecord(node=node.name, kind="edge", slots=1, memory_bytes=1), start=1)
    machine.membership.members[node.name] = member
    header = Header(origin=READER, seq=4, through=4, rows=1, born=1, query=Q)
    machine.membership.missing._missing[Q, READER] = Doubt(0, (4, 5))
    worker = node.start()
    checker(world)
    worker.store.put(header, b"12345678")
    with pytest.raises(BrokenLaw, match="`readings/a` 4 of `q` is named as missing, and edge holds it"):
        other(world)  # it was held when it was named
    for heard_s, now_s in ((0, 0), (1, 10), (3, 10), (3, 12)):  # it was computed again later, at second 0
        member.heard_us, world.now = heard_s * SECOND_US, now_s * SECOND_US
        checker(world)
    world.now += 1
    with pytest.raises(BrokenLaw, match="is named as missing"):
        checker(world)


def delivered(shelf: SimShelf) -> Worker:
    """A gateway with one batch in its log."""
    worker = end(shelf, 1, SINK)
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 2)
    done_at_once(worker, shelf, worker.handle(Tick(), 3), 3)
    return worker


def test_a_batch_that_was_acked_and_is_gone_after_a_crash_is_noticed() -> None:
    world, checker = World(Random(1)), AckedIsSafe()
    node = world.add_node(WorkerSettings(node=NodeId("gateway"), kind="gateway"), durable=True)
    shelf = node.shelf
    assert shelf is not None
    for disk, lost in ((shelf, False), (SimShelf(Random(2)), True)):
        node.worker, node.start_number = delivered(shelf), 1
        checker.stepped(world, node)
        header = data(1, 0).header
        checker.told(world, node.name, Arrived(b"c", data(1, 0)), [Send(b"c", Ack(1, 10))])
        assert node.worker.took(Q, header.origin, 0)
        node.worker, node.start_number = end(disk, 2, SINK), 2
        if lost:
            with pytest.raises(BrokenLaw, match="had acked `s/device` 0 of `q`, and has lost it in a crash"):
                checker.stepped(world, node)
        else:
            checker.stepped(world, node)


def test_a_report_that_leaves_out_what_a_node_holds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = alone()
    node = SimNode(worker.settings, None, [], 0, worker=worker)
    world = World(Random(1))
    worker.store.put(data(1, 0).header, b"12345678", None, 0)
    _check_report(world, node, worker)
    monkeypatch.setattr(Accounts, "_held", lambda *_: {})
    with pytest.raises(BrokenLaw, match="device holds"):
        _check_report(world, node, worker)


def test_a_disk_that_lies_has_lost_what_it_synced_when_the_power_goes() -> None:
    kept = []
    for lies in (False, True):
        disk = SimDisk(Random(5))
        disk.lies = lies
        for command in (Write("file", 0, (b"x" * 640,)), Sync("file"), SyncFolder()):
            disk.execute(command)
        disk.crash()
        kept.append("file" in disk.sizes() and disk.read("file", 0, 640) == b"x" * 640)
    assert kept == [True, False]


def test_flipped_bytes_stay_flipped() -> None:
    disk = SimDisk(Random(5))
    assert not disk.flip(Random(1))
    for command in (Write("file", 0, (bytes(640),)), Sync("file"), SyncFolder()):
        disk.execute(command)
    assert disk.flip(Random(1))
    disk.crash()
    assert any(disk.read("file", 0, 640))


def history(
    monkeypatch: pytest.MonkeyPatch, module: object, often: str, draw: Callable[[World, Random], None], seed: int = 9
) -> World:
    """A small history in which a draw happens for certain, to its end."""
    monkeypatch.setattr(module, often, (1,))
    world = build(Random(seed), 5, (surprises.plan_plenty, draw))
    live(world)
    return world


def test_forged_frames_are_refused_and_no_row_suffers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = history(monkeypatch, forger, "FORGED", forger.plan_forger)
    refused = [
        node.worker.refused for node in world.nodes.values() if node.worker is not None and node.name in world.forged
    ]
    assert refused
    assert all({"identity", "malformed"} & each.keys() for each in refused)


def test_a_device_that_lies_about_itself_is_refused_where_no_origin_counts_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = history(monkeypatch, liar, "LIES", liar.plan_liar)
    found = [node.worker.refused for node in world.nodes.values() if node.worker is not None]
    assert any(each.get("malformed") for each in found)


def test_a_message_that_cannot_be_said_breaks_a_law() -> None:
    world = World(Random(1))
    wire = world.network.dial(NodeId("a"), NodeId("b"))
    sent = world.network.send(NodeId("a"), wire, Ack(1, 2), None, 0)
    assert sent is not None
    assert sent[1].message == Ack(1, 2)
    with pytest.raises(BrokenInvariant, match="a cannot say what it wants to say"):
        world.network.send(NodeId("a"), wire, Ack(2**64, 2), None, 0)


@pytest.mark.parametrize(
    ("module", "often", "draw"),
    [
        (surprises, "TWINS", surprises.plan_twins),
        (surprises, "JUMPS", surprises.plan_clocks),
        (surprises, "LATE", surprises.plan_late_joins),
        (damage, "FORGETS", damage.plan_forgotten),
        (damage, "FULL", damage.plan_full),
    ],
)
def test_a_history_with_a_draw_keeps_every_law(
    monkeypatch: pytest.MonkeyPatch, module: object, often: str, draw: Callable[[World, Random], None]
) -> None:
    history(monkeypatch, module, often, draw)


@pytest.mark.parametrize(("often", "draw"), [("DAMAGES", damage.plan_damage), ("LIES", damage.plan_lies)])
def test_what_a_bad_disk_loses_is_named(
    monkeypatch: pytest.MonkeyPatch, often: str, draw: Callable[[World, Random], None]
) -> None:
    assert history(monkeypatch, damage, often, draw, seed=2).hurt


def test_rows_of_open_windows_are_missing_at_the_end_of_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surprises, "FORGETFUL", 1.0)
    world = build(Random(0), 5, (surprises.plan_plenty, surprises.plan_forgetful))
    live(world)
    machine = world.coordinator.machine
    assert machine is not None
    missing = {line.origin: line.missing for line in machine.snapshot(world.now, 0).accounts if line.missing}
    assert missing.keys() & {"readings/below0", "readings/below1"}


def test_a_parent_that_takes_kept_batches_dies_no_later_than_all_heals() -> None:
    class Dies(Random):
        def random(self) -> float:
            return 0.0

    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("device", "device", "gateway")
        story.passes(20)
        faults._move(story.world, Dies(1), NodeId("device"), back=HEAL_US + 4_000_000, ends=HEAL_US)
        story.passes(5)
    gateway = story.world.nodes[NodeId("gateway")]
    assert (story.world.now, gateway.start_number) == (HEAL_US, 2)
    with story.quietly():
        story.passes(10)
    assert gateway.start_number == 2


def test_a_world_is_not_settled_before_the_processes_that_run_have_reported() -> None:
    story = Story()
    with story.quietly():
        story.coordinator()
        story.node("gateway", "gateway", durable=True)
        story.node("edge", "edge", "gateway")
        story.passes(3)
        assert settled(story.world)
        story.kill("edge")
        story.start("edge")
        assert not settled(story.world)
        story.passes(3)
        assert settled(story.world)
