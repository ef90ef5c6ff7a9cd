"""What can happen to a worker beside messages, and what it may ask beside sending them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from rove.data.log.segments.commands import Group
from rove.model.clock import MICROS_MIN
from rove.model.events import Allow, Arrived, Drop, Garbled, Payload, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Fragment, Peer


@dataclass(frozen=True, slots=True)
class Produced:
    """A source has made rows; None with `ended` when it will make no more. One that is silent may still promise that
    no event time before `promise` follows."""

    origin: Origin
    data: pa.RecordBatch | None
    wall: int
    ended: bool = False
    promise: int = MICROS_MIN


@dataclass(frozen=True, slots=True)
class DiskDone:
    """A group for a folder has been carried out; `trouble` says what went wrong, and is empty if nothing did."""

    folder: str
    token: int
    trouble: str = ""
    unpublished: str = ""  # why readers could not be told of a group that is safe


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows that were made small; None if they could not be."""

    order: int
    payload: Payload | None


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a connection to a peer, under its name."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Wait:
    """A source should make no rows for now: there is no room for them."""

    origin: Origin


@dataclass(frozen=True, slots=True)
class Go:
    """A source may go on."""

    origin: Origin


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep these for the next start: a node with a disk goes on without the coordinator."""

    fragments: tuple[Fragment, ...]
    peers: tuple[Peer, ...]
    plans: Mapping[str, bytes] = field(default_factory=dict)  # of the fragments, by digest


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Carry out a group of the log in a folder, then tell with `DiskDone`."""

    folder: str
    group: Group


@dataclass(frozen=True, slots=True)
class Pack:
    """Make the rows of an entry small, when there is time, then tell with `Packed`. Those of one `kind` are alike."""

    order: int
    kind: str
    schema: pa.Schema
    payload: Payload


@dataclass(frozen=True, slots=True)
class Evicted:
    """Tell whoever wants to know: these rows of a query had to go."""

    query: QueryId
    origin: str
    seq: int
    through: int
    rows: int
    late: bool = False  # they had come too late, and were counted as that


@dataclass(frozen=True, slots=True)
class Cut:
    """Tell whoever wants to know: a parent is not heard any more."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class Met:
    """Tell whoever wants to know: a parent that was away is there again."""

    peer: NodeId
    away_us: int


@dataclass(frozen=True, slots=True)
class Note:
    """Tell whoever runs this node, once; `error` is a user's own, if one was raised."""

    text: str
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The process is about to end: whatever the disk takes should be on it. Said until nothing comes of it."""


Event: TypeAlias = Arrived | Garbled | Produced | Tick | DiskDone | Packed | Stop
Command: TypeAlias = Send | Dial | Drop | Wait | Go | Allow | Remember | OnDisk | Pack | Evicted | Cut | Met | Note
