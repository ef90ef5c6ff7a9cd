"""The history of changes: causes, steps and outcomes, also after a restart of the coordinator."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rove.control.asks.requests import AskHistory, HistoryLine, Named, from_body
from rove.control.commands import Command, Keep
from rove.control.coordinator import Coordinator
from rove.control.deployment.change_set import ChangeSet, Difference
from rove.control.deployment.tables.history import LINES_MAX, NODES_MAX, History, place_of
from rove.model.events import Arrived
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import Goodbye
from tests.control.desk import Desk

DEVICE = ("d", "device", "west", "east")


def town() -> Desk:
    """A device under one of two cells, and a query over it that has been submitted."""
    desk = Desk()
    desk.report("gateway", "gateway")
    for cell in ("west", "east"):
        desk.report(cell, "edge", "gateway")
    at(desk, "west")
    assert not desk.submit().trouble
    return desk


def at(desk: Desk, cell: str) -> list[Command]:
    return desk.report(*DEVICE, origins=("s/d",), reaches=(cell,))


def all_report(desk: Desk, cell: str) -> None:
    """A second passes before each report."""
    desk.report("gateway", "gateway")
    for each in ("west", "east"):
        desk.report(each, "edge", "gateway")
    at(desk, cell)


def history(desk: Desk, **asked: Any) -> list[HistoryLine]:
    answer = desk.ask("history", AskHistory(**asked))
    assert not answer.trouble
    return from_body(answer.body, list[HistoryLine])


def test_a_change_says_why_it_came_whom_it_touched_and_how_long_it_took() -> None:
    desk = town()
    (line,) = history(desk)
    assert (line.causes, line.outcome, line.told_ms, line.took_ms) == (("it was submitted",), "under way", None, None)
    assert (line.deploy, line.nodes, line.began_us) == (("d", "gateway", "west"), 3, desk.now)
    all_report(desk, "west")
    (line,) = history(desk)
    assert (line.outcome, line.told_ms, line.took_ms) == ("done", 1_000, 4_000)
    at(desk, "east")
    _, moved = history(desk)
    assert moved.causes == ("sources or links of d changed",)
    assert (moved.deploy, moved.update, moved.undeploy, moved.nodes) == (("east",), ("d",), ("west",), 3)
    assert (moved.version, moved.outcome, moved.began_us) == (2, "under way", desk.now)


def test_a_change_that_a_newer_one_overtakes_says_so() -> None:
    desk = town()
    at(desk, "east")
    assert [line.outcome for line in history(desk)] == ["overtaken", "under way"]
    desk.now += 7_000
    desk.ask("stop", Named(name="q"))
    assert [(line.outcome, line.took_ms) for line in history(desk)] == [("overtaken", 1_000), ("stopped", 7)]


def test_a_removed_node_is_a_cause() -> None:
    desk = town()
    all_report(desk, "west")
    desk.obey(desk.machine.handle(Arrived(b"d", Goodbye(NodeId("d"))), desk.now, desk.now))
    assert history(desk)[-1].causes == ("sources or links of d changed",)


def test_a_user_asks_for_one_query_and_for_the_last_changes() -> None:
    desk = town()
    at(desk, "east")
    at(desk, "west")
    assert [line.version for line in history(desk, last=2)] == [2, 3]
    assert len(history(desk, query="q")) == 3
    assert "no query `p`" in desk.ask("history", AskHistory(query="p")).trouble


def test_a_coordinator_that_restarts_goes_on_with_its_history() -> None:
    kept: dict[tuple[str, str], bytes] = {}
    desk = Desk()

    class Kept(Coordinator):
        def handle(self, *arguments: Any) -> list[Command]:
            commands = super().handle(*arguments)
            kept.update({(c.kind, c.name): c.record for c in commands if isinstance(c, Keep) and c.record is not None})
            return commands

    desk.machine = Kept()
    desk.report("gateway", "gateway")
    desk.report("d", "device", "gateway", origins=("s/d",))
    assert not desk.submit().trouble
    before = history(desk)
    desk.machine = Coordinator()
    desk.machine.restore((kind, name, data) for (kind, name), data in kept.items())
    assert history(desk) == before
    assert [line.outcome for line in before] == ["under way"]
    for _ in range(2):
        desk.report("gateway", "gateway")
        desk.report("d", "device", "gateway", origins=("s/d",))
    assert [line.outcome for line in history(desk)] == ["done"]


def change(query: str, version: int, nodes: int = 1) -> ChangeSet:
    lost = tuple(NodeId(f"n{n:03}") for n in range(nodes))
    return ChangeSet(QueryId(query), Version(version), Difference({}, frozenset(), lost), (), ("a test",))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("began", "told", "done", "stopped")))))
def test_what_is_stored_is_what_is_known_and_a_query_has_one_change_under_way(steps: list[tuple[str, str]]) -> None:
    found, stored = History(), {}
    for wall, (name, step) in enumerate(steps):
        query = QueryId(name)
        match step:
            case "began":
                lines = found.began(change(name, wall), wall)
            case "told":
                lines = []
                found.told(query, wall)
            case _:
                lines = found.ended(query, "done" if step == "done" else "stopped", wall)
        stored |= {place_of(line): msgspec.msgpack.encode(line) for line in lines}
        open_ones = [line.query for line in found if line.outcome == "under way"]
        assert len(open_ones) == len(set(open_ones))
    again = History()
    again.restore(msgspec.msgpack.decode(line, type=HistoryLine) for line in stored.values())
    ended = [line for line in found if line.outcome != "under way"]
    assert [line for line in again if line.outcome != "under way"] == ended
    assert [line.number for line in again] == [line.number for line in found]
    (last,) = [line for line in again.began(change("d", 1), 99) if line.query == "d"]
    assert last.number == sum(step == "began" for _, step in steps)


def test_the_oldest_lines_and_long_lists_of_nodes_make_room() -> None:
    found, places = History(), set()
    for version in range(LINES_MAX + 10):
        places |= {place_of(line) for line in found.began(change("q", version, nodes=50), version)}
    lines = list(found)
    assert (len(lines), lines[0].version, len(places)) == (LINES_MAX, 10, LINES_MAX)
    assert (len(lines[0].undeploy), lines[0].nodes) == (NODES_MAX, 50)
