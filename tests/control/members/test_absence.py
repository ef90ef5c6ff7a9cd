"""A node whose rows have no route counts as away, and so do the nodes behind it."""

from __future__ import annotations

from rove.model.events import Tick
from rove.model.ids import QueryId
from tests.control.desk import Desk


def test_who_is_behind_a_relay_that_is_cut_off_is_as_absent_as_the_relay() -> None:
    desk = Desk()

    def all_report(cut: bool) -> None:
        desk.report("gateway", "gateway")
        desk.report("e1", "edge", "gateway", reaches=() if cut else ("gateway",))
        desk.report("d1", "device", "e1", origins=("s/d1",))
        desk.report("d2", "device", "gateway", origins=("s/d2",))
        desk.obey(desk.machine.handle(Tick(), desk.now))

    all_report(cut=False)
    desk.submit()
    for _ in range(4):
        all_report(cut=False)
    patience_us, began = desk.machine.queries[QueryId("q")].patience_us(), desk.now
    while desk.now < began + patience_us + 20_000_000:
        all_report(cut=True)
    assert desk.absent() == ("d1", "e1")
    for _ in range(3):
        all_report(cut=False)
    assert desk.absent() == ()


def test_who_was_given_another_route_is_not_cut_off() -> None:
    desk = Desk()

    def all_report(over: str, e2_works: bool) -> None:
        desk.report("gateway", "gateway")
        desk.report("e1", "edge", "gateway", reaches=("gateway",))
        desk.report("e2", "edge", "gateway", reaches=("gateway",) if e2_works else ())
        desk.report("d1", "device", "e1", "e2", origins=("s/d1",), reaches=(over,))
        desk.obey(desk.machine.handle(Tick(), desk.now))
        desk.machine.validate()

    def away() -> list[str]:
        return [node for nodes in desk.machine.absence.away.values() for node in nodes]

    all_report("e1", e2_works=True)
    desk.submit()
    for _ in range(3):
        all_report("e1", e2_works=True)
    assert away() == []
    for _ in range(3):
        all_report("e2", e2_works=False)
    assert away() == ["d1"]
    for _ in range(3):
        all_report("e2", e2_works=True)
    assert away() == []
