"""The coordinator by itself: reports and asks in, orders and answers out."""

from __future__ import annotations

import pytest

import rove
from rove.control.asks.requests import Enlist, Invite, Named, NodeLine, QueryLine, Submit, from_body, to_body
from rove.control.commands import Command, Keep
from rove.control.coordinator import Coordinator
from rove.control.deployment.query import QueryState
from rove.model.events import Allow, Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import (
    Ask,
    Goodbye,
    Held,
    Peer,
    Refused,
    Sink,
    digest_of,
)
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.control.desk import COLUMNS, Desk, submission
from tests.lines import line, lines


def test_a_device_whose_edge_comes_later_is_fed_when_it_has() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1",))
    assert not desk.submit().trouble
    desk.report("d2", "device", "edge", origins=("s/d2",))
    assert desk.sources() == {"s/d1"}
    desk.report("edge", "edge", "gateway")
    desk.report("d2", "device", "edge", origins=("s/d2",))
    assert desk.sources() == {"s/d1", "s/d2"}


def test_a_device_that_is_back_at_another_parent_is_led_there_before_the_old_one_lets_go() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for cell in ("west", "east"):
        desk.report(cell, "edge", "gateway")
    desk.report("d", "device", "west", "east", origins=("s/d",), reaches=("west",))
    assert not desk.submit().trouble
    device = ("d", "device", "west", "east")
    assert lines(desk.report("gateway", "gateway")) == [
        "to d: Orders, run q v1 to west; peers east, west",
        "to west: Orders, run q v1 to gateway; peers d, gateway",
    ]
    for complete in (["keep change 0"], []):
        assert desk.report("west", "edge", "gateway") == []
        assert lines(desk.report(*device, origins=("s/d",), reaches=("west",))) == complete
        assert desk.report("gateway", "gateway") == []
    assert {n: set(r) for n, r in desk.running.items()} == {n: {"q"} for n in ("gateway", "west", "d")}

    assert desk.report(*device, origins=("s/d",), reaches=()) == []
    assert lines(desk.report(*device, origins=("s/d",), reaches=("east",))) == [
        "keep version q",
        "keep change 1",
        "keep part q/d",
        "keep part q/west",
        "keep part q/east",
        "to d: Orders, run q v2 to east",
        "to east: Orders, run q v2 to gateway; peers d, gateway",
    ]
    assert desk.report("west", "edge", "gateway") == [], "the device has not said that it goes there"
    assert desk.report(*device, origins=("s/d",), reaches=("east",)) == []
    assert lines(desk.report("west", "edge", "gateway")) == ["to west: Orders, leave q"]
    assert desk.running["west"] == {}
    assert desk.report(*device, origins=("s/d",), reaches=("west", "east")) == [], "it stays where it is"


def test_a_node_that_leaves_is_waited_for_no_longer_and_one_that_is_silent_is() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for name in ("d1", "d2"):
        desk.report(name, "device", "gateway", origins=(f"s/{name}",))
    assert not desk.submit().trouble
    desk.now += 10**9
    desk.machine.handle(Tick(), desk.now)
    assert desk.sources() == {"s/d1", "s/d2"}
    desk.obey(desk.machine.handle(Arrived(b"d2", Goodbye(NodeId("d2"))), desk.now))
    desk.obey(desk.machine.handle(Tick(), desk.now))
    assert desk.sources() == {"s/d1"}
    desk.report("gateway", "gateway")
    assert desk.waits["gateway"] == {Stage(0): (Origin("s", "d1"),)}


def test_a_relay_that_leaves_and_comes_back_is_told_its_part_again() -> None:
    desk = Desk()

    def all_report(start: int) -> list[Command]:
        said = [*desk.report("gateway", "gateway"), *desk.report("edge", "edge", "gateway", start=start)]
        return [*said, *desk.report("d1", "device", "edge", origins=("s/d1",))]

    all_report(1)
    assert not desk.submit().trouble
    for _ in range(3):
        all_report(1)
    assert set(desk.running) == {"gateway", "edge", "d1"}
    desk.obey(desk.machine.handle(Arrived(b"edge", Goodbye(NodeId("edge"))), desk.now))
    desk.machine.validate()
    desk.running["edge"], desk.knows["edge"] = {}, ""
    told = [text for text in lines(all_report(2)) if text.startswith("to edge")]
    assert told == ["to edge: Orders, run q v1 to gateway; peers d1, gateway"]
    desk.machine.validate()


