"""Who names the columns of a stream, and for how long."""

from __future__ import annotations

from time import perf_counter

import pytest
from msgspec.structs import replace

from rove.control.asks.requests import Named
from rove.control.members.streams import readable
from rove.model.events import Arrived
from rove.model.ids import NodeId, Origin
from rove.model.messages import SOURCES_MAX, Facts, Goodbye, SourceHere
from tests.control.desk import COLUMNS, Desk, submission
from tests.control.members.honest.test_report import says
from tests.lines import lines

EVIL = NodeId("evil")


def brings(desk: Desk, *columns: str, node: str = "evil") -> list[str]:
    """A device brings streams with these columns: s, s1, s2 …"""
    names = [f"s{n or ''}" for n in range(len(columns))]
    found = tuple(SourceHere(stream=s, origin=Origin(s, node), columns=c) for s, c in zip(names, columns, strict=True))
    facts = Facts(kind="device", address="", parents=(NodeId("gateway"),), slots=1, memory_bytes=10**8, sources=found)
    return lines(says(desk, node, facts=facts))


@pytest.mark.parametrize("columns", ["garbage ((", "", "x array<" * 2_000, "x int, X int", "\x1b[2J int", "x" * 30_000])
def test_columns_are_read_before_they_are_a_streams(columns: str) -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    brings(desk, columns)
    assert dict(desk.machine.streams) == {}
    assert desk.machine.membership.members[EVIL].trouble.startswith("the columns of `s/evil` cannot be read")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    assert dict(desk.machine.streams) == {"s": COLUMNS}
    assert not desk.submit().trouble
    assert desk.sources() == {"s/d1"}


def test_a_stream_that_only_a_removed_device_brought_is_forgotten_and_others_name_it() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    brings(desk, "other int", "lonely int")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    assert desk.machine.membership.members[NodeId("d1")].trouble
    assert "has columns other int, as `evil` brings it; the query reads" in desk.submit().trouble
    kept = lines(desk.obey(desk.machine.handle(says_goodbye(desk), desk.now)))
    assert dict(desk.machine.streams) == {"s": COLUMNS}
    assert not desk.machine.membership.members[NodeId("d1")].trouble
    assert [said for said in kept if "stream" in said] != []
    assert not desk.submit().trouble
    assert desk.sources() == {"s/d1"}


def says_goodbye(desk: Desk) -> Arrived:
    return Arrived(b"evil", Goodbye(EVIL), None, "")


def test_a_stream_that_a_query_reads_keeps_its_columns_until_the_query_is_stopped() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    assert not desk.submit().trouble
    desk.ask("remove", Named(name="d1"))
    brings(desk, "other int")
    assert dict(desk.machine.streams) == {"s": COLUMNS}
    desk.ask("stop", Named(name="q"))
    assert dict(desk.machine.streams) == {"s": "other int"}


def test_a_device_that_changes_its_streams_leaves_none_behind() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for n in range(50):
        desk.report("d1", "device", "gateway", origins=(f"s{n}/d1",))
    assert list(desk.machine.streams) == ["s49"]


def test_a_thousand_streams_of_one_device_cost_a_moment_or_are_refused() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    began = perf_counter()
    assert brings(desk, *(f"c{n} struct<a: int, b: string>, " + COLUMNS for n in range(SOURCES_MAX)))
    assert len(desk.machine.streams) == SOURCES_MAX
    assert brings(desk, *("c" * 15_000 for _ in range(SOURCES_MAX))) == ["to evil: Refused, malformed"]
    assert perf_counter() - began < 5


def test_columns_of_a_wide_table_are_readable() -> None:
    assert readable(", ".join(f"a_rather_long_name_of_a_column_{n} double" for n in range(400)))
    assert not readable("x array<" * 20 + "int" + ">" * 20)
    assert readable("x " + "array<" * 20 + "int" + ">" * 20)


def test_a_catalog_with_columns_that_nobody_uses_is_cleaned_at_the_next_start() -> None:
    desk = Desk()
    kept = desk.machine.restore([("stream", "s", b"garbage ((")])
    assert lines(kept)[0].startswith("forget stream s")
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    assert not desk.ask("submit", replace(submission())).trouble
