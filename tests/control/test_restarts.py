"""What a coordinator has decided is what it knows after a restart: who is absent, who may leave, which routes there
are."""

from __future__ import annotations

import pytest

from rove.control.asks.requests import Named, Submit
from rove.control.commands import Command, Keep
from rove.control.coordinator import Coordinator
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Goodbye, Sink
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.control.desk import COLUMNS, Desk
from tests.lines import lines

Q = QueryId("q")
PATIENCE_US = 20_000_000


class Kept(Desk):
    """A desk with a catalog. Its nodes report as long as they are there."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        super().__init__()

    def obey(self, commands: list[Command]) -> list[Command]:
        for command in commands:
            if isinstance(command, Keep) and command.record is None:
                self.kept.pop((command.kind, command.name), None)
            elif isinstance(command, Keep) and command.record is not None:
                self.kept[command.kind, command.name] = command.record
        return super().obey(commands)

    def restart(self) -> None:
        self.machine = Coordinator()
        self.machine.restore([(kind, name, record) for (kind, name), record in self.kept.items()])
        self.machine.validate()

    def tick(self, later_us: int = 1_000_000) -> None:
        self.now += later_us
        self.obey(self.machine.handle(Tick(), self.now))

    def submit_with(self, replication: int) -> None:
        import rove

        plan = optimize(rove.Session.local().stream("s", schema=COLUMNS).where("value > 1").plan)
        submit = Submit(
            name=Q,
            plan=codec.encode(Stages.of({"out": plan})),
            sink=Sink(kind="log"),
            patience_us=PATIENCE_US,
            replication=replication,
        )
        assert not self.ask("submit", submit).trouble


def city(replication: int = 1) -> Kept:
    """A gateway, two cells, and a device that reaches both; everybody runs its part."""
    desk = Kept()
    desk.report("gateway", "gateway")
    for cell in ("west", "east"):
        desk.report(cell, "edge", "gateway")
    device(desk, "west", "east")
    desk.submit_with(replication)
    for _ in range(3):
        all_but_the_device(desk)
        device(desk, "west", "east")
    assert desk.machine.queries[Q].rollout.pending == {}
    return desk


def all_but_the_device(desk: Kept) -> list[Command]:
    said = desk.report("gateway", "gateway")
    return [*said, *(each for cell in ("west", "east") for each in desk.report(cell, "edge", "gateway"))]


def device(desk: Kept, *reaches: str) -> list[Command]:
    return desk.report("d", "device", "west", "east", origins=("s/d",), reaches=reaches)


def test_nobody_is_absent_because_the_coordinator_was_away() -> None:
    desk = city()
    desk.restart()
    desk.now += 10 * PATIENCE_US
    desk.tick()
    assert desk.absent() == ()
    all_but_the_device(desk)
    desk.tick(PATIENCE_US // 2)
    assert desk.absent() == ()


@pytest.mark.parametrize("restarts", [False, True])
def test_who_is_absent_stays_so_until_it_is_back(restarts: bool) -> None:
    desk = city()
    left = desk.now
    while desk.now < left + 2 * PATIENCE_US:
        all_but_the_device(desk)
        desk.tick()
    assert desk.absent() == ("d",)
    assert desk.waits["gateway"] == {}
    if restarts:
        desk.restart()
        assert desk.absent() == ("d",)
    for _ in range(3):
        all_but_the_device(desk)
        device(desk, "west", "east")
        desk.tick(1)
    assert desk.absent() == ()
    assert [origin.node for origins in desk.waits["gateway"].values() for origin in origins] == ["d"]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_node_leaves_when_its_senders_have_said_that_they_send_elsewhere(restarts: bool) -> None:
    desk = city()
    first = desk.deployment.fragments[NodeId("d")].next
    other = "west" if first == "east" else "east"
    before = dict(desk.running["d"])
    device(desk, other)
    assert desk.deployment.fragments[NodeId("d")].next == other
    assert desk.running["d"] != before
    desk.running["d"] = before  # the orders did not arrive
    if restarts:
        desk.restart()
        desk.report("gateway", "gateway")
    assert f"to {first}: Orders, leave q" not in lines(all_but_the_device(desk))
    for _ in range(3):
        device(desk, other)
    assert f"to {first}: Orders, leave q" in lines(all_but_the_device(desk))


def test_alternative_routes_are_known_after_a_restart() -> None:
    desk = city(replication=2)
    before = dict(desk.deployment.fragments)
    assert len(before[NodeId("d")].others) == 1
    desk.restart()
    assert desk.deployment.fragments == before


def test_a_query_that_was_stopped_and_a_node_that_was_removed_stay_so() -> None:
    desk = city()
    desk.obey(desk.machine.handle(Arrived(b"d", Goodbye(NodeId("d"))), desk.now))
    assert not desk.ask("stop", Named(name=Q)).trouble
    desk.restart()
    assert NodeId("d") not in desk.machine.membership.members
    assert desk.machine.queries[Q].stopped
    assert "to gateway: Orders, stop q" in lines(desk.report("gateway", "gateway"))