def test_a_device_behind_a_relay_that_is_gone_is_waited_for_as_long_as_a_silent_one() -> None:
    desk = Desk()

    def all_report(relay: bool) -> None:
        desk.report("gateway", "gateway")
        if relay:
            desk.report("e1", "edge", "gateway")
        desk.report("d1", "device", "e1", origins=("s/d1",), reaches=("e1",) if relay else ())
        desk.report("d2", "device", "gateway", origins=("s/d2",))
        desk.obey(desk.machine.handle(Tick(), desk.now))

    for _ in range(3):
        all_report(relay=True)
    desk.submit()
    for _ in range(4):
        all_report(relay=True)
    patience_us = desk.machine.queries[QueryId("q")].patience_us()
    assert desk.absent() == ()
    cut = desk.now
    while desk.now < cut + patience_us - 10_000_000:
        all_report(relay=False)
    assert desk.absent() == ()
    while desk.now < cut + patience_us + 10_000_000:
        all_report(relay=False)
    assert desk.absent() == ("d1", "e1")
    assert desk.deployment.fragments[NodeId("gateway")].waits == {Stage(0): (Origin("s", "d2"),)}
    for _ in range(3):
        all_report(relay=True)
    assert desk.absent() == ()
    assert desk.deployment.fragments[NodeId("gateway")].waits == {Stage(0): (Origin("s", "d1"), Origin("s", "d2"))}


def test_devices_are_waited_for_as_long_as_their_stream_says() -> None:
    desk = Desk()
    for node in ("d1", "d2"):
        desk.report("gateway", "gateway")
        desk.report(node, "device", "gateway", origins=(f"s/{node}",))
    session = rove.Session.local()
    both = session.stream("s", schema=COLUMNS).union(session.stream("t", schema=COLUMNS))
    desk.report("d3", "device", "gateway", origins=("t/d3",))
    plan = codec.encode(Stages.of({"out": optimize(both.plan)}))
    asked = Submit(name="q", plan=plan, sink=Sink(kind="log"), patience_us=60_000_000, patience_of={"t": 600_000_000})
    assert not desk.ask("submit", asked).trouble

    def absent_after(seconds: int) -> tuple[str, ...]:
        for _ in range(seconds):
            desk.report("gateway", "gateway")
            desk.obey(desk.machine.handle(Tick(), desk.now))
        return desk.absent()

    assert absent_after(50) == ()
    assert absent_after(30) == ("d1", "d2")
    assert absent_after(450) == ("d1", "d2")
    assert absent_after(100) == ("d1", "d2", "d3")


def test_a_source_started_anew_takes_the_place_of_the_old_one() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("d1", "device", "gateway", origins=("s/d1~1",))
    assert not desk.submit().trouble
    desk.report("d1", "device", "gateway", origins=("s/d1~2",), start=2)
    assert desk.sources() == {"s/d1~2"}


def test_a_device_that_comes_back_without_its_source_is_waited_for_no_longer() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for name in ("d1", "d2"):
        desk.report(name, "device", "gateway", origins=(f"s/{name}",))
    assert not desk.submit().trouble
    desk.report("d2", "device", "gateway", start=2)
    assert desk.sources() == {"s/d1"}


def test_a_route_of_relays_is_told_all_at_once_and_who_waits_for_rows_before_it() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for name, above in (("e1", "gateway"), ("e2", "e1"), ("e3", "e2")):
        desk.report(name, "edge", above)
    desk.report("d1", "device", "e3", origins=("s/d1",))
    assert not desk.submit(Sink(kind="log")).trouble
    assert desk.running.keys() == {"gateway"}  # it waits for the origin: it knows first
    assert lines(desk.report("gateway", "gateway")) == [
        "to d1: Orders, run q v1 to e3; peers e3",
        "to e3: Orders, run q v1 to e2; peers d1, e2",
        "to e2: Orders, run q v1 to e1",
        "to e1: Orders, run q v1 to gateway",
    ]


def test_an_invitation_that_has_expired_lets_nobody_connect() -> None:
    desk = Desk(keys=True)
    invite = Ask("1", "invite", to_body(Invite(key="K" * 40, node=NodeId("d1"), kind="device", expires_us=100)))
    said = desk.machine.handle(Arrived(b"user", invite, None, "O" * 40), 0, 50)
    assert lines(said) == [
        "keep invite KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK",
        "allow invited d1, operator",
        "to user: Answer",
    ]
    assert isinstance(said[1], Allow)
    assert "K" * 40 in {peer.key for peer in said[1].peers}
    assert desk.machine.handle(Tick(), 1, 100) == []
    kept, allow = desk.machine.handle(Tick(), 2, 101)
    assert isinstance(allow, Allow)
    assert "K" * 40 not in {peer.key for peer in allow.peers}
    assert kept == Keep("invite", "K" * 40, None)


