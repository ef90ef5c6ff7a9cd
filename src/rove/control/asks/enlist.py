"""The verb `enlist`: an invited node, or process of `rove cloud`, sends the key that it will use. It is the only verb
that needs no key of its own, because the invitation proves who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rove.control.asks.requests import Enlist, Named, from_body, to_body
from rove.control.members.clouds import CloudRecord
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
    if invited.kind == "cloud":
        cloud = CloudRecord(name=invited.node, key=asked.key)
        coordinator.clouds.keep(cloud)
        coordinator.keep("cloud", cloud.name, cloud)
    else:
        record = coordinator.membership.enlist(invited.node, invited.kind, asked.key)
        coordinator.keep("node", record.node, record)
        coordinator.deployments.touch_links(record.node, relay=record.kind != "device")  # it may be of another kind
        coordinator.settle()
    coordinator.keep_bytes("invite", invited.key, None)
    coordinator.allow()
    answer = Answer(ask.id, to_body(Named(name=invited.node)))
    coordinator.remember(answer)
    return answer
