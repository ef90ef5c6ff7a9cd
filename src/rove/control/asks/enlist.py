"""The verb `enlist`: an invited node sends the key that it will use. It is the only verb that needs no operator's key,
because the invitation proves the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rove.control.asks.requests import Enlist, Named, from_body, to_body
from rove.model.errors import RoveError
from rove.model.messages import Answer, Ask

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def enlist(coordinator: Coordinator, ask: Ask, key: str) -> Answer:
    try:
        asked = from_body(ask.body, Enlist)
        invited = coordinator.invitations.accept(asked, key, coordinator.wall)
    except (RoveError, msgspec.MsgspecError) as error:
        coordinator.count("identity")
        return Answer(ask.id, b"", str(error))
    record = coordinator.membership.enlist(invited.node, invited.kind, asked.key)
    coordinator.keep("node", record.node, record)
    coordinator.keep_bytes("invite", invited.key, None)
    coordinator.allow()
    answer = Answer(ask.id, to_body(Named(name=record.node)))
    coordinator.remember(answer)
    return answer
