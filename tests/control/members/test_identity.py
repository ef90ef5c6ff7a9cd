"""A node reports its own sources only, and a device counts its own rows only."""

from __future__ import annotations

import pytest

from rove.model.errors import BadName
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import (
    PROTOCOL,
    SOURCES_MAX,
    TALLIES_MAX,
    Facts,
    Kind,
    Report,
    SourceHere,
    Tally,
    check_report,
)
from tests.control.desk import COLUMNS, Desk
from tests.lines import lines


@pytest.mark.parametrize(("kind", "refused"), [("device", True), ("edge", False)])
def test_a_device_cannot_count_rows_of_another(kind: Kind, refused: bool) -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.submit()  # it waits for a source, so that nothing is known of its routes
    tally = Tally(query=QueryId("q"), origin=Origin("s", "d2"), delivered=10**6)
    said = desk.report("d1", kind, "gateway", tallies=(tally,))
    assert ("to d1: Refused, identity" in lines(said)) == refused
    assert [each.origin for each in desk.machine.membership.tallies()] == ([] if refused else [tally.origin])


def report(origin: Origin, sources: int = 1, tallies: int = 0) -> Report:
    source = SourceHere(stream="s", origin=origin, columns=COLUMNS)
    tally = Tally(query=QueryId("q"), origin=Origin("s", "d1"))
    facts = Facts(
        kind="device", address="", parents=(), slots=0, memory_bytes=0, sources=(source,) * sources, durable=False
    )
    return Report(
        protocol=PROTOCOL,
        node=NodeId("d1"),
        start=1,
        number=1,
        whole=True,
        facts=facts,
        tallies=(tally,) * tallies,
    )


def test_a_node_cannot_report_what_is_not_its_own() -> None:
    mine = Origin("s", "d1")
    check_report(report(mine))
    for other in (Origin("s", "d2"), Origin("t", "d1"), Origin("s", "d1", stage=3)):
        with pytest.raises(BadName, match="cannot name a source of stream `s` on `d1`"):
            check_report(report(other))


def test_a_report_has_a_bound() -> None:
    mine = Origin("s", "d1")
    check_report(report(mine, SOURCES_MAX, TALLIES_MAX))
    with pytest.raises(BadName, match="tallies at once"):
        check_report(report(mine, tallies=TALLIES_MAX + 1))
    with pytest.raises(BadName, match="sources and"):
        check_report(report(mine, sources=SOURCES_MAX + 1))
