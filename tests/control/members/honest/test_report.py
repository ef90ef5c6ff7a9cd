"""A node speaks of itself and of queries in which it has a part; what else it says changes nothing."""

from __future__ import annotations

import re
from time import perf_counter
from typing import Any

import pytest
from msgspec.structs import replace

from rove.api.accounts import verdict
from rove.control.asks.requests import AccountLine, Named, NodeLine, QueryLine, from_body
from rove.control.commands import Command
from rove.control.members.ended import OWN_LINES_MAX, STARTS_MAX
from rove.control.members.honest import bounds
from rove.control.members.honest.texts import TEXT_MAX, cleaned
from rove.model.events import Arrived
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import PROTOCOL, Facts, Held, Kind, Report, SourceHere, Tally, TroubleHere
from tests.control.desk import COLUMNS, Desk, submission
from tests.lines import lines

Q = QueryId("q")


def town(stops_at_fault: bool = False) -> Desk:
    """A gateway, a device with a part in the query `q`, and a device without one."""
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    desk.report("evil", "device", "gateway")
    assert not desk.ask("submit", replace(submission(), stops_at_fault=stops_at_fault)).trouble
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    return desk


def says(desk: Desk, node: str = "evil", number: int = 2, kind: Kind = "device", **what: Any) -> list[Command]:
    """A report of a node that says something in particular."""
    desk.now += 1_000
    facts = Facts(
        kind=kind,
        address="",
        parents=(NodeId("gateway"),),
        slots=8,
        memory_bytes=10**8,
        sources=(SourceHere(stream="s", origin=Origin("s", node), columns=COLUMNS),) if node != "evil" else (),
    )
    said = {"start": 1, "whole": True, "facts": facts, "running": dict(desk.running.get(node, {})), **what}
    report = Report(protocol=PROTOCOL, node=NodeId(node), number=number, **said)
    return desk.machine.handle(Arrived(node.encode(), report, None, ""), desk.now, desk.now)


def query(desk: Desk) -> QueryLine:
    return from_body(desk.ask("queries", Named()).body, list[QueryLine])[0]


def liar(desk: Desk) -> str:
    found = {line.node: line.trouble for line in from_body(desk.ask("topology", Named()).body, list[NodeLine])}
    assert not found["d1"]
    return found["evil"]


@pytest.mark.parametrize(
    "trouble", [TroubleHere("it lies", fault=True), TroubleHere("it lies", holds=True, final=True)]
)
def test_a_node_without_a_part_in_a_query_neither_stops_nor_condemns_it(trouble: TroubleHere) -> None:
    desk = town(stops_at_fault=True)
    says(desk, troubles={Q: (trouble,)})
    assert (query(desk).state, query(desk).troubles) == ("running", ())
    assert desk.machine.refused == {"identity": 1}
    assert liar(desk) == "reports troubles of query `q`, in which it has no part; that is left out"
    desk.now += 61_000_000
    assert liar(desk) == ""


def test_a_node_with_a_part_says_what_is_wrong_with_it() -> None:
    desk = town(stops_at_fault=True)
    says(desk, "d1", troubles={Q: (TroubleHere("100/0", fault=True),)})
    assert query(desk).state == "stopped"
    assert desk.machine.refused == {}


def test_texts_of_nodes_are_cut_and_move_no_cursor() -> None:
    desk = town()
    says(desk, "d1", troubles={Q: (TroubleHere("\x1b[2J\u202e" + "L" * 200_000),)})
    (trouble,) = query(desk).troubles
    assert len(trouble.reason) == TEXT_MAX
    assert trouble.reason.startswith(" [2J LLL")
    assert cleaned("kept as it is — ünchanged") == "kept as it is — ünchanged"


