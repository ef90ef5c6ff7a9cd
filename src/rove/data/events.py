"""The events of a worker besides messages, and its commands besides sending.

Law: a worker touches no disk. It asks for disk work with a command and goes on; the answer is an event. The disk of a
node answers in the order of the commands.

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
from rove.data.log.segments.stored import ReadEntry, Stored
from rove.data.log.settings import LogSettings
from rove.data.sources.positions import SourceAt
from rove.model.clock import MICROS_MIN
from rove.model.events import Allow, Arrived, Drop, Garbled, Payload, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Fragment, Learned, Peer

NOTHING = Learned(0, ())


@dataclass(frozen=True, slots=True)
class Produced:
    """A source has made rows; None with `ended` if it will make no more. A silent source may still promise that no
    event time before `promise` follows."""

    origin: Origin
    data: pa.RecordBatch | None
    wall: int
    ended: bool = False
    promise: int = MICROS_MIN


@dataclass(frozen=True, slots=True)
class DiskDone:
    """A group for a folder has been executed. `trouble` says what went wrong; it is empty if nothing did."""

    folder: str
    token: int
    trouble: str = ""
    unpublished: str = ""  # why readers could not be told of a group that is safe on the disk


@dataclass(frozen=True, slots=True)
class Opened:
    """A partition is open. `upto` is how far it went when it was opened. It belongs to the machine from now on."""

    folder: str
    number: int
    partition: Partition
    upto: Mark


@dataclass(frozen=True, slots=True)
class OpenFailed:
    """A partition could not be opened. It may work later."""

    folder: str
    number: int
    trouble: str


@dataclass(frozen=True, slots=True)
class LogRead:
    """A part of a log, read back from a position: its entries, where the next part begins, and whether it is the last
    (`over`). `unread` names what is gone. With `trouble` there are no entries, and it is tried again."""

    folder: str
    position: Position
    entries: tuple[ReadEntry, ...] = ()
    next: Position = START
    over: bool = False
    unread: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rows that a link asked for. None, with the trouble, if they cannot be read now or are `gone` for good."""

    peer: NodeId
    order: int
    payload: Payload | None
    trouble: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """The folders with a partition below a folder, or why they could not be listed."""

    prefix: str
    folders: tuple[str, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Readers:
    """The outside readers of a folder, by name, with the first position that each still needs."""

    folder: str
    positions: dict[str, Position]


@dataclass(frozen=True, slots=True)
class Packed:
    """Packed rows; None if they could not be packed."""

    order: int
    payload: Payload | None


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a connection to a peer, under its name."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Wait:
    """Tell a source to wait, because there is no room for its rows."""

    origin: Origin


@dataclass(frozen=True, slots=True)
class Go:
    """Tell a source to go on."""

    origin: Origin


@dataclass(frozen=True, slots=True)
class Remember:
    """Store the fragments, the peers and whose batches they may send, so that a node with a disk can go on without the
    coordinator after its next start."""

    fragments: tuple[Fragment, ...]
    peers: tuple[Peer, ...]
    plans: Mapping[str, bytes] = field(default_factory=dict)  # the plans of the fragments, by digest
    below: Learned = NOTHING  # whose batches its neighbours may send


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Execute a group of log commands in a folder. The answer is `DiskDone`."""

    folder: str
    group: Group


@dataclass(frozen=True, slots=True)
class Open:
    """Open a partition, or create it: lock its folder and recover its files. The answer carries the `number`."""

    folder: str
    number: int
    schema: pa.Schema
    settings: LogSettings | None = None  # None means the settings of the node


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read a part of an open partition back, from a position up to a mark. With `rows`, the rows are read and must be
    intact; without, it is only checked which rows can still be read."""

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
    """List the folders with a partition below a folder."""

    prefix: str


@dataclass(frozen=True, slots=True)
class KeepPositions:
    """Store the positions of all sources whose batches can be made again, before the commands that follow are
    executed."""

    positions: tuple[SourceAt, ...]


@dataclass(frozen=True, slots=True)
class AskReaders:
    """Ask which outside readers a folder has, and what they still need."""

    folder: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Pack the rows of an entry when there is time. The answer is `Packed`. Rows of the same `kind` are alike."""

    order: int
    kind: str
    schema: pa.Schema
    payload: Payload


@dataclass(frozen=True, slots=True)
class Evicted:
    """For hooks: rows of a query were evicted."""

    query: QueryId
    origin: Origin
    seq: int
    through: int
    rows: int
    late: bool = False  # the rows were late, and had been counted as late


@dataclass(frozen=True, slots=True)
class Cut:
    """For hooks: the link to a parent is cut."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class Met:
    """For hooks: a parent that was away is back."""

    peer: NodeId
    away_us: int


@dataclass(frozen=True, slots=True)
class Note:
    """Log a message once. `error` is the exception of a user's code, if there was one."""

    text: str
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The process is about to end. Write everything that the disk takes. Repeated until the worker has nothing to
    do."""


DiskAnswer: TypeAlias = DiskDone | Opened | OpenFailed | LogRead | Loaded | Listed | Readers
DiskWork: TypeAlias = OnDisk | Open | ReadLog | Load | ListFolders | AskReaders
Event: TypeAlias = Arrived | Garbled | Produced | Tick | DiskAnswer | Packed | Stop
Command: TypeAlias = (
    Send | Dial | Drop | Wait | Go | Allow | Remember | KeepPositions | DiskWork | Pack | Evicted | Cut | Met | Note
)
