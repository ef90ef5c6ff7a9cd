"""Names that nothing can have are refused at every door of the coordinator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from rove.control.asks.requests import CloudSink, Invite, Submit, Update, to_body
from rove.model.errors import BadName, ProtocolError
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import (
    PROTOCOL,
    Answer,
    Ask,
    Facts,
    Held,
    Refused,
    Report,
    Sink,
    Tally,
    check_report,
    decode,
    encode,
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


BAD_OUTPUTS = ["../x", "a/b", ".hid", "late-0", "fault-0", "out-folded", "0", "x" * 300, "a\x00b", ""]
BAD_PATHS = ["../x", "/etc/x", "x/../log/p/out", "a\x00b", "a b", "x//y", "", ".", "log/p/out", "memory-1/p", "starts"]


@pytest.mark.parametrize("name", BAD_OUTPUTS)
@pytest.mark.parametrize("verb", ["submit", "update"])
def test_a_plan_whose_output_would_be_another_folder_is_refused_and_not_kept(verb: str, name: str) -> None:
    desk = Desk()
    desk.submit()
    stages = codec.decode(submission().plan)
    plan = codec.encode(replace(stages, outputs=((name, stages.outputs[0][1]),)))
    asked = (
        Update(name="q", plan=plan) if verb == "update" else msgspec.structs.replace(submission(), name="p", plan=plan)
    )
    said = desk.machine.handle(Arrived(b"user", Ask("1", verb, to_body(asked))), desk.now)
    assert len(said) == 1, "nothing is kept"
    assert isinstance(said[0], Send)
    assert isinstance(said[0].message, Answer)
    assert "cannot name an output" in said[0].message.trouble
    assert list(desk.machine.queries) == ["q"]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_sink_whose_path_leads_elsewhere_is_refused(path: str) -> None:
    asked = submission(Sink(kind="file", node=NodeId("edge"), path=path))
    trouble = Desk().ask("submit", asked).trouble
    assert "own folder" in trouble or "of the node itself" in trouble


@pytest.mark.parametrize(
    "sink", [Sink(kind="log", path="x"), Sink(kind="log", time="ts"), Sink(kind="discard", span_us=1)]
)
def test_a_sink_that_says_what_the_coordinator_decides_is_refused(sink: Sink) -> None:
    assert "a sink has a node" in Desk().ask("submit", submission(sink)).trouble


def test_the_return_timeout_of_a_stream_that_cannot_be_or_is_not_read_is_refused() -> None:
    desk = Desk()
    for stream, said in (("a b", "`a b` cannot name a stream"), ("t", "the query reads no stream `t`")):
        asked = msgspec.structs.replace(submission(), patience_of={stream: 1})
        assert said in desk.ask("submit", asked).trouble
    assert not desk.machine.queries


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (CloudSink(kind="table", name="t_late"), "rows that were set aside"),
        (CloudSink(kind="table", name="t_faults"), "rows that were set aside"),
        (CloudSink(kind="table", name="t", options={"path": "/etc"}), "`path` cannot be set here"),
        (CloudSink(kind="table", name="t", options={"PATH": "/etc"}), "`PATH` cannot be set here"),
        (CloudSink(kind="noop", options={"checkpointlocation": "x"}), "`checkpointlocation` cannot be set here"),
    ],
)
def test_a_sink_in_spark_that_would_write_elsewhere_is_refused(sink: CloudSink, said: str) -> None:
    assert said in Desk().ask("submit", msgspec.structs.replace(submission(), cloud=sink)).trouble


@pytest.mark.parametrize("key", ["", "K" * 39, "K" * 39 + "\n", "K" * 39 + "\x00", "K" * 39 + " "])
def test_a_text_that_is_no_public_key_invites_nobody(key: str) -> None:
    asked = Invite(node="d", kind="device", key=key, expires_us=1)
    assert "a public key has 40 characters" in Desk().ask("invite", asked).trouble


def test_a_request_with_an_endless_id_or_verb_is_malformed() -> None:
    for ask in (Ask("i" * 300, "stop", b""), Ask("1", "v" * 300, b"")):
        with pytest.raises(ProtocolError):
            decode(encode(ask))


@pytest.mark.parametrize(
    "more",
    [
        {"tallies": (Tally(QueryId("q"), Origin("a b", "edge")),)},
        {"tallies": (Tally(QueryId("../q"), Origin("s", "edge")),)},
        {"tallies": (Tally(QueryId("q"), Origin("q", "", 0, -7)),)},
        {"running": {QueryId("a/b"): Version(1)}},
        {"ended": (QueryId(".q"),)},
        {"unknown": (QueryId("a b"),)},
        {"troubles": {QueryId("a\x00b"): ()}},
        {"held": (Held(QueryId("a b"), 1, 1),)},
        {"moved": ((QueryId("q"), Origin("a b", "edge")),)},
        {"reaches": (NodeId("a b"),)},
        {"refused": {"x" * 300: 1}},
        {"refused": {f"reason {n}": 1 for n in range(200)}},
    ],
)
def test_a_report_with_a_name_that_others_would_have_to_read_back_is_refused(more: dict[str, Any]) -> None:
    report = Report(protocol=PROTOCOL, node=NodeId("edge"), start=1, number=1, whole=True)
    check_report(report)
    with pytest.raises(BadName):
        check_report(msgspec.structs.replace(report, **more))


@pytest.mark.parametrize("address", ["x" * 600, "tcp://a\x00b", "tcp://a\nb"])
def test_a_node_with_an_address_that_cannot_be_is_refused(address: str) -> None:
    facts = Facts(kind="edge", address=address, parents=(), slots=1, memory_bytes=1, sources=())
    report = Report(protocol=PROTOCOL, node=NodeId("edge"), start=1, number=1, whole=True, facts=facts)
    with pytest.raises(BadName):
        check_report(report)