def test_a_function_that_a_query_does_not_have_is_not_lacking() -> None:
    desk = town()
    says(desk, "d1", troubles={Q: tuple(TroubleHere("x", lacks=f"f{n}") for n in range(1_000))})
    lacking = desk.machine.membership.troubled.lacking(NodeId("d1"))
    assert not [n for n in range(1_000) if f"f{n}" in lacking]
    assert len([*desk.machine.membership.troubled.of_query(Q)]) == 1


def test_what_is_kept_and_moved_is_of_queries_of_the_node() -> None:
    desk = town()
    state = Origin("q", "evil", 1, 3)
    held = (Held(Q, 5, 1), Held(QueryId("x"), 5, 1), Held(Q, -5, 1))
    says(desk, held=held, moved=((Q, state), (QueryId("x"), state)))
    assert desk.machine.membership.members[NodeId("evil")].held == (Held(Q, 5, 1),)
    says(desk, "d1", moved=((Q, Origin("q", "d1", 1, 3)),))
    assert desk.machine.queries[Q].moved == {}, "nobody waits for this state"


def test_an_operator_is_counted_where_it_ran_and_above() -> None:
    desk = town()
    merging = Origin("q", stage=2)
    says(desk, tallies=(Tally(query=Q, origin=merging, delivered=2**40),))
    assert from_body(desk.ask("status", Named()).body, list[AccountLine]) == []
    assert "an operator whose rows never came to it (`q#2` of query `q`)" in liar(desk)
    desk.machine.below.add(merging.maker, NodeId("d1"))
    says(desk, "d1", tallies=(Tally(query=Q, origin=merging, delivered=4),))
    says(desk, "gateway", kind="gateway", tallies=(Tally(query=Q, origin=merging, delivered=4),))
    (line,) = from_body(desk.ask("status", Named()).body, list[AccountLine])
    assert line.delivered == 8


@pytest.mark.parametrize(
    "tally",
    [
        Tally(query=Q, origin=Origin("s", "evil"), produced=-7),
        Tally(query=Q, origin=Origin("s", "evil"), delivered=2**61),
        Tally(query=Q, origin=Origin("s", "evil"), watermark=2**63),
        Tally(query=Q, origin=Origin("s", "evil", 99), produced=1),
        Tally(query=Q, origin=Origin("other", "evil"), produced=1),
        Tally(query=Q, origin=Origin("s", "evil", side=(1,)), produced=1),
        Tally(query=Q, origin=Origin("r", "evil", stage=2), produced=1),
    ],
    ids=str,
)
def test_counts_of_its_own_that_cannot_be_are_left_out_and_the_node_is_named(tally: Tally) -> None:
    desk = town()
    says(desk, tallies=(tally, Tally(query=Q, origin=Origin("s", "evil"), produced=5)))
    (line,) = from_body(desk.ask("status", Named()).body, list[AccountLine])
    assert (line.origin, line.produced) == ("s/evil", 5)
    assert re.match("reports (counts|more counts)", liar(desk))


def test_a_device_whose_own_counts_contradict_each_other_is_named_and_not_a_bug() -> None:
    desk = town()
    tally = Tally(query=Q, origin=Origin("s", "d1"), produced=7, made=1, delivered=2**40, seen=1)
    says(desk, "d1", tallies=(tally,))
    said = verdict(from_body(desk.ask("status", Named()).body, list[AccountLine]))
    assert "`d1` says that it has counted more rows of `s/d1` for query `q` than it made" in said
    assert "bug" not in said


def test_rows_that_others_count_twice_are_not_blamed_on_their_device() -> None:
    desk = town()
    says(desk, "d1", tallies=(Tally(query=Q, origin=Origin("s", "d1"), produced=7, made=1),))
    taken = Tally(query=Q, origin=Origin("s", "d1"), delivered=14, seen=1)
    says(desk, "gateway", kind="gateway", tallies=(taken,))
    assert "it is a bug" in verdict(from_body(desk.ask("status", Named()).body, list[AccountLine]))


