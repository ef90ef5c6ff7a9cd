"""Names that nothing can have are refused at every door of the coordinator."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rove.control.asks.requests import Submit
from rove.model.events import Send
from rove.model.ids import Origin
from rove.model.messages import (
    Refused,
    Sink,
)
from rove.plan import codec
from rove.plan.operators import Source
from rove.plan.stages import Stages
from tests.control.desk import Desk, submission
from tests.lines import lines


@pytest.mark.parametrize("name", ["coordinator", "operator", ""])
def test_names_that_mean_something_else_are_no_names_of_nodes(name: str) -> None:
    assert lines(Desk().report(name, "edge")) == [f"to {name}: Refused, {'identity' if name else 'malformed'}"]


def test_a_report_with_a_name_that_nothing_can_have_is_refused_and_counted() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    for node, parents, origins in (("d 1", ("gateway",), ()), ("d", ("a/b",), ()), ("d", (), (Origin("a b", "d"),))):
        (said,) = desk.report(node, "device", *parents, origins=origins)
        assert isinstance(said, Send)
        assert isinstance(said.message, Refused)
        assert "cannot name a" in said.message.text
    assert desk.machine.refused == {"malformed": 3}
    assert list(desk.machine.membership.members) == ["gateway"]
    desk.report("d", "device", "gateway", origins=("xrays/d",))
    assert list(desk.machine.streams) == ["xrays"]


@pytest.mark.parametrize(
    ("verb", "body", "said"),
    [
        ("submit", {"name": "a b", "sink": {"kind": "log"}}, "`a b` cannot name a query"),
        ("submit", {"name": "a", "sink": {"kind": "log", "node": "a/b"}}, "`a/b` cannot name a node"),
        (
            "submit",
            {"name": "a", "sink": {"kind": "log"}, "cloud": {"kind": "table", "name": "../t"}},
            "`../t` cannot name a table",
        ),
        ("import", {"text": '{"nodes": [{"id": "a b", "kind": "edge"}]}'}, "`a b` cannot name a node"),
        ("invite", {"node": "a b", "kind": "edge", "key": "K" * 40, "expires_us": 1}, "`a b` cannot name a node"),
    ],
)
def test_an_ask_with_a_name_that_nothing_can_have_is_refused(verb: str, body: dict[str, object], said: str) -> None:
    desk = Desk()
    plan = {"plan": submission().plan} if verb == "submit" else {}
    assert said in desk.ask(verb, body | plan).trouble


def test_a_query_that_reads_a_stream_that_cannot_be_is_refused() -> None:
    plan = codec.encode(Stages.of({"out": Source("a b", pa.schema([("n", pa.int32())]))}))
    asked = Submit(name="q", plan=plan, sink=Sink(kind="log"))
    assert "`a b` cannot name a stream" in Desk().ask("submit", asked).trouble
