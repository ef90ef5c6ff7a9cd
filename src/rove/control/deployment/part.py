"""One node's part in one query: what is decided, and what is kept of it.

Law: everything else that a node is told follows from the parts of its query (`fragments`). So a record is (query,
node), and a change writes the records of the nodes that it touches.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from rove.model.ids import NodeId, Origin, QueryId, Stage, Version

At: TypeAlias = tuple[Stage, NodeId]  # an operator, or a source, where it is
GONE = Version(-1)  # a sender that has no part any more: it must stop altogether


class Part(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What was decided for one node. Rows go from here to `next`; None is the end of the query."""

    next: NodeId | None
    hosts: tuple[Stage, ...] = ()  # the operators that were placed here, in order
    sources: tuple[tuple[Stage, Origin], ...] = ()  # the producers here that have a place in the query
    others: tuple[NodeId, ...] = ()  # where alternative routes begin
    relay: bool = False  # it is on an alternative route only, and passes rows on


class PartRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A part as it is kept. A node that lost its part keeps a record until it has let go.

    `senders` are the nodes that sent to this one and were told to send elsewhere, with the version from which they do.
    """

    query: QueryId
    node: NodeId
    part: Part | None
    version: Version
    senders: tuple[tuple[NodeId, Version], ...] = ()
    absent: bool = False  # nobody waits for what comes from here

    @property
    def name(self) -> str:
        """The record's name in the catalog: names of queries and nodes hold no slash."""
        return f"{self.query}/{self.node}"
