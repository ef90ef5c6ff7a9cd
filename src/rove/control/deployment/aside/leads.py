"""The ways of states that do not take the way of rows: up from the old node to where two routes meet, then down.

Law: every node on the way knows the next one for each state (`Part.leads`), until the state has arrived or was given
up. Such a node keeps its place in the tree for as long. A state that only goes up takes the way of rows and needs no
leads. Every step costs O(route).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId, Origin

if TYPE_CHECKING:
    from rove.control.deployment.deployment import Deployment


def lead(deployment: Deployment, node: NodeId, target: NodeId, states: Collection[Origin]) -> None:
    """Lead states from one node to another, if that is not above it."""
    tree = deployment.tree
    up, down = list(tree.route(node)), list(tree.route(target))
    if target in up:
        return
    meeting = next(at for at in up if at in down)
    way = [*up[: up.index(meeting)], *reversed(down[: down.index(meeting) + 1])]
    for at, following in pairwise(way):
        part = tree.parts[at]
        deployment.put({at: replace(part, leads=(*part.leads, *((state, following) for state in states)))})


def way(deployment: Deployment, state: Origin) -> Iterator[NodeId]:
    """The nodes that a state passes, from the old node on, as far as it has a way of its own."""
    at: NodeId | None = NodeId(state.node)
    while at is not None and at in deployment.tree:
        yield at
        at = dict(deployment.tree.parts[at].leads).get(state)


def forget(deployment: Deployment, states: Collection[Origin]) -> None:
    """States have arrived, or were given up."""
    for at in dict.fromkeys(node for state in states for node in list(way(deployment, state))):
        part = deployment.tree.parts[at]
        left = tuple(each for each in part.leads if each[0] not in states)
        if left != part.leads:
            deployment.put({at: replace(part, leads=left)})


def validate(deployment: Deployment) -> None:
    """Raise if a lead does not go on to the node that waits for its state. O(nodes × leads)."""
    parts = deployment.tree.parts
    for node, part in parts.items():
        for state, following in part.leads:
            passed = list(way(deployment, state))
            awaits = any(awaited == state for _, awaited in parts[passed[-1]].awaits) if passed else False
            linked = following in parts and node in (
                parts[following].next,
                *(deployment.tree.children.get(following, ())),
            )
            if node not in passed or not awaits or not linked:
                raise BrokenInvariant(f"the state `{state}` is led from `{node}` to `{following}`, and does not arrive")
