"""A token lets the node that it names join once, until it expires, whatever restarts meanwhile."""

from __future__ import annotations

import pytest

from rove.control.asks.requests import Enlist, Invite, to_body
from rove.control.commands import Keep
from rove.control.coordinator import Coordinator
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId
from rove.model.messages import Answer, Ask

OPERATOR, TOKEN, KEY = "O" * 40, "T" * 40, "K" * 40
EXPIRES_US = 100


class Door:
    """A coordinator with keys and its catalog. It has invited `d1`."""

    def __init__(self) -> None:
        self.machine, self.kept, self._ids = Coordinator(True, OPERATOR), dict[tuple[str, str], bytes](), 0
        invite = Invite(key=TOKEN, node=NodeId("d1"), kind="device", expires_us=EXPIRES_US)
        assert not self._ask("invite", to_body(invite), OPERATOR, 0)

    def enlist(self, node: str = "d1", wall: int = EXPIRES_US) -> str:
        """What is wrong, if a node may not join."""
        return self._ask("enlist", to_body(Enlist(node=node, key=KEY)), TOKEN, wall)

    def restart(self) -> None:
        self.machine = Coordinator(True, OPERATOR)
        self.machine.restore([(kind, name, record) for (kind, name), record in self.kept.items()])

    def _ask(self, verb: str, body: bytes, key: str, wall: int) -> str:
        self._ids += 1
        commands = self.machine.handle(Arrived(b"c", Ask(str(self._ids), verb, body), None, key), 0, wall)
        for command in commands:
            if isinstance(command, Keep) and command.record is None:
                self.kept.pop((command.kind, command.name), None)
            elif isinstance(command, Keep) and command.record is not None:
                self.kept[command.kind, command.name] = command.record
        (answer,) = [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, Answer)]
        return answer.trouble


@pytest.mark.parametrize("restarts", [False, True])
def test_a_token_lets_its_node_join_once(restarts: bool) -> None:
    door = Door()
    if restarts:
        door.restart()
    assert door.enlist() == ""
    assert door.machine.membership.members[NodeId("d1")].record.key == KEY
    if restarts:
        door.restart()
    assert "was used already" in door.enlist()


def test_a_token_that_has_expired_lets_nobody_join() -> None:
    door = Door()
    assert "has expired" in door.enlist(wall=EXPIRES_US + 1)
    assert not door.machine.membership.members


def test_a_token_is_for_the_node_that_it_names() -> None:
    door = Door()
    assert door.enlist(node="gateway") == "this token is for `d1`, not for `gateway`"
    assert not door.machine.membership.members
    assert door.enlist() == ""