def test_of_two_gateways_the_one_that_sources_reach_is_used_and_the_other_stands_by() -> None:
    desk = Desk()
    desk.report("b-gateway", "gateway")
    desk.report("d1", "device", "b-gateway", origins=("s/d1",))
    desk.report("a-gateway", "gateway")
    assert desk.submit().trouble == ""
    assert desk.deployment.root == "b-gateway"
    nodes = from_body(desk.ask("topology", None).body, list[NodeLine])
    assert {node.node: node.state for node in nodes} == {"b-gateway": "up", "d1": "up", "a-gateway": "stands by"}


def test_of_two_gateways_that_one_device_reaches_the_first_by_name_is_used_and_stays_so() -> None:
    desk = Desk()
    desk.report("b-gateway", "gateway")
    desk.report("c-gateway", "gateway")
    desk.report("d1", "device", "c-gateway", "b-gateway", origins=("s/d1",))
    assert desk.submit().trouble == ""
    assert desk.deployment.root == "b-gateway"
    desk.report("a-gateway", "gateway")
    desk.report("d1", "device", "c-gateway", "b-gateway", "a-gateway", origins=("s/d1",))
    assert desk.deployment.root == "b-gateway", "a query stays at its gateway"
    nodes = from_body(desk.ask("topology", None).body, list[NodeLine])
    states = {node.node: node.state for node in nodes if node.node != "d1"}
    assert states == {"a-gateway": "stands by", "b-gateway": "up", "c-gateway": "stands by"}


def test_a_sink_on_a_node_without_a_disk_is_refused() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("edge", "edge", "gateway")
    answer = desk.submit(Sink(kind="file", node=NodeId("edge"), path="x"))
    assert "`edge` has no disk" in answer.trouble
    assert not desk.machine.queries


def test_whoever_was_invited_as_a_device_cannot_become_a_gateway() -> None:
    desk = Desk(keys=True)
    desk.machine.membership.enlist(NodeId("aaa"), "device", "A" * 40)
    (refusal,) = desk.report("aaa", "gateway", key="A" * 40)
    assert line(refusal) == "to aaa: Refused, malformed"
    assert isinstance(refusal, Send)
    assert isinstance(refusal.message, Refused)
    assert "invited as a device" in refusal.message.text
    assert desk.machine.membership.gateways() == []


@pytest.mark.parametrize("revoked", [True, False])
def test_a_node_that_is_invited_again_is_what_it_was_invited_as(revoked: bool) -> None:
    desk = Desk(keys=True)
    for name, kind in (("gateway", "gateway"), ("mast", "device")):
        desk.machine.membership.enlist(NodeId(name), kind, name[0] * 40)  # type: ignore[arg-type]
    desk.report("gateway", "gateway", key="g" * 40)
    desk.report("mast", "device", "gateway", key="m" * 40)
    desk.report("gateway", "gateway", key="g" * 40)
    if revoked:
        desk.ask("revoke", Named(name="mast"))
    invite = Invite(key="K" * 40, node=NodeId("mast"), kind="edge", expires_us=100)
    assert not desk.ask("invite", invite).trouble
    enlist = Ask("enlist", "enlist", to_body(Enlist(node=NodeId("mast"), key="n" * 40)))
    desk.obey(desk.machine.handle(Arrived(b"mast", enlist, None, "K" * 40), desk.now))
    assert not [said for said in lines(desk.report("mast", "edge", "gateway", key="n" * 40)) if "Refused" in said]
    assert desk.machine.membership.topology.node(NodeId("mast")).relays
    desk.report("gateway", "gateway", key="g" * 40)
    assert desk.knows["gateway"] == digest_of((Peer(node=NodeId("mast"), address="here", key="n" * 40, device=False),))


