"""A process of `rove cloud` has a key of its own, with which it asks what to run and reports, and nothing else."""

from __future__ import annotations

from itertools import count

import pytest

from rove.control.asks.requests import CloudAsk, Enlist, Invite, Invited, Named, to_body
from rove.control.asks.verbs import VERBS
from rove.control.commands import Command, Keep
from rove.control.coordinator import Coordinator
from rove.model.events import Allow, Arrived, Send
from rove.model.ids import NodeId
from rove.model.messages import Answer, Ask, Refused
from tests.control.desk import Desk
from tests.lines import lines

OPERATOR, TOKEN, SPARK = "O" * 40, "T" * 40, "S" * 40
IDS = count()


def ask(machine: Coordinator, verb: str, body: object, key: str = OPERATOR) -> tuple[Answer | Refused, list[Command]]:
    said = machine.handle(Arrived(b"user", Ask(f"{next(IDS)}", verb, to_body(body)), None, key), 0, 50)
    (answer,) = [c.message for c in said if isinstance(c, Send) and isinstance(c.message, Answer | Refused)]
    return answer, said


def invite(machine: Coordinator, name: str, kind: Invited, token: str = TOKEN) -> Answer | Refused:
    return ask(machine, "invite", Invite(node=name, kind=kind, key=token, expires_us=100))[0]


@pytest.fixture
def machine() -> Coordinator:
    """A coordinator where `spark` has used its token."""
    made = Coordinator(True, OPERATOR)
    invite(made, "spark", "cloud")
    ask(made, "enlist", Enlist(node="spark", key=SPARK), TOKEN)
    return made


def test_a_token_for_rove_cloud_gives_it_a_key_and_makes_it_no_node() -> None:
    machine = Coordinator(True, OPERATOR)
    invite(machine, "spark", "cloud")
    answer, said = ask(machine, "enlist", Enlist(node="spark", key=SPARK), TOKEN)
    assert answer == Answer(answer.id, to_body(Named(name="spark")))  # type: ignore[union-attr]
    assert lines(said) == [
        "keep cloud spark",
        "forget invite TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT",
        "allow spark, operator",
        "to user: Answer",
    ]
    (allow,) = [c for c in said if isinstance(c, Allow)]
    assert [peer.key for peer in allow.peers] == [SPARK, OPERATOR]
    assert machine.membership.members == {}


@pytest.mark.parametrize("verb", VERBS)
def test_its_key_asks_what_to_run_and_reports_and_nothing_else(machine: Coordinator, verb: str) -> None:
    answer, _ = ask(machine, verb, CloudAsk(), SPARK)
    if verb in ("cloud", "progress", "reads", "rows", "checks", "checked"):
        assert isinstance(answer, Answer)
    else:
        assert answer == Refused("identity", "this key may not give commands")
        assert machine.refused == {"identity": 1}


def test_its_key_is_not_that_of_a_node(machine: Coordinator) -> None:
    desk = Desk(keys=True)
    desk.machine = machine
    said = desk.report("spark", "gateway", key=SPARK)
    assert lines(said) == ["to spark: Refused, identity"]


def test_the_key_of_a_node_is_not_that_of_rove_cloud(machine: Coordinator) -> None:
    machine.membership.enlist(NodeId("gateway"), "gateway", "G" * 40)
    assert isinstance(ask(machine, "cloud", CloudAsk(), "G" * 40)[0], Refused)
    assert isinstance(ask(machine, "cloud", CloudAsk(), "")[0], Refused)


def test_its_key_is_known_after_a_restart_and_not_after_it_is_revoked(machine: Coordinator) -> None:
    other = Coordinator(True, OPERATOR)
    invite(other, "spark", "cloud")
    kept = [c for c in ask(other, "enlist", Enlist(node="spark", key=SPARK), TOKEN)[1] if isinstance(c, Keep)]
    restored = Coordinator(True, OPERATOR)
    restored.restore([(c.kind, c.name, c.record) for c in kept if c.record is not None])
    assert isinstance(ask(restored, "cloud", CloudAsk(), SPARK)[0], Answer)
    answer, said = ask(restored, "revoke", Named(name="spark"))
    assert isinstance(answer, Answer)
    assert not answer.trouble
    assert lines(said) == ["forget cloud spark", "allow operator", "to user: Answer"]
    (allow,) = [c for c in said if isinstance(c, Allow)]
    assert [peer.key for peer in allow.peers] == [OPERATOR]
    assert isinstance(ask(restored, "cloud", CloudAsk(), SPARK)[0], Refused)


def test_a_name_is_that_of_a_node_or_of_rove_cloud(machine: Coordinator) -> None:
    machine.membership.enlist(NodeId("gateway"), "gateway", "G" * 40)
    invite(machine, "later", "edge", "1" * 40)
    invite(machine, "other", "cloud", "2" * 40)
    for name, kind, words in [
        ("gateway", "cloud", "`gateway` is a node; choose another name"),
        ("later", "cloud", "`later` is a node; choose another name"),
        ("spark", "device", "`spark` is the name of a rove cloud; choose another name"),
        ("other", "device", "`other` is the name of a rove cloud; choose another name"),
    ]:
        answer = invite(machine, name, kind, "3" * 40)  # type: ignore[arg-type]
        assert isinstance(answer, Answer)
        assert words in answer.trouble
    answer = invite(machine, "spark", "cloud", "3" * 40)
    assert isinstance(answer, Answer)
    assert not answer.trouble  # a new key for the same process
