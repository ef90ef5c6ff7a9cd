"""Names: what a node, a stream, a query and a table can be called, and the text of an origin."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.model.batch import Header, HeaderKind
from rove.model.errors import BadName, ProtocolError
from rove.model.events import dialed, dialer_of
from rove.model.foreign.checks import check_header
from rove.model.ids import (
    NAME_BYTES_MAX,
    SOURCE,
    NodeId,
    Origin,
    Taker,
    check_origin,
    checked_name,
    is_node,
    read_origin,
    read_taker,
)
from rove.model.messages import Data, decode, encode

LETTERS = "ABCXYZabcxyz0123456789_-"
NAMES = st.text(LETTERS, min_size=1, max_size=12) | st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}", fullmatch=True)
NUMBERS = st.integers(0, 10**18)
SIDES = st.lists(st.integers(0, 9), max_size=3).map(tuple)
SOURCES = st.builds(Origin, NAMES, NAMES, NUMBERS, st.just(SOURCE), SIDES)
OPERATORS = st.builds(Origin, NAMES, NAMES | st.just(""), NUMBERS, NUMBERS, SIDES)
ORIGINS = SOURCES | OPERATORS


@pytest.mark.parametrize("name", ["a", "xrays", "tram-7", "-", "_x", "7", "a.b", "S41-01", "x" * NAME_BYTES_MAX])
def test_letters_digits_dashes_underscores_and_dots_make_a_name(name: str) -> None:
    assert checked_name(name, "a stream") == name


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", ".a", "a b", "a/b", "a~1", "a|0", "a#1", "+a", "?a", "a\n", "a\0", "züge", "x" * 129]
)
def test_anything_else_is_refused_by_what_it_should_have_named(name: str) -> None:
    with pytest.raises(BadName, match="cannot name a query; use letters a to z, digits"):
        checked_name(name, "a query")


def test_a_refusal_is_short_however_long_the_name_is() -> None:
    with pytest.raises(BadName) as refused:
        checked_name("x" * 1_000_000, "a node")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (Origin("trains", "tram-7", 17), "trains/tram-7~17"),
        (Origin("trains", "tram-7"), "trains/tram-7"),
        (Origin("busy", stage=3), "busy#3"),
        (Origin("busy", "mast-1", 4, 3), "busy#3/mast-1~4"),
        (Origin("busy", start=4, stage=0), "busy#0~4"),
        (Origin("trains", "tram-7", 17).on_side(0).on_side(1), "trains/tram-7~17|0|1"),
        (Origin("xrays", "x", 7), "xrays/x~7"),
    ],
)
def test_an_origin_has_a_text_that_people_can_read(origin: Origin, text: str) -> None:
    assert str(origin) == text
    assert read_origin(text) == origin


def test_people_see_when_the_node_of_an_origin_was_started() -> None:
    assert Origin("trains", "tram-7").shown == "trains/tram-7"
    started = Origin("trains", "tram-7", 1_794_947_596_000_000_000).on_side(0)
    assert started.shown == "trains/tram-7, started 2026-11-17 20:33:16"
    assert Origin("busy", stage=3).shown == "busy#3"


@given(ORIGINS)
def test_the_text_of_an_origin_is_read_as_the_same_origin(origin: Origin) -> None:
    check_origin(origin)
    assert read_origin(str(origin)) == origin


@given(ORIGINS, ORIGINS)
def test_two_origins_never_have_one_text(one: Origin, other: Origin) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(st.text(LETTERS + "./#~|+? \n", max_size=20) | st.text(max_size=20))
def test_a_text_is_refused_unless_an_origin_has_it(text: str) -> None:
    try:
        found = read_origin(text)
    except BadName:
        return
    assert str(found) == text
    check_origin(found)


@pytest.mark.parametrize(
    "text",
    ["", "trains", "trains/", "/tram", "trains/tram~", "trains/tram~0", "trains/tram~07", "trains/tram|", "busy#",
     "busy#-1", "busy#03", "a b/c", "trains/tram~7|a", "trains/tram/edge", "+3 trains/tram~7", "x trains/tram~7"],
)  # fmt: skip
def test_a_text_that_no_origin_has_is_refused(text: str) -> None:
    with pytest.raises(BadName, match="is not an origin"):
        read_origin(text)


@given(ORIGINS)
def test_an_origin_travels_as_a_value_and_as_a_key(origin: Origin) -> None:
    header = Header(origin=origin, seq=3, through=3, query="q")
    assert decode(encode(Data(1, header))) == Data(1, header)
    table = {origin: [1, 2]}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(table), type=dict[Origin, list[int]]) == table


@given(ORIGINS, st.integers(0, 9))
def test_an_origin_on_a_side_is_another_one_of_the_same_maker(origin: Origin, side: int) -> None:
    heard = origin.on_side(side)
    assert heard != origin
    assert heard.side[-1] == side
    assert heard.unsided == origin.unsided
    assert (heard.unsided.side, heard.any_start.start) == ((), 0)


@pytest.mark.parametrize(
    "header",
    [
        *(Header(origin=Origin("s", "d"), seq=0, through=0, query="q", kind=k) for k in HeaderKind if k),
        Header(origin=Origin("s", "d"), seq=0, through=0, query="a b"),
        Header(origin=Origin("s", "d"), seq=0, through=0, query="../q"),
        *(
            Header(origin=origin, seq=0, through=0, query="q")
            for origin in (
                Origin(""),
                Origin("s"),
                Origin("a b", "d"),
                Origin("s", "a/b"),
                Origin("s", "d", -1),
                Origin("s", "d", 0, -2),
                Origin("s", "d", side=(-1,)),
            )
        ),
    ],
)
def test_a_header_with_what_no_origin_gives_is_refused_at_the_link(header: Header) -> None:
    with pytest.raises(ProtocolError) as refused:
        check_header(header)
    assert refused.value.why == "malformed"


@given(st.sampled_from(["0", "17", "log/q/out", "alerts/today"]), st.lists(st.integers(0, 9), max_size=3).map(tuple))
def test_a_taker_is_read_as_it_was_written(of: str, side: tuple[int, ...]) -> None:
    assert read_taker(str(Taker(of, side))) == Taker(of, side)


@pytest.mark.parametrize("text", ["2|", "2|x", "2|-1", "2||0", "2|" + "0|" * 70 + "0"])
def test_a_text_that_no_taker_has_is_refused(text: str) -> None:
    with pytest.raises(BadName):
        read_taker(text)


def test_a_maker_is_a_node_or_an_operator_of_all_nodes() -> None:
    assert is_node(Origin("s", "d", 3).maker)
    assert not is_node(Origin("q", stage=2).maker)


def test_who_dialed_is_read_from_the_name_of_a_connection() -> None:
    assert dialer_of(dialed(NodeId("edge-1"), 12)) == "edge-1"
