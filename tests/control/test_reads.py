"""Reading is pure: nothing that is asked of the coordinator changes what it knows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rove.control.asks.requests import AskHistory, CloudSink, Drain, Named, to_body
from rove.control.asks.verbs import VERBS
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Ask, Sink
from tests.control.desk import Desk, submission

BODIES: dict[str, Any] = {
    "queries": Named(),
    "topology": Named(),
    "status": Named(),
    "streams": Named(),
    "history": AskHistory(),
    "explain": Named(name="q"),
    "draining": Named(name="edge"),
    "recent": Named(name="q"),
}
# Verbs that change what is known of Spark, and the answers that it gives, and nothing that is kept.
OF_SPARK = ("cloud", "progress", "read", "reads", "rows", "check", "checks", "checked")


def desk() -> Desk:
    """Queries that run, wait, end in Spark, were stopped, and a node that is drained or silent."""
    found = Desk()
    found.report("gateway", "gateway")
    found.report("edge", "edge", "gateway")
    found.report("d", "device", "edge", origins=("s/d",))
    found.submit()
    found.ask("submit", msgspec.structs.replace(submission(), name="r", cloud=CloudSink(kind="table", name="r")))
    found.ask("submit", msgspec.structs.replace(submission(Sink(kind="log", node=NodeId("away"))), name="w"))
    found.ask("submit", msgspec.structs.replace(submission(), name="p"))
    found.ask("stop", Named(name="p"))
    found.report("edge", "edge", "gateway")
    found.ask("drain", Drain(name="edge"))
    found.now += 60_000_000
    return found


def seen(value: Any, known: dict[int, int]) -> Any:
    """Everything below a value, as plain values. What is met again is named by where it was met first."""
    if value is None or isinstance(value, str | int | float | bytes | type):
        return value
    if id(value) in known:
        return f"as {known[id(value)]}"
    known[id(value)] = len(known)
    if isinstance(value, dict):
        return [(seen(key, known), seen(each, known)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return [seen(each, known) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    slots += list(getattr(type(value), "__struct_fields__", ()))
    fields = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    return [type(value).__name__, *((name, seen(each, known)) for name, each in sorted(fields.items()))]


def state(desk: Desk) -> Any:
    """All that the coordinator knows, without the commands of the last event."""
    parts = vars(desk.machine)
    return seen({name: part for name, part in parts.items() if name not in ("_commands", "_orders")}, {})


@pytest.mark.parametrize("verb", BODIES)
def test_a_verb_that_reads_changes_nothing_and_commands_nothing_but_its_answer(verb: str) -> None:
    at = desk()
    at.machine.handle(Arrived(b"user", Ask("first", "streams", to_body(Named()))), at.now, at.now)
    before = state(at)
    said = at.machine.handle(Arrived(b"user", Ask(f"id {verb}", verb, to_body(BODIES[verb]))), at.now, at.now)
    assert state(at) == before
    (answer,) = said
    assert isinstance(answer, Send)
    assert not answer.message.trouble  # type: ignore[union-attr]


def test_every_verb_that_does_not_change_anything_is_tried() -> None:
    assert {name for name, verb in VERBS.items() if not verb.changes} == {*BODIES, *OF_SPARK}


def test_a_scrape_of_the_metrics_changes_nothing() -> None:
    at = desk()
    before = state(at)
    at.machine.snapshot(at.now, at.now)
    assert state(at) == before


def test_a_change_is_seen_by_the_comparison() -> None:
    at = desk()
    before = state(at)
    at.machine.queries[QueryId("q")].cut[NodeId("d")] = 1
    assert state(at) != before
