"""What can happen to a worker beside messages, and what it may ask beside sending them.

Law: a worker touches no disk. It asks for disk work with a command, and goes on; the answer is an event. The disk of a
node answers in the order in which it was asked.

    Open … Opened, OpenFailed      OnDisk … DiskDone      ReadLog … LogRead      Load … Loaded
    ListFolders … Listed           AskReaders … Readers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from rove.data.log.segments.commands import START, Group, Position
from rove.data.log.segments.format import Mark
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.settings import LogSettings
from rove.data.log.segments.stored import ReadEntry, Stored
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
class Opened:
    """A partition is open, and went up to a mark when it was. It belongs to the machine from now on."""

    folder: str
    number: int
    partition: Partition
    upto: Mark


@dataclass(frozen=True, slots=True)
class OpenFailed:
    """A partition could not be opened, for now."""

    folder: str
    number: int
    trouble: str


@dataclass(frozen=True, slots=True)
class LogRead:
    """A part of a log that was read back from a position: its entries, where the next part begins, and whether it is
    `over`. `unread` says of which entries the rows are gone. With `trouble` there are none; `damaged` trouble stays."""

    folder: str
    position: Position
    entries: tuple[ReadEntry, ...] = ()
    next: Position = START
    over: bool = False
    unread: tuple[str, ...] = ()
    trouble: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rows that a link asked for; None with the trouble if they cannot be read now, or are `gone` for good."""

    peer: NodeId
    order: int
    payload: Payload | None
    trouble: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """The folders with a partition below one, or why they could not be listed."""

    prefix: str
    folders: tuple[str, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Readers:
    """Who reads a folder from outside, by name, and the first position that each still needs."""

    folder: str
    positions: dict[str, Position]


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
class Open:
    """Open a partition, or make it: its folder, its lock, and what is found there. The answer carries the `number`."""

    folder: str
    number: int
    schema: pa.Schema
    settings: LogSettings | None = None  # None: those of the node


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read a part of an open partition back, from a position, no further than a mark; with the `rows`, which have to be
    whole then, or only to see which of them can still be read."""

    folder: str
    position: Position
    upto: Mark
    rows: bool


@dataclass(frozen=True, slots=True)
class Load:
    """Read rows that a link is about to send."""

    peer: NodeId
    order: int
    rows: Stored


@dataclass(frozen=True, slots=True)
class ListFolders:
    """List the folders with a partition below one."""

    prefix: str


@dataclass(frozen=True, slots=True)
class AskReaders:
    """Look who reads a folder from outside, and what they still need."""

    folder: str


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
    origin: Origin
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


DiskAnswer: TypeAlias = DiskDone | Opened | OpenFailed | LogRead | Loaded | Listed | Readers
DiskWork: TypeAlias = OnDisk | Open | ReadLog | Load | ListFolders | AskReaders
Event: TypeAlias = Arrived | Garbled | Produced | Tick | DiskAnswer | Packed | Stop
Command: TypeAlias = Send | Dial | Drop | Wait | Go | Allow | Remember | DiskWork | Pack | Evicted | Cut | Met | Note
