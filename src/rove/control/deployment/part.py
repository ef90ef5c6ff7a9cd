"""A part: what was decided for one node in one query, and its record.

Law: the fragments follow from the parts of a query (`fragments`). So a record is (query, node), and a change writes the
records of the nodes that it touches.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.spans import Spans

At: TypeAlias = tuple[Stage, NodeId]  # an operator or a source, on a node
GONE = Version(-1)  # a sender that has no part any more, so it must stop altogether


class Named(msgspec.Struct, frozen=True, array_like=True):
    """The name that an operator brought from another node. It holds in that start of a node without a disk in which the
    operator came; a later start has lost its state."""

    stage: Stage
    node: str
    start: int
    while_start: int


class Begins(msgspec.Struct, frozen=True, array_like=True):
    """Where an origin of a device goes on at the root, and its watermark before that (`model.messages.Begin`)."""

    origin: Origin
    next: int
    mark: int


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """Batches of an origin that an operator, with its side, has counted `by` a node that counted as dead. With an empty
    name of the node, they are with operators on other nodes."""

    taker: str
    origin: Origin
    spans: Spans
    by: NodeId


class Part(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What was decided for one node. Rows go from here to `next`; None means the end of the query."""

    next: NodeId | None
    hosts: tuple[Stage, ...] = ()  # the operators placed here, in order
    sources: tuple[tuple[Stage, Origin], ...] = ()  # the sources here that have a place in the query
    others: tuple[NodeId, ...] = ()  # where alternative routes begin
    relay: bool = False  # only on an alternative route: it passes rows on
    gone: bool = False  # the node was removed, and operators elsewhere keep what they took of its rows alone
    sends: tuple[tuple[Stage, Version], ...] = ()  # operators whose state leaves, and the version in which it does
    ends: tuple[Stage, ...] = ()  # operators that run here until their state has left
    awaits: tuple[tuple[Stage, Origin], ...] = ()  # operators whose state comes, and the origin of its pieces
    names: tuple[Named, ...] = ()  # operators that came from other nodes and keep their names
    above: int = 0  # how often a node above without a disk that takes its rows in order has restarted
    forgotten: bool = False  # earlier batches made here are with a node that has died (`dead/replacement`)
    anew: int = 0  # the version in which the operators here began anew, in place of those on a node that has died
    leads: tuple[tuple[Origin, NodeId], ...] = ()  # states that pass here on a way of their own, and their next node
    lost: tuple[tuple[Stage, Origin], ...] = ()  # operators here that have lost a state on its way, and which it was
    been: tuple[At, ...] = ()  # nodes that operators here have left with their state, now or earlier
    # Of a device that has left an edge with its windows (`shares`): the operators that take its rows batch by batch at
    # the root, and all operators that its rows pass from the lowest of these on; its origins of which it is not known
    # how far the old edge came, with that edge; and where the others begin.
    lifts: tuple[Stage, ...] = ()
    along: tuple[Stage, ...] = ()
    held: tuple[tuple[Origin, NodeId], ...] = ()
    begins: tuple[Begins, ...] = ()
    releases: tuple[tuple[Stage, Origin], ...] = ()  # operators here that let origins go, of devices that have left
    keeps: tuple[Stage, ...] = ()  # operators that go on here although no rows may come, because they have let some go
    lifting: tuple[Stage, ...] = ()  # operators that take rows of devices batch by batch here
    # Of a device: what nodes had counted that have died, for all who read it now. Of such a node: what others take.
    taken: tuple[Taken, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether a state leaves this node or comes to it, or operators here have still to let origins go."""
        return bool(self.sends or self.awaits or self.releases)

    @property
    def stays(self) -> bool:
        """Whether a state leaves this node, comes to it, or passes it on a way of its own."""
        return self.moves or bool(self.leads)


class PartRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The record of a part. A node that lost its part has a record until it has let go.

    `senders` are the nodes that sent to this one and were told to send elsewhere, with the version from which they do.
    """

    query: QueryId
    node: NodeId
    part: Part | None
    version: Version
    senders: tuple[tuple[NodeId, Version], ...] = ()
    absent: bool = False  # no operator waits for this node
    holds: bool = False  # the node was told to keep what it has (`holistic`)

    @property
    def name(self) -> str:
        """The record's name in the catalog. Names of queries and nodes contain no slash."""
        return f"{self.query}/{self.node}"
