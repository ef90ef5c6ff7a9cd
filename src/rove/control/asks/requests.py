"""What users ask of the coordinator, and what it answers.

Law: one verb, one type each way. Bodies travel as JSON inside `Ask` and `Answer`, so that any client can make them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from rove.model.ids import checked_name
from rove.model.messages import Kind, Sink

T = TypeVar("T")
CloudKind: TypeAlias = Literal["table", "console", "memory", "postgres", "noop", "foreachBatch"]

TABLES = ("table", "memory", "postgres")  # sinks whose name is that of a table

PATIENCE_US = 300_000_000  # how long event time waits for a node that is away


class CloudSink(msgspec.Struct, frozen=True, kw_only=True):
    """What Spark does with the rows of a query that ends in the cloud. With `update` a result comes early and is
    corrected; with `append` it comes once, when nobody can change it any more."""

    kind: CloudKind
    name: str = ""  # of a table, or of a function
    mode: Literal["append", "update"] = "append"
    trigger_ms: int = 0  # between two micro-batches; 0: as soon as the last one is done
    options: dict[str, str] = {}
    function: bytes = b""  # of foreachBatch (plan/user_functions)


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """A query: its whole optimized plan (plan/codec), where its rows should end, and who decides where it runs."""

    name: str
    plan: bytes
    sink: Sink
    strategy: str = "bottom_up"
    cloud: CloudSink | None = None  # None: the rows stay in the gateway's log until somebody reads them
    patience_us: int = PATIENCE_US
    patience_of: dict[str, int] = {}  # with some streams it is another
    replication: int = 1  # routes from each source that share no node
    copies: bool = True  # what was kept while none was there goes over all of them; else over the best
    thins: int = 0  # of rows that a device has no room for, keep every so manieth; 0: none
    folds: bool = False  # rows that a device has no room for become partial aggregates
    explain: bool = False  # only say where everything would run


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    version: int
    text: str  # where everything runs, and why


class CloudAsk(msgspec.Struct, frozen=True, kw_only=True):
    """Spark asks what it should run. `trusts` says whether it runs users' functions that come by value."""

    trusts: bool = False


class CloudQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a query that Spark runs: a plan (plan/codec) over what the log holds of it."""

    query: str
    plan: bytes
    sink: CloudSink
    patience_us: int = 0  # how long a device may be away


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How Spark gets on with a query. `lag_entries` are batches in the log that it has not seen."""

    query: str
    state: str  # starting, running, failed or stopped
    batch: int = -1
    rows: int = 0  # since it was started
    rows_per_s: float = 0.0
    batch_ms: int = 0
    state_rows: int = 0
    dropped_rows: int = 0  # by Spark's own watermark; it has no reason to drop any
    lag_entries: int = 0
    restarts: int = 0  # after failures
    watermark: str = ""
    trouble: str = ""


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A verb about one query, node or stream, or about all (an empty name)."""

    name: str = ""


class QueryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One query in a listing. `state` is waiting (for sources), deploying, running or stopped."""

    query: str
    state: str
    version: int
    strategy: str
    sink: str
    nodes: int
    missing: tuple[str, ...]  # nodes that do not run their part yet
    trouble: str
    spark: Progress | None = None


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One node in a listing. `state` is expected, up, away or revoked."""

    node: str
    kind: str
    state: str
    address: str
    links: tuple[str, ...]
    streams: tuple[str, ...]
    queries: int
    slots: int
    slots_used: int
    refused: dict[str, int]
    silent_ms: int  # since it was last heard
    memory_bytes: int
    disk_bytes: int  # it may keep, behind those in memory
    held_bytes: int  # of batches that wait, when it was last heard
    oldest_ms: int  # how long the oldest of them waits
    lasts_ms: int | None  # until there is no room, if it were cut off; None if nothing comes in
    bytes_per_s: float  # that it takes in
    packs_to: float | None  # the share of their size that batches have when they have waited; None if none has

    @property
    def room_bytes(self) -> int:
        """What it may keep, in memory and on its disk."""
        return self.memory_bytes + self.disk_bytes


class AccountLine(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one origin's rows for one query. The parts add up to `produced`, always."""

    query: str
    origin: str
    produced: int
    delivered: int
    in_flight: int
    buffered: int
    resent: int
    duplicates: int
    evicted: int
    late: int
    lost: int
    watermark_lag_ms: int | None


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """A topology from a file, as text."""

    text: str
    updates: str = ""
    through_ms: int | None = None  # apply the batches of changes up to this moment


class Invite(msgspec.Struct, frozen=True, kw_only=True):
    """Let whoever holds the other half of this key join once, as this node."""

    node: str
    kind: Kind
    key: str
    expires_us: int


class Enlist(msgspec.Struct, frozen=True, kw_only=True):
    """A node that was invited tells the public key it will use."""

    node: str
    key: str


def check_submit(asked: Submit) -> None:
    """Refuse names that nothing can have. Those of streams are in the plan."""
    checked_name(asked.name, "a query")
    if asked.sink.node is not None:
        checked_name(asked.sink.node, "a node")
    if asked.cloud is not None and asked.cloud.kind in TABLES:
        checked_name(asked.cloud.name, "a table")


def to_body(value: Any) -> bytes:
    return msgspec.json.encode(value)


def from_body(body: bytes, kind: type[T]) -> T:
    return msgspec.json.decode(body, type=kind)
