"""Reports of what is new, against a listener that puts them together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.control.members.membership import Member, Membership
from rove.data import reports
from rove.data.reports import Reports
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import (
    MESSAGE_BYTES_MAX,
    PROTOCOL,
    Facts,
    Held,
    Orders,
    Report,
    Tally,
    TroubleHere,
    decode,
    encode,
)

NAMES = st.sampled_from(["a", "b", "c"])
FACTS = st.builds(
    Facts,
    kind=st.just("edge"),
    address=NAMES,
    parents=st.just(()),
    slots=st.integers(0, 2),
    memory_bytes=st.just(1),
    sources=st.just(()),
)
TALLIES = st.dictionaries(st.tuples(NAMES, NAMES), st.integers(1, 3), max_size=4).map(
    lambda found: tuple(Tally(QueryId(q), Origin(o), produced=n) for (q, o), n in found.items())
)
PICTURES = st.builds(
    Report,
    protocol=st.just(PROTOCOL),
    node=st.just(NodeId("n")),
    start=st.just(1),
    number=st.just(0),
    whole=st.just(True),
    facts=FACTS,
    running=st.dictionaries(NAMES.map(QueryId), st.integers(1, 3).map(Version), max_size=3),
    unknown=st.lists(NAMES.map(QueryId), unique=True, max_size=2).map(tuple),
    tallies=TALLIES,
    refused=st.dictionaries(NAMES, st.integers(1, 2), max_size=2),
    knows=NAMES,
    troubles=st.dictionaries(NAMES.map(QueryId), NAMES.map(lambda text: (TroubleHere(text),)), max_size=2),
    reaches=st.just(()),
    held=st.lists(st.builds(Held, NAMES.map(QueryId), st.integers(0, 2), st.integers(0, 2)), max_size=1).map(tuple),
    taken_bytes=st.integers(0, 5),
    shrunk=st.just((0, 0)),
)
LAWS = ("running", "unknown", "refused", "knows", "held", "taken_bytes")


def picture_of(member: Member) -> dict[str, Any]:
    return {name: getattr(member, name) for name in LAWS} | {"tallies": set(member.tallies.values())}


HISTORIES = st.lists(st.tuples(PICTURES, st.booleans()), min_size=1, max_size=8)


@given(HISTORIES)
def test_whoever_hears_all_reports_has_the_whole_picture_and_who_misses_one_asks_for_it(
    told: list[tuple[Report, bool]],
) -> None:
    node, listener = Reports(), Membership()
    for now, (picture, lost) in enumerate(told):
        for report in node.next(picture):
            if not lost and listener.heard(decode(encode(report)), b"", now) is None:  # type: ignore[arg-type]
                assert node.ordered(Orders(PROTOCOL, (), (), whole=True))
                (whole,) = node.next(picture)
                assert whole.whole
                assert listener.heard(whole, b"", now) is not None
        if not lost:
            member = listener.members[NodeId("n")]
            expected = {name: getattr(picture, name) for name in LAWS} | {"tallies": set(picture.tallies)}
            assert picture_of(member) == expected | {"unknown": dict.fromkeys(picture.unknown or ())}
            known = {(query, found[1]) for query in map(QueryId, "abc") for found in listener.troubled.of_query(query)}
            assert known == {(query, each) for query, troubles in (picture.troubles or {}).items() for each in troubles}
            assert (member.record.address, member.record.slots) == (picture.facts.address, picture.facts.slots)  # type: ignore[union-attr]


@given(PICTURES)
def test_a_picture_that_has_not_changed_is_told_in_a_few_bytes(picture: Report) -> None:
    node = Reports()
    node.next(picture)
    (again,) = node.next(picture)
    assert (again.facts, again.running, again.ended, again.tallies, again.held) == (None, {}, (), (), None)
    assert len(encode(again)) < 80


def test_tallies_that_do_not_fit_one_message_follow_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    tallies = tuple(Tally(QueryId(f"q{n % 44}"), Origin("s", str(n)), produced=10**12) for n in range(220_000))
    picture = Report(
        protocol=PROTOCOL, node=NodeId("n"), start=1, number=0, whole=True, tallies=tallies, reaches=(),
        facts=Facts(kind="gateway", address="", parents=(), slots=1, memory_bytes=1, sources=()),
    )  # fmt: skip
    node, listener = Reports(), Membership()
    told = node.next(picture)
    assert [report.number for report in told] == list(range(1, len(told) + 1))
    assert max(len(encode(report)) for report in told) < MESSAGE_BYTES_MAX // 4
    assert all(listener.heard(report, b"", 1) is not None for report in told)
    assert len(listener.members[NodeId("n")].tallies) == len(tallies)
    monkeypatch.setattr(reports, "TALLIES_MAX", 1)
    assert [len(report.tallies) for report in Reports().next(picture)[:3]] == [1, 1, 1]
