"""The book of who is below whom: what each node is told of it, when, and at what cost."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.control.asks.requests import Named
from rove.control.commands import Command
from rove.control.members.below import TELL_AGAIN_US, AboveRecord, Below
from rove.data.link.below import Below as Known
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import LEARNED_MAX, Fragment, Learned, Sink
from tests.control.desk import Desk
from tests.control.test_restarts import Kept
from tests.depth import examples
from tests.lines import lines

GATEWAY, WEST, EAST, D1 = NodeId("gateway"), NodeId("west"), NodeId("east"), NodeId("d1")


def cells(desk: Desk) -> Desk:
    """A gateway, two cells below it, and a device below one of them."""
    desk.report("gateway", "gateway")
    for cell in (WEST, EAST):
        desk.report(cell, "edge", "gateway")
    desk.report("d1", "device", "west", origins=("s/d1",))
    return desk


def taught(commands: list[Command]) -> list[str]:
    return [said for said in lines(commands) if "take" in said]


def may(desk: Desk, node: str, neighbour: str, maker: str) -> bool:
    """Whether a node would take batches of a maker from a neighbour."""
    return desk.below[node].may_pass_on(NodeId(neighbour), maker)


def test_a_device_that_joins_costs_the_nodes_above_it_a_line_each() -> None:
    desk = cells(Desk())
    said = lines(desk.report("d2", "device", "west", "east", origins=("s/d2",)))
    assert [line for line in said if line.startswith("keep")] == ["keep node d2", "keep above d2"]
    assert [line for line in said if "take" in line] == ["to gateway: Orders, take d2 of west, d2 of east"]
    assert (may(desk, "gateway", "west", "d1"), may(desk, "gateway", "east", "d1")) == (True, False)
    assert may(desk, "gateway", "east", "d2")


def test_those_above_are_told_before_the_device() -> None:
    desk = cells(Desk())
    assert not desk.submit().trouble
    for node, parents in (("gateway", ()), ("west", ("gateway",))):
        desk.report(node, "gateway" if not parents else "edge", *parents)
    desk.report("d1", "device", "west", origins=("s/d1",))
    said = [line for line in lines(desk.report("d2", "device", "west", origins=("s/d2",))) if line.startswith("to ")]
    assert "take d2 of west" in said[0]
    assert not [line for line in said[1:] if line.startswith("to gateway") and "take" in line]


def test_a_device_gets_its_part_when_those_above_have_said_that_they_take_its_batches() -> None:
    """Else its batches would stop on their way, and all that are behind them."""
    desk = cells(Desk())
    assert not desk.submit().trouble
    desk.report("gateway", "gateway")
    desk.report("west", "edge", "gateway")
    deaf = desk.below.pop("gateway")  # the gateway does not hear the coordinator
    desk.below["gateway"] = Known()
    silent = desk._confirm
    desk._confirm = lambda node: [] if node == "gateway" else silent(node)  # type: ignore[method-assign]
    desk.report("d2", "device", "west", origins=("s/d2",))
    desk.report("d2", "device", "west", origins=("s/d2",))
    assert "d2" not in desk.running
    desk.below["gateway"], desk._confirm = deaf, silent  # type: ignore[method-assign]
    for _ in range(3):
        desk.report("gateway", "gateway")
    assert desk.running["d2"] == {QueryId("q"): desk.deployment.fragments[NodeId("d2")].version}


def test_a_device_does_not_wait_for_a_relay_that_nobody_reaches() -> None:
    """The relay is told when it is back, and until then the rows of the device are kept below it."""
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("roof", "edge", "gateway")
    desk.report("west", "edge", "roof")
    desk.report("d1", "device", "west", origins=("s/d1",))
    assert not desk.submit().trouble
    for _ in range(2):
        for node, kind, *parents in (("gateway", "gateway"), ("roof", "edge", "gateway"), ("west", "edge", "roof")):
            desk.report(node, kind, *parents)  # type: ignore[arg-type]
    silent = desk._confirm
    desk._confirm = lambda node: [] if node == "roof" else silent(node)  # type: ignore[method-assign]

    def joins() -> bool:
        for _ in range(2):
            desk.report("gateway", "gateway")
            desk.report("d2", "device", "west", origins=("s/d2",))
        return "d2" in desk.running

    assert not joins()
    desk.report("west", "edge", "roof", reaches=())
    assert joins()


def test_a_move_between_parents_that_were_named_and_a_report_without_news_teach_nobody() -> None:
    desk = cells(Desk())
    device = ("d2", "device", "west", "east")
    desk.report(*device, origins=("s/d2",), reaches=("west",))
    assert not desk.submit().trouble
    for _ in range(3):
        desk.report("gateway", "gateway")
        for cell in (WEST, EAST):
            desk.report(cell, "edge", "gateway")
        desk.report(*device, origins=("s/d2",), reaches=("west",))
        desk.report("d1", "device", "west", origins=("s/d1",))
    moved = desk.report(*device, origins=("s/d2",), reaches=("east",))
    assert desk.deployment.fragments[NodeId("d2")].next == "east"
    assert taught(moved) == []
    assert not [line for line in lines(moved) if line.startswith("keep above")]
    assert desk.report("gateway", "gateway") == []


def test_a_relay_that_gets_another_parent_brings_all_that_are_below_it() -> None:
    desk = cells(Desk())
    desk.report("roof", "edge", "gateway")
    desk.report("gateway", "gateway")
    said = taught(desk.report("west", "edge", "gateway", "roof"))
    assert sorted(each.replace("peers gateway, west; ", "") for each in said) == [
        "to gateway: Orders, take west of roof, d1 of roof",
        "to roof: Orders, take d1 of west",
    ]


def test_a_relay_cannot_put_somebody_below_itself() -> None:
    desk = cells(Desk())
    desk.report("east", "edge", "gateway", "d1", "west")  # it says where it is, and so who may speak for it
    assert not desk.machine.below.has(EAST, "d1")
    assert not may(desk, "gateway", "east", "d1")
    assert may(desk, "gateway", "west", "east")


def test_a_node_that_was_removed_stays_in_the_book() -> None:
    """A relay that was cut off may hold the only copies of its batches."""
    desk = cells(Kept())
    desk.ask("remove", Named(name="d1"))
    assert isinstance(desk, Kept)
    desk.restart()
    desk.report("gateway", "gateway")
    assert desk.machine.below.has(WEST, "d1")
    assert may(desk, "gateway", "west", "d1")


def test_after_a_restart_of_the_coordinator_nobody_is_told_again_what_he_knows() -> None:
    desk = cells(Kept())
    desk.report("d2", "device", "east", "west", origins=("s/d2",))
    desk.report("west", "edge", "gateway", "east")
    assert isinstance(desk, Kept)
    desk.restart()
    assert taught(desk.report("gateway", "gateway")) == []
    assert taught(desk.report("east", "edge", "gateway")) == []
    desk.below["gateway"] = Known()  # it has lost its disk
    assert taught(desk.report("gateway", "gateway")) == [
        "to gateway: Orders, take d1 of west, d2 of east, d2 of west, west of east, d1 of east"
    ]


def test_a_node_that_knows_other_things_is_told_everything() -> None:
    desk = cells(Desk())
    desk.below["gateway"].learn(Learned(0, ((EAST, "d9"),)))
    assert taught(desk.report("gateway", "gateway")) == ["to gateway: Orders, take d1 of west"]
    assert not may(desk, "gateway", "east", "d9")


def test_a_catalog_without_the_book_is_enough_to_write_it() -> None:
    desk = cells(Kept())
    assert isinstance(desk, Kept)
    desk.submit_with(1)
    desk.kept = {key: record for key, record in desk.kept.items() if key[0] != "above"}
    desk.restart()
    assert desk.machine.below.has(WEST, "d1")


def test_a_node_is_below_whomever_it_is_told_to_send_to_on_a_route_that_goes_on() -> None:
    """The link of `west` to the gateway is broken, and its rows go down to `east` and up from there."""
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("west", "edge", "gateway", origins=("s/west",))
    desk.report("east", "edge", "gateway", "west")
    assert not desk.machine.below.has(EAST, "west")
    desk.report("west", "edge", "gateway", origins=("s/west",), reaches=())
    assert not desk.submit().trouble
    assert desk.deployment.fragments[WEST].next == "east"
    assert desk.machine.below.has(EAST, "west")
    assert may(desk, "gateway", "east", "west")


def test_rows_that_end_on_a_node_do_not_make_it_speak_for_their_makers() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("west", "edge", "gateway", origins=("s/west",))
    desk.report("east", "gateway", "gateway")  # it has a disk
    assert not desk.submit(Sink(kind="log", node=EAST)).trouble
    assert desk.deployment.fragments[GATEWAY].next == "east"
    assert not desk.machine.below.has(EAST, "west")


# The book by itself


def test_news_that_are_lost_are_told_again_and_news_on_their_way_are_not() -> None:
    book = Below()
    book.add("west", GATEWAY)
    book.add("d1", WEST)
    first = book.tell(GATEWAY, 0)
    assert first is not None
    assert (first.after, first.pairs) == (0, ((WEST, "d1"),))
    assert book.tell(GATEWAY, 1) is None, "it was told a moment ago"
    book.add("d2", WEST)
    second = book.tell(GATEWAY, 2)
    assert second is not None
    assert (second.after, second.pairs) == (1, ((WEST, "d2"),))
    book.add("d3", WEST)
    again = book.tell(GATEWAY, TELL_AGAIN_US)
    assert again is not None
    assert (again.after, [maker for _, maker in again.pairs]) == (0, ["d1", "d2", "d3"])


def test_an_operator_with_one_origin_for_all_nodes_is_below_each_node_that_ever_ran_it() -> None:
    book, query = Below(), Origin("q", stage=3)
    for node in (WEST, EAST):
        book.add(node, GATEWAY)
        part = Fragment(
            query=QueryId("q"),
            version=Version(1),
            plan="",
            runs=(),
            makes={Stage(2): query, Stage(1): Origin("q", node, stage=2)},
            waits={},
            next=GATEWAY,
            sinks={},
        )
        book.routed(node, part, GATEWAY)
    news = book.tell(GATEWAY, 0)
    assert news is not None
    assert news.pairs == ((WEST, "q#3"), (EAST, "q#3"))
    assert not book.is_heard(GATEWAY, "q#3")
    known = Known()
    known.learn(news)
    assert book.heard(GATEWAY, known.known, 1) == [WEST, EAST], "those may have waited for it"
    assert book.is_heard(GATEWAY, "q#3")


def test_a_long_list_is_told_in_portions() -> None:
    book, known, now = Below(), Known(), 0
    book.add("west", GATEWAY)
    for n in range(2 * LEARNED_MAX + 1):
        book.add(f"d{n}", WEST)
    portions = []
    while (news := book.tell(GATEWAY, now)) is not None:
        known.learn(news)
        book.heard(GATEWAY, known.known, now)
        portions.append(len(news.pairs))
        now += 1
    assert portions == [LEARNED_MAX, LEARNED_MAX, 1]
    assert known.may_pass_on(WEST, f"d{2 * LEARNED_MAX}")


NAMES = st.sampled_from([*"abcdefg", "q#1", "q#2"])
NODES = st.sampled_from([*"abcdefg"])


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(NAMES, NODES), max_size=25),
    st.lists(st.tuples(st.sampled_from(["add", "tell", "lose", "forget", "restart"]), NODES), max_size=40),
)
def test_every_node_ends_up_with_exactly_what_is_below_its_neighbours(
    edges: list[tuple[str, str]], happens: list[tuple[str, str]]
) -> None:
    """Whatever is lost, forgotten or restored on the way. The twin is a search over all pairs."""
    book, now, records = Below(), 0, dict[str, AboveRecord]()
    nodes = {name: Known() for name in "abcdefg"}
    rest = list(edges)

    def tell(name: str, arrives: bool = True) -> None:
        book.heard(NodeId(name), nodes[name].known, now)
        news = book.tell(NodeId(name), now)
        if news is not None and arrives:
            nodes[name].learn(msgspec.msgpack.decode(msgspec.msgpack.encode(news), type=type(news)))

    for what, name in [*happens, *(("add", "a") for _ in edges)]:
        now += TELL_AGAIN_US // 3
        if what == "add" and rest:
            maker, above = rest.pop()
            book.add(maker, NodeId(above))
        elif what == "forget":
            nodes[name] = Known()
        elif what == "restart":
            records |= {record.maker: record for record in book.news()}
            book = Below()
            book.restore(records.values())
        else:
            tell(name, what == "tell")
        records |= {record.maker: record for record in book.news()}
        book.validate()
    for _ in range(3):
        now += TELL_AGAIN_US
        for name in nodes:
            tell(name)
    sends = {maker: {above for each, above in edges if each == maker and above != maker} for maker, _ in edges}
    for name, known in nodes.items():
        for neighbour in nodes:
            if name in sends.get(neighbour, ()):
                below = {m for m, _ in edges if m != neighbour and _reaches(sends, m, neighbour)}
                found = {m for m, _ in edges if known.may_pass_on(NodeId(neighbour), m)}
                assert found == below
                assert all(book.is_heard(NodeId(name), maker) for maker in below)


def _reaches(sends: dict[str, set[str]], maker: str, node: str) -> bool:
    seen, open_ = {maker}, [maker]
    while open_:
        for above in sends.get(open_.pop(), ()):
            if above == node:
                return True
            if above not in seen:
                seen.add(above)
                open_.append(above)
    return False
