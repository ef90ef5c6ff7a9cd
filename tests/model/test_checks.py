"""The bounds of the numbers that peers send."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rove.model.batch import Header
from rove.model.errors import BadName, ProtocolError
from rove.model.foreign.checks import (
    BATCH_ROWS_MAX,
    HEADER_ROWS_MAX,
    SEQ_MAX,
    SUM_MAX,
    check_header,
    check_numbers,
    countable,
    counted,
    mended,
    saturated,
)
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import (
    PROTOCOL,
    Ack,
    Beat,
    Facts,
    Hello,
    Report,
    Resend,
    Tally,
    Welcome,
    check_report,
    encode,
)

NUMBERS = st.one_of(st.sampled_from((-1, 0, 1, 2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1)), st.integers(0, 2**63))
COUNTS = ("rows", "born", "evicted", "lost", "faulted", "belated", "packed")


def header(**changes: object) -> Header:
    return replace(Header(origin=Origin("s", "d"), seq=0, through=0, query="q"), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        *({name: number} for name in COUNTS for number in (-1, 2**62)),
        {"rows": BATCH_ROWS_MAX + 1},
        {"born": HEADER_ROWS_MAX, "lost": 1},
        {"through": 2**61, "lost": HEADER_ROWS_MAX + 1},
        {"stage": 2**63},
        {"epoch": 2**63},
        *({"state": True, name: 1} for name in ("born", "evicted", "lost", "faulted", "belated", "packed")),
        {"state": True, "rows": 2},
        {"state": True, "rows": 1, "late": True},
        {"state": True, "rows": 1, "folded": True},
    ],
)
def test_a_header_that_counts_what_no_origin_counts_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        check_header(header(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 3, "born": 2, "evicted": 1, "packed": 2**20},
        {"through": 2**61, "lost": HEADER_ROWS_MAX},
        {"evicted": 256 * BATCH_ROWS_MAX},
        {"state": True, "rows": 1},
        {"state": True},
    ],
)
def test_a_header_with_counts_of_an_origin_is_taken(changes: dict[str, object]) -> None:
    check_header(header(**changes))


@given(st.fixed_dictionaries(dict.fromkeys(COUNTS, NUMBERS)), NUMBERS, st.booleans())
def test_a_header_from_a_disk_is_countable_once_it_is_mended(counts: dict[str, int], more: int, state: bool) -> None:
    found = mended(header(**counts, through=max(0, more), state=state))
    assert 0 <= counted(found) <= HEADER_ROWS_MAX
    assert found == header(**counts, through=max(0, more), state=state) or counted(found) == 0
    assert mended(found) == found
    if min(counts.values()) >= 0 and not state:
        assert countable(replace(found, rows=0, packed=0))


@pytest.mark.parametrize("bad", [-1, SEQ_MAX + 1, 2**64 - 1])
@pytest.mark.parametrize(
    ("message", "field"),
    [
        *((Hello(PROTOCOL, NodeId("d"), 1), field) for field in Hello.__struct_fields__ if field != "node"),
        *((Welcome(PROTOCOL, NodeId("d"), 1, 1, 0, 0), f) for f in Welcome.__struct_fields__ if f != "node"),
        *((Ack(0, 0), field) for field in ("through", "allowance")),
        *((Beat(0, 0, 0), field) for field in Beat.__struct_fields__),
        (Resend(0), "after"),
    ],
)
def test_a_message_of_a_link_with_a_number_that_cannot_be_is_refused(
    message: msgspec.Struct, field: str, bad: int
) -> None:
    check_numbers(message)
    with pytest.raises(ProtocolError, match=f"`{field}`"):
        check_numbers(replace(message, **{field: bad}))


def report(**changes: object) -> Report:
    facts = Facts(kind="device", address="", parents=(), slots=0, memory_bytes=0, sources=())
    plain = Report(protocol=PROTOCOL, node=NodeId("d"), start=1, number=1, whole=True, facts=facts)
    return replace(plain, **changes)


TALLY = Tally(query=QueryId("q"), origin=Origin("s", "d"), watermark=0, held=(0, 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"start": -1},
        {"number": 2**63},
        {"taken_bytes": -5},
        {"shrunk": (0, 2**63)},
        {"learned": (-1, 0)},
        {"running": {QueryId("q"): Version(-1)}},
        {"tallies": (replace(TALLY, held=(0, 2**63)),)},
        {"tallies": (replace(TALLY, counted=(("", (0, 2**63)),)),)},
        {"facts": Facts(kind="device", address="", parents=(), slots=-1, memory_bytes=0, sources=())},
    ],
)
def test_a_report_with_a_number_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadName, match="cannot be"):
        check_report(report(**changes))


@given(st.integers())
def test_a_sum_stays_within_what_a_message_can_hold_however_many_nodes_report_it(number: int) -> None:
    tally = replace(TALLY, lost=saturated(number))
    check_report(report(tallies=(tally,)))
    assert saturated(number) in (number, 0, SUM_MAX)
    encode(report(tallies=(replace(TALLY, lost=saturated(number) * 10_000),)))
