"""The verb `remove`: forgets a node that will not come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Named, from_body
from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def remove(coordinator: Coordinator, body: bytes) -> Named:
    node = NodeId(from_body(body, Named).name)
    coordinator.member(node)
    coordinator.forget_node(node)
    return Named(name=node)
