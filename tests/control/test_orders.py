"""A node takes its orders later than they are sent, and may report in between."""

from __future__ import annotations

from rove.control.commands import Command
from rove.control.deployment.part import GONE
from rove.control.order import Numbers
from rove.model.events import Send
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Orders
from tests.control.desk import Desk

Q, E2 = QueryId("q"), NodeId("e2")


class SlowOrders(Desk):
    """A desk where orders to `slow` nodes are on their way until `arrive`."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: tuple[str, ...] = ()
        self.late: list[Command] = []

    def obey(self, commands: list[Command]) -> list[Command]:
        slow = [c for c in commands if isinstance(c, Send) and c.conn in [name.encode() for name in self.slow]]
        self.late += [c for c in slow if isinstance(c.message, Orders)]
        return super().obey([c for c in commands if c not in slow])

    def arrive(self) -> None:
        self.slow, late, self.late = (), self.late, []
        self.obey(late)

    def all_report(self, over: str) -> None:
        self.report("gateway", "gateway")
        self.report("e1", "edge", "gateway")
        self.report("e2", "edge", "gateway")
        self.report("d1", "device", "e1", "e2", origins=("s/d1",), reaches=(over,))

    @property
    def known(self) -> bool:
        """Whether `e2` has, or had, a part in the query, as far as the coordinator knows."""
        return Q in self.machine.deployments.of_node.get(E2, ())


def moved() -> SlowOrders:
    """A device has gone to `e2` and come back, and `e2` has not heard of either."""
    desk = SlowOrders()
    desk.all_report("e1")
    desk.submit()
    for _ in range(3):
        desk.all_report("e1")
    assert not desk.known
    desk.slow = ("e2",)
    desk.all_report("e2")
    assert desk.known
    desk.all_report("e1")
    return desk


def test_a_node_that_does_not_know_its_last_orders_has_not_let_go() -> None:
    desk = moved()
    desk.report("e2", "edge", "gateway")
    assert desk.known
    desk.arrive()
    for _ in range(3):
        desk.all_report("e1")
    assert Q not in desk.running["e2"]
    assert not desk.known


def test_a_sender_that_does_not_know_its_last_orders_may_still_send() -> None:
    desk = moved()
    query = desk.machine.queries[Q]
    assert query.deployment is not None
    query.deployment._senders["gateway"] = {E2: GONE}  # type: ignore[index]
    assert not query.rollout.may_leave(NodeId("gateway"), query.deployment)
    desk.arrive()
    for _ in range(3):
        desk.all_report("e1")
    query.deployment._senders["gateway"] = {E2: GONE}  # type: ignore[index]
    assert query.rollout.may_leave(NodeId("gateway"), query.deployment)


def test_numbers_of_an_earlier_coordinator_do_not_count() -> None:
    orders = Numbers(obeyed=57)
    orders.tells(Q)
    assert orders.next() == 1
    assert not orders.knew(Q)
    orders.obeyed = 1
    assert orders.knew(Q)
