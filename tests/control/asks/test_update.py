"""Updating a running query: who is told, what is refused and changes nothing, and that a coordinator remembers it."""

from __future__ import annotations

import pytest

import rove
from rove.control.asks.requests import HistoryLine, Named, Submitted, Update, from_body
from rove.control.commands import Keep
from rove.control.coordinator import Coordinator
from rove.model.events import Send
from rove.model.ids import QueryId
from rove.model.messages import Orders, plan_digest
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.control.desk import COLUMNS, Desk, submission

NODES = ("gateway", "edge", "device")


def plan(condition: str) -> bytes:
    stream = rove.Session.local().stream("s", schema=COLUMNS)
    return codec.encode(Stages.of({"out": optimize((stream.where(condition) if condition else stream).plan)}))


def town() -> Desk:
    """The query `q` keeps rows whose value is above 1, and runs everywhere."""
    desk = Desk()
    assert not desk.submit().trouble
    reports(desk)
    return desk


def reports(desk: Desk, times: int = 4) -> dict[str, bytes]:
    """All nodes report, several times. Returns the plans that they were sent."""
    plans: dict[str, bytes] = {}
    for _ in range(times):
        for node, *parents in (("gateway",), ("edge", "gateway"), ("device", "edge")):
            origins = ("s/device",) if node == "device" else ()
            for command in desk.report(node, node, *parents, origins=origins):
                if isinstance(command, Send) and isinstance(command.message, Orders):
                    plans |= command.message.plans
    return plans


def test_every_node_gets_the_new_plan_once_and_runs_it() -> None:
    desk = town()
    before = {node: desk.running[node][QueryId("q")] for node in NODES}
    answer = desk.ask("update", Update(name="q", plan=plan("value > 5")))
    said = from_body(answer.body, Submitted)
    assert said.version == max(before.values()) + 1
    assert "value > 5" in said.text
    assert desk.machine.queries[QueryId("q")].state.value == "deploying"
    digest = desk.deployment.terms.split.digest
    assert list(reports(desk)) == [digest], "the old plan is sent no more"
    assert {desk.running[node][QueryId("q")] for node in NODES} == {said.version}
    assert {fragment.plan for fragment in desk.deployment.fragments.values()} == {digest}
    assert desk.machine.queries[QueryId("q")].state.value == "running"
    lines = from_body(desk.ask("history", Named()).body, list[HistoryLine])
    assert (lines[-1].causes, lines[-1].outcome, lines[-1].nodes) == (("it was updated",), "done", 3)
    desk.machine.validate()


def test_the_same_text_changes_nothing() -> None:
    desk = town()
    assert not desk.ask("update", Update(name="q", plan=submission().plan)).trouble
    assert desk.beside_the_answer == []


@pytest.mark.parametrize(
    ("name", "condition", "says"),
    [
        ("nobody", "value > 5", "no query `nobody`"),
        ("q", "", "cannot keep its state: the new text has other operators"),
        ("q", "reflect('java.lang.Math', 'abs', value) > '5'", "can only run in Spark"),
    ],
)
def test_an_update_that_cannot_be_is_refused_and_changes_nothing(name: str, condition: str, says: str) -> None:
    desk = town()
    assert says in desk.ask("update", Update(name=name, plan=plan(condition))).trouble
    assert desk.beside_the_answer == []
    assert desk.machine.queries[QueryId("q")].record.plan == plan_digest(submission().plan)


def test_a_query_that_was_stopped_is_not_updated() -> None:
    desk = town()
    desk.ask("stop", Named(name="q"))
    assert "was stopped" in desk.ask("update", Update(name="q", plan=plan("value > 5"))).trouble


def test_one_update_at_a_time() -> None:
    desk = town()
    assert not desk.ask("update", Update(name="q", plan=plan("value > 5"))).trouble
    assert "is being updated" in desk.ask("update", Update(name="q", plan=plan("value > 6"))).trouble
    assert desk.beside_the_answer == []
    reports(desk)
    assert not desk.ask("update", Update(name="q", plan=plan("value > 6"))).trouble


def test_nodes_that_are_away_hold_up_no_update() -> None:
    desk = town()
    assert not desk.ask("update", Update(name="q", plan=plan("value > 5"))).trouble
    desk.now += 60_000_000
    assert not desk.ask("update", Update(name="q", plan=plan("value > 6"))).trouble


def test_a_coordinator_that_starts_again_goes_on_with_the_new_text() -> None:
    desk = Desk()
    kept: dict[tuple[str, str], bytes] = {}
    handle = desk.machine.handle

    def keeping(*args: object) -> object:
        commands = handle(*args)  # type: ignore[arg-type]
        for command in commands:
            if isinstance(command, Keep):
                kept.pop((command.kind, command.name), None)
                if command.record is not None:
                    kept[command.kind, command.name] = command.record
        return commands

    desk.machine.handle = keeping  # type: ignore[method-assign, assignment]
    desk.submit()
    reports(desk)
    desk.ask("update", Update(name="q", plan=plan("value > 5")))
    plans = [name for kind, name in kept if kind == "plan"]
    assert plans == [plan_digest(plan("value > 5"))], "the old plan is forgotten"
    again = Coordinator()
    again.restore((kind, name, data) for (kind, name), data in kept.items())
    assert again.queries[QueryId("q")].plan == plan("value > 5")
    assert again.queries[QueryId("q")].fragments.keys() == desk.deployment.fragments.keys()
    again.validate()
