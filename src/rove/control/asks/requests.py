"""The requests of users to the coordinator, and its answers, as types.

Law: each verb has one type for its request and one for its answer. They travel as JSON inside `Ask` and `Answer`, so
that any client can make them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from rove.control.sink_options import check_options
from rove.model.disk_folders import checked_sink
from rove.model.errors import PlanError
from rove.model.ids import NAME_BYTES_MAX, checked_name
from rove.model.messages import Sink

T = TypeVar("T")
# What a token is for: a node, or a process of `rove cloud`.
Invited: TypeAlias = Literal["device", "edge", "gateway", "cloud"]
CloudKind: TypeAlias = Literal["table", "console", "memory", "postgres", "noop", "foreachBatch"]

TABLES = ("table", "memory", "postgres")  # sinks that are named after a table
ASIDE_TABLES = ("_late", "_faults")  # the ends of names of tables of late rows, and of rows at fault

NOT_A_PLACE = (
    "a url is not the name of a table; for PostgreSQL name the table, and give the url as an option: "
    "--sink postgres:TABLE --option url=postgresql://user@host:5432/database"
)
TABLE_BYTES_MAX = 8 * 1024 * 1024  # of rows of a table in one answer
PATIENCE_US = 300_000_000  # how long event time waits for a node that is away
FOR_EVER_US = -1  # operators of a silent node never start elsewhere


class CloudSink(msgspec.Struct, frozen=True, kw_only=True):
    """The sink in Spark of a query that ends in the cloud. With `update` a result is emitted early and corrected later;
    with `append` it is emitted once, when no row can change it any more."""

    kind: CloudKind
    name: str = ""  # the name of a table or of a function
    mode: Literal["append", "update"] = "append"
    # Between two micro-batches; 0 means as soon as the last one is done, None the sink's default.
    trigger_ms: int | None = None
    options: dict[str, str] = {}
    function: bytes = b""  # the function of foreachBatch (plan/user_functions)


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """A query: its whole optimized plan (plan/codec), its sink, and its placement strategy."""

    name: str
    plan: bytes
    sink: Sink
    strategy: str = "bottom_up"
    cloud: CloudSink | None = None  # None if the rows stay in the log, or end on a node
    patience_us: int = PATIENCE_US
    patience_of: dict[str, int] = {}  # by stream, where it differs
    replace_us: int | None = None  # how long an edge may be silent before its operators start elsewhere
    replication: int = 1  # routes from each source that share no node
    copies: bool = True  # batches kept without a route are sent over all routes; else over the best
    thins: int = 0  # keep every n-th row of batches that a device has no room for; 0 means evict them whole
    folds: bool = False  # fold rows that a device has no room for into partial aggregates
    stops_at_fault: bool = False  # stop at the first row that cannot be computed; else set such rows aside
    explain: bool = False  # only explain where everything would run


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    version: int
    text: str  # where everything runs, and why


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """Another plan (plan/codec) for a running query. Its sink and its options stay."""

    name: str
    plan: bytes


class CloudAsk(msgspec.Struct, frozen=True, kw_only=True):
    """Spark asks which queries to run. `trusts` says whether it runs users' functions that come by value."""

    trusts: bool = False


class CloudQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a query that Spark runs: a plan (plan/codec) over the query's log."""

    query: str
    plan: bytes
    sink: CloudSink
    patience_us: int = 0  # how long a device may be away
    late: str = ""  # the columns of the table of late rows, as text
    faults: str = ""  # those of rows that could not be computed, without the reason


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Spark's progress with a query. `lag_entries` are batches in the log that it has not read."""

    query: str
    state: str  # starting, running, failed or stopped
    batch: int = -1
    rows: int = 0  # since its start
    rows_per_s: float = 0.0
    batch_ms: int = 0
    state_rows: int = 0
    dropped_rows: int = 0  # rows dropped by Spark's own watermark, which should stay 0
    lag_entries: int = 0
    restarts: int = 0  # after failures
    failures: int = 0  # in a row
    watermark: str = ""
    trouble: str = ""  # the first line of the last failure, until a micro-batch is done again
    number: int = 0  # of the report; a later report has a higher number
    final: bool = False  # Spark refuses the query: it is not started again


class PlanAsk(msgspec.Struct, frozen=True, kw_only=True):
    """The question whether Spark would run a plan (plan/codec). The user makes up the id."""

    id: str
    plan: bytes
    mode: Literal["append", "update"]


class PlanSaid(msgspec.Struct, frozen=True, kw_only=True):
    """Whether Spark would run a plan. While it is not `ready`, Spark has not answered. It is not `known` if there is no
    Spark that could say."""

    id: str
    ready: bool = False
    known: bool = True
    refused: str = ""  # why Spark would not run it


class TableAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the first rows of a table that Spark keeps. The user makes up the id."""

    id: Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
    table: str
    limit: int


class TableRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a table, as an Arrow stream. While it is not `ready`, Spark has not answered."""

    id: str
    ready: bool = False
    rows: bytes = b""
    more: bool = False  # the table has more rows than were asked for
    trouble: str = ""  # why there are no rows


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Drain a node. With `back`, undo the drain."""

    name: str
    back: bool = False


class Drained(msgspec.Struct, frozen=True):
    """How far the draining of a node has come: the queries in which it still has a part, each with what holds it up,
    and the bytes that it holds. With neither, it can be switched off."""

    name: str
    draining: bool
    left: dict[str, str]
    held_bytes: int


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A request about one query, node or stream, or about all (an empty name)."""

    name: str = ""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """What holds a query up or costs it rows: the reason in words, whom it concerns, and since when by the
    coordinator's clock. While it `holds`, no row or no result of the query arrives. If it is `final`, it does not end
    by itself: somebody has to do what the reason says."""

    reason: str
    who: str = ""  # a node or Spark; empty for the query itself
    since_us: int = 0  # wall clock
    for_ms: int = 0  # the time since then
    holds: bool = False
    final: bool = False


class QueryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One query in a listing. `state` is waiting (for sources), deploying, running, held up or stopped. It is running
    if rows can flow, and held up if all nodes run their part and a trouble keeps rows or results from arriving."""

    query: str
    state: str
    version: int
    strategy: str
    sink: str
    nodes: int
    missing: tuple[str, ...]  # nodes that do not run their fragment yet
    troubles: tuple[Trouble, ...] = ()
    in_spark: bool = False  # it ends in Spark
    spark: Progress | None = None  # its last report, until the query is stopped


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one query: its causes, the nodes that got a fragment, a new version of theirs, or lost it (the
    first of each; `nodes` counts all), when it began by the coordinator's wall clock, how long it took until all nodes
    were told, and until all ran it. A newer change of the query overtakes one that is under way."""

    number: int
    query: str
    version: int
    causes: tuple[str, ...]
    began_us: int
    deploy: tuple[str, ...]
    update: tuple[str, ...]
    undeploy: tuple[str, ...]
    nodes: int
    outcome: Literal["under way", "done", "overtaken", "stopped"] = "under way"
    told_ms: int | None = None
    took_ms: int | None = None


class AskHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the last changes: of one query, or of all (an empty name)."""

    query: str = ""
    last: int = 20


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One node in a listing. `state` is expected, up, away, revoked or draining, or stands by: a gateway that no query
    uses while another one is used."""

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
    silent_ms: int  # since its last report
    memory_bytes: int
    disk_bytes: int  # its room on disk, beside its memory
    held_bytes: int  # bytes of waiting batches in its last report
    oldest_ms: int  # the age of the oldest waiting batch
    lasts_ms: int | None  # how long its room would last if it were cut off; None if nothing comes in
    bytes_per_s: float  # bytes that it takes in each second
    packs_to: float | None  # the size of packed batches, as a share of their unpacked size; None if unknown
    trouble: str = ""  # what is wrong with its reports

    @property
    def room_bytes(self) -> int:
        """Its room in memory and on disk."""
        return self.memory_bytes + self.disk_bytes


class AccountLine(msgspec.Struct, frozen=True, kw_only=True):
    """The account of one origin's rows for one query. The parts always add up to `produced`. Rows in flight are
    buffered, in open windows, or missing, or are just being passed on."""

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
    faulted: int = 0
    open: int = 0
    missing: int = 0
    missing_batches: str = ""
    liar: str = ""  # the device that counts more of its own rows than it says it made, if the parts do not add up


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """A topology from a file, as text."""

    text: str
    updates: str = ""
    through_ms: int | None = None  # apply the batches of changes up to this time


class LinkChange(msgspec.Struct, frozen=True, kw_only=True):
    """A link between two nodes that is added, or removed."""

    a: str
    b: str
    add: bool


class Relink(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of changes to links. It is made whole or not at all."""

    changes: tuple[LinkChange, ...]


class Relinked(msgspec.Struct, frozen=True, kw_only=True):
    """How many queries have a part on one of the nodes."""

    queries: int


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A topology and its changes over time, as the text of two files. The nodes get the links that they have there at
    the beginning."""

    text: str
    updates: str


class ReplayBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that happen together, in ms after the beginning."""

    at_ms: int
    changes: tuple[LinkChange, ...]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The topology at the beginning, and the batches to send (`Relink`), each at its time."""

    nodes: int
    running: int  # of these nodes
    links: int
    batches: tuple[ReplayBatch, ...]


class Invite(msgspec.Struct, frozen=True, kw_only=True):
    """Let the holder of the secret half of this key join once, as this node or process of `rove cloud`."""

    node: str
    kind: Invited
    key: str
    expires_us: int


class Enlist(msgspec.Struct, frozen=True, kw_only=True):
    """An invited node sends the public key that it will use."""

    node: str
    key: str


def check_submit(asked: Submit) -> None:
    """Refuse bad names and sinks. Names of streams and outputs are in the plan and are checked there (plan/codec)."""
    checked_name(asked.name, "a query")
    sink = asked.sink
    if sink.node is not None:
        checked_name(sink.node, "a node")
    if sink.kind == "file":
        checked_sink(sink.path)
    if sink != Sink(kind=sink.kind, node=sink.node, path=sink.path if sink.kind == "file" else ""):
        raise PlanError("a sink has a node, and in a file sink a path; how late rows are told is not asked for here")
    for stream in asked.patience_of:
        checked_name(stream, "a stream")
    if asked.cloud is not None:
        check_sink(asked.cloud)


def check_sink(sink: CloudSink) -> None:
    """Refuse a sink in Spark with a bad name, a mode that it does not have, or a secret among its options. The client
    checks it before it sends it, the coordinator before it stores it."""
    if "://" in sink.name:
        raise PlanError(NOT_A_PLACE)  # it is not shown: it may hold a password
    if sink.kind in TABLES:
        checked_name(sink.name, "a table")
    if sink.kind == "table" and sink.name.endswith(ASIDE_TABLES):
        raise PlanError(f"`{sink.name}` is the table of rows that were set aside of another; choose another name")
    if sink.kind == "table" and sink.mode == "update":
        raise PlanError("a table of files cannot replace rows; for update mode choose postgres, console or memory")
    check_options(sink.kind, sink.name, sink.options)


def to_body(value: Any) -> bytes:
    return msgspec.json.encode(value)


def from_body(body: bytes, kind: type[T]) -> T:
    return msgspec.json.decode(body, type=kind)
