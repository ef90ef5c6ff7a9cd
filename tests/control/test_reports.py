"""Reports that a node may not give are refused, and change nothing."""

from __future__ import annotations

import pytest

from rove.control.coordinator import Command
from rove.model.ids import Origin, QueryId
from rove.model.messages import SOURCES_MAX, Tally
from tests.control.test_coordinator import Desk
from tests.lines import lines


def counted(origin: Origin) -> Tally:
    return Tally(query=QueryId("q"), origin=origin, delivered=10**9)


def refused(said: list[Command], why: str) -> bool:
    return lines(said) == [f"to d1: Refused, {why}"]


def test_a_device_counts_its_own_rows_only() -> None:
    desk = Desk()
    own, strange = Origin("s", "d1"), Origin("s", "d2")
    desk.report("d1", "device", "gateway", tallies=(counted(own), counted(Origin("q", stage=3))))
    assert refused(desk.report("d1", "device", "gateway", tallies=(counted(strange),)), "identity")
    assert {tally.origin for tally in desk.machine.membership.tallies()} == {own, Origin("q", stage=3)}
    desk.report("edge", "edge", "gateway", tallies=(counted(strange),))
    assert strange in {tally.origin for tally in desk.machine.membership.tallies()}


@pytest.mark.parametrize("names", [("s/d2",), tuple(f"s{n}/d1" for n in range(SOURCES_MAX + 1))])
def test_a_node_has_its_own_sources_and_a_bounded_number_of_them(names: tuple[str, ...]) -> None:
    desk = Desk()
    assert refused(desk.report("d1", "device", "gateway", origins=names), "malformed")
    assert desk.machine.membership.members == {}
    desk.report("d1", "device", "gateway", origins=tuple(f"s{n}/d1" for n in range(SOURCES_MAX)))
    assert len(desk.machine.streams) == SOURCES_MAX