def test_counts_of_a_query_that_does_not_exist_are_not_kept() -> None:
    desk = town()
    says(desk, tallies=tuple(Tally(query=QueryId(f"x{n}"), origin=Origin("s", "evil"), produced=1) for n in range(99)))
    assert [*desk.machine.membership.tallies()] == []
    assert liar(desk) == "", "an earlier coordinator may have told it to run them"


@pytest.mark.parametrize("durable", [True, False])
def test_a_node_with_a_disk_counts_rows_of_its_earlier_starts_again(durable: bool) -> None:
    """It computes its open windows again, also those of a start that had no time to report. Its rows were called lost,
    although they were delivered."""
    desk = town()
    parents = (NodeId("gateway"),)
    facts = Facts(
        kind="device", address="", parents=parents, slots=8, memory_bytes=10**8, sources=(), durable=durable
    )  # fmt: skip
    says(desk, start=4, number=1, facts=facts)
    for number, start in ((2, 3), (3, 7)):
        tallies = (Tally(query=Q, origin=Origin("s", "evil", start), delivered=9, seen=3),)
        says(desk, start=4, number=number, whole=False, facts=None, running={}, tallies=tallies)
    known = desk.machine.membership.members[NodeId("evil")].tallies
    assert [origin.start for _, origin in known] == ([3] if durable else [])
    assert "counts of a start that it never had" in liar(desk)


def test_earlier_starts_of_a_node_leave_a_bounded_number_of_records_and_counts() -> None:
    desk = town()
    made = {"produced": 3, "lost": 1}
    for start in range(2, 30):
        origin = Origin("s", "evil", start)
        says(desk, start=start, number=1, tallies=(Tally(query=Q, origin=origin, **made),))  # type: ignore[arg-type]
    ended = desk.machine.membership.ended
    assert len({record.name for record in ended}) == STARTS_MAX + 1
    accounts = from_body(desk.ask("status", Named()).body, list[AccountLine])
    assert (len(accounts), sum(line.produced for line in accounts)) == (28, 28 * 3), "nothing is forgotten yet"
    many = tuple(Tally(query=Q, origin=Origin("q", "evil", n, 1), produced=1) for n in range(1, OWN_LINES_MAX + 1))
    for start in range(30, 45):
        says(desk, start=start, number=1, tallies=many)
    assert sum(1 for _ in ended.tallies()) <= 2 * OWN_LINES_MAX


def test_a_report_costs_what_is_in_it() -> None:
    """20,000 names cost 1.3 s once, and as much in every later report of the node."""
    desk = town()
    began = perf_counter()
    says(desk, unknown=tuple(QueryId(f"x{n}") for n in range(200_000)))
    for number in range(3, 13):
        says(desk, number=number, whole=False, facts=None, running={})
    assert perf_counter() - began < 2
    assert len(desk.machine.membership.members[NodeId("evil")].unknown) == bounds.QUERIES_MAX


@pytest.mark.parametrize(
    "what",
    [
        {"running": {QueryId(f"x{n}"): Version(1) for n in range(bounds.QUERIES_MAX + 1)}},
        {"running": {Q: Version(-1)}},
        {"reaches": tuple(NodeId(f"x{n}") for n in range(2_000))},
        {"knows": "x" * 1_000},
        {"start": 2**64 - 1},
        {"taken_bytes": -1},
        {"learned": (2**63, 5)},
    ],
    ids=str,
)
def test_more_than_a_node_fills_by_itself_is_refused(what: dict[str, object]) -> None:
    desk = town()
    assert lines(says(desk, **what)) == ["to evil: Refused, malformed"]


def test_what_others_fill_is_cut_so_that_they_silence_nobody() -> None:
    desk = town()
    reasons = {f"why{n}\n{'x' * 300}": -1 for n in range(5_000)}
    assert not [said for said in lines(says(desk, refused=reasons)) if "Refused" in said]
    refused = desk.machine.membership.members[NodeId("evil")].refused
    assert len(refused) == bounds.REASONS_MAX
    assert {*refused.values()} == {0}
    assert max(map(len, refused)) <= 64
