"""Whose batches a node may have carried in one query: those of nodes whose route ever led through it.

Law: this table of routes only grows. Routes change while batches are on their way, and counts of old routes are
reported for as long as a node runs, so no route is removed. A route is in the table before its sender is told to take
it, so no count of an honest node is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.model.ids import NodeId


class PastRoutes:
    """By node, the nodes that it was ever told to send to, on its own route and on others. O(nodes that ever had a part
    × nodes that they sent to)."""

    def __init__(self) -> None:
        self._sent: dict[NodeId, dict[NodeId, None]] = {}
        self._complete = True

    def restored(self) -> None:
        """After a restart old routes are unknown, so counts of any node are accepted."""
        self._complete = False

    def add(self, node: NodeId, targets: Iterable[NodeId]) -> None:
        """A node is told to send to these."""
        self._sent.setdefault(node, {}).update(dict.fromkeys(targets))

    def may_carry(self, relay: NodeId, node: NodeId) -> bool:
        """Whether a batch that was made on `node` can have come to `relay`. O(nodes above `node` on all its routes)."""
        if not self._complete or relay == node:
            return True
        seen, above = {node: None}, [node]
        while above:
            for target in self._sent.get(above.pop(), ()):
                if target == relay:
                    return True
                if target not in seen:
                    seen[target] = None
                    above.append(target)
        return False