def test_revoking_the_only_neighbour_of_a_node_is_told_to_it() -> None:
    desk = Desk(keys=True)
    for name, kind in (("gateway", "gateway"), ("edge", "edge")):
        desk.machine.membership.enlist(NodeId(name), kind, name[0] * 40)  # type: ignore[arg-type]
    desk.report("gateway", "gateway", key="g" * 40)
    desk.report("edge", "edge", "gateway", key="e" * 40)
    desk.report("gateway", "gateway", key="g" * 40)
    desk.knows["gateway"] = "edge"
    desk.ask("revoke", Named(name="edge"))
    assert desk.beside_the_answer == [
        "keep node edge",
        "allow gateway, operator",
        "keep ended edge 1",
        "to gateway: Orders, peers nothing",
    ]
    assert desk.report("gateway", "gateway", key="g" * 40) == []
    assert desk.knows["gateway"] == digest_of(())
    assert lines(desk.report("edge", "edge", "gateway", key="e" * 40)) == ["to edge: Refused, identity"]


def test_a_coordinator_that_restarts_finds_its_world_again() -> None:
    desk = Desk()
    kept: dict[tuple[str, str], bytes] = {}

    def keep(commands: list[Command]) -> None:
        for c in commands:
            if isinstance(c, Keep) and c.record is not None:
                kept[(c.kind, c.name)] = c.record

    keep(desk.report("gateway", "gateway"))
    keep(desk.report("d1", "device", "gateway", origins=("s/d1",)))
    ask = Ask("1", "submit", to_body(submission()))
    keep(desk.obey(desk.machine.handle(Arrived("user", ask), desk.now)))
    before = dict(desk.deployment.fragments)
    desk.machine = Coordinator()
    (allowed,) = desk.machine.restore((kind, name, data) for (kind, name), data in kept.items())
    assert isinstance(allowed, Allow)
    assert desk.deployment.fragments == before
    desk.machine.validate()
    lines = from_body(desk.ask("topology", Named()).body, list[NodeLine])
    assert {(line.node, line.state) for line in lines} == {("gateway", "expected"), ("d1", "expected")}
    for _ in range(2):  # the gateway tells that it runs its part, then the device is told its own
        desk.report("gateway", "gateway")
        desk.report("d1", "device", "gateway", origins=("s/d1",))
    (line,) = from_body(desk.ask("queries", Named()).body, list[QueryLine])
    assert (line.state, line.version) == ("running", 1)


def test_a_node_says_what_it_keeps_and_how_long_that_can_go_on() -> None:
    desk = Desk()
    desk.submit()
    for n in range(40):  # a megabyte a second, of 100
        held = (Held(QueryId("q"), 20_000_000, 7_000_000),)
        desk.report("d1", "device", held=held, taken_bytes=n * 1_000_000)

    def line() -> NodeLine:
        (found,) = from_body(desk.ask("topology", Named()).body, list[NodeLine])
        return found

    before = line()
    assert (before.state, before.held_bytes, before.memory_bytes) == ("up", 20_000_000, 100_000_000)
    assert before.lasts_ms == pytest.approx(80_000 - before.silent_ms, rel=0.01)
    assert before.oldest_ms == 7_000 + before.silent_ms
    desk.now += 60_000_000
    after = line()
    assert (after.state, after.silent_ms - before.silent_ms) == ("away", 60_000)
    assert (after.oldest_ms - before.oldest_ms, after.lasts_ms) == (60_000, (before.lasts_ms or 0) - 60_000)
    desk.now += 60_000_000
    assert line().lasts_ms == 0


def test_a_query_that_is_stopped_is_not_placed_again_whatever_has_happened_before() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for device in ("d1", "d2"):
        desk.report(device, "device", "gateway", origins=(f"s/{device}",))
    desk.submit()
    desk.obey(desk.machine.handle(Arrived(b"d2", Goodbye(NodeId("d2"))), desk.now))
    desk.ask("stop", Named(name="q"))
    desk.obey(desk.machine.handle(Tick(), desk.now + 1))
    assert desk.machine.queries[QueryId("q")].state is QueryState.STOPPED


def test_a_query_waits_for_a_gateway_that_was_invited_and_has_not_reported() -> None:
    desk = Desk()
    desk.machine.membership.enlist(NodeId("gateway"), "gateway", "k" * 40)
    desk.report("d1", "device", "gateway", origins=("s/d1",), reaches=())
    desk.submit()
    query = desk.machine.queries[QueryId("q")]
    assert query.waits_for == "waits for a gateway; start one: rove gateway"
    desk.report("gateway", "gateway")
    for _ in range(3):
        desk.report("d1", "device", "gateway", origins=("s/d1",))
        desk.report("gateway", "gateway")
    assert query.state is QueryState.RUNNING
