"""The messages between nodes, the coordinator and users' commands.

Law: a message is a frozen value that msgspec checks when it arrives. A bad message is refused with a reason and
counted, never guessed at. Both ends of a handshake name their protocol version and refuse another one.

On the wire a message is one MessagePack array that begins with its tag. The rows of a `Data` follow as a second part.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated, Literal, TypeAlias
from zlib import crc32

import msgspec

from rove.model.batch import Header
from rove.model.errors import BadName, ProtocolError
from rove.model.foreign.checks import SEQ_MAX, within
from rove.model.ids import NAME_BYTES_MAX, SOURCE, NodeId, Origin, QueryId, Stage, Version, check_origin, checked_name
from rove.model.spans import BOUNDS_MAX, Spans, check_spans

PROTOCOL = 6
MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # the size of a message without its rows
ADDRESS_MAX = 512  # letters of an address
TALLIES_MAX = 20_000  # tallies in one report
SOURCES_MAX = 1_000  # sources of one node
PARENTS_MAX = 1_000  # parents of one node
ANYWHERE = -1  # an origin begins with the first batch that comes
LEARNED_MAX = 20_000  # makers that a node is told in one message
TAKERS_MAX = 256  # operators and outputs of one query that take an origin's batches
ROWS_BYTES_MAX = 64 * 1024 * 1024  # the size of the rows that follow a Data

Kind = Literal["device", "edge", "gateway"]


class _Message(msgspec.Struct, frozen=True, array_like=True, tag_field="t"):
    pass


# Messages of a link (data/link/link.py)


class Hello(_Message, frozen=True, tag=1):
    """The first message of the side that dials. `heard` is the peer's start that it knows; `received` how many of
    its frames it has; `silent_us` after how much silence it counts the peer as away, 0 for the default. If it has left
    a session for a new one, `left` is the start that it had there, and `left_acked` how many of its frames it
    knew to be acked."""

    protocol: int
    node: NodeId
    start: int
    heard: int = 0
    received: int = 0
    silent_us: int = 0
    left: int = 0
    left_acked: int = 0


class Welcome(_Message, frozen=True, tag=2):
    """The answer to Hello: who answers, how many frames it has received, and how many bytes may be sent in all."""

    protocol: int
    node: NodeId
    start: int
    heard: int
    received: int
    allowance: int


class Refused(_Message, frozen=True, tag=3):
    """A message was refused; the text says what to do about it."""

    why: str  # protocol, malformed, identity, oversize, unexpected, or an error of the data
    text: str


class Data(_Message, frozen=True, tag=4):
    """A batch. Its encoded rows follow as a second part."""

    number: int
    header: Header


class Ack(_Message, frozen=True, tag=5):
    """Frames up to `through` are safe. The sender may send up to `allowance` bytes, counted from the session's start.
    With `tell` it answers with a Beat at once, so that the receiver knows that the ack was heard."""

    through: int
    allowance: int
    tell: bool = False


class Beat(_Message, frozen=True, tag=6):
    """A heartbeat. It shows the peer whether a message was lost: if the peer has fewer frames than were sent, or has
    acked or allowed more than the sender knows."""

    sent: int
    acked: int
    allowance: int


class Resend(_Message, frozen=True, tag=7):
    """Frames after this number have not arrived. Send them again."""

    after: int


# Between a node and the coordinator


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """Where an output of a query ends: in the log, or in a folder of files, of a node with a disk.

    With `time` Spark reads the output by event time, in that column: rows that are older than the low watermark by more
    than `grain_us`, the time span of one row, are late. `span_us` is the longest time that a window stays open.
    """

    kind: Literal["log", "file", "discard"]
    node: NodeId | None = None  # None means the gateway
    path: str = ""
    time: str = ""
    grain_us: int = 0
    span_us: int = 0


class Begin(msgspec.Struct, frozen=True, array_like=True):
    """Where an origin begins: at a number, or at `ANYWHERE` with the first batch that comes; and its watermark before
    that."""

    next: int
    mark: int


class Released(msgspec.Struct, frozen=True, array_like=True):
    """Operators of a query on a node have let an origin go. What follows begins elsewhere."""

    query: QueryId
    origin: Origin
    begin: Begin


Counted: TypeAlias = tuple[tuple[str, Origin, Spans], ...]  # an operator and its side, an origin, batches


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one query on one node. `plan` names the whole query's definition, which is sent once (`Orders`).

    `runs` are the operators that have been applied to a batch when it leaves the node: stateless ones that are still
    missing are applied here, stateful ones are owned here. `makes` names the origin of each stateful operator here.
    `waits` names the origins that come in from below, by the stage of the source or stateful operator that made them.
    Origins that it `knows` may come in too, but are not waited for: they have been away for too long.
    """

    query: QueryId
    version: Version
    plan: str  # its digest
    runs: tuple[Stage, ...]
    makes: dict[Stage, Origin]
    waits: dict[Stage, tuple[Origin, ...]]
    next: NodeId | None
    sinks: dict[Stage, Sink]
    feeds: tuple[Origin, ...] = ()  # the sources of this node that have a place in the query
    overtakes: bool = False  # whether batches of an origin may overtake each other: nothing depends on their order
    others: tuple[NodeId, ...] = ()  # where other routes begin, for when the next node cannot be reached
    copies: bool = False  # whether batches kept without a route are sent over all routes
    knows: dict[Stage, tuple[Origin, ...]] = {}
    thins: int = 0  # keep every n-th row of batches for which there is no room; 0 means evict them whole
    folds: bool = False  # fold rows for which there is no room into partial aggregates of their window
    # The operators with a user's function that were placed here. The node refuses the fragment if it lacks one of these
    # functions. Other functions of `runs` are read when a batch comes that missed them below.
    loads: tuple[Stage, ...] = ()
    # Operators whose state leaves this node, each under an origin of its own. They, and the other operators in `ends`,
    # run here until that moment; `makes` names them too.
    sends: dict[Stage, Origin] = {}
    ends: tuple[Stage, ...] = ()
    # Operators that run here from now on, and the origin under which their state comes.
    awaits: dict[Stage, Origin] = {}
    whole: bool = False  # whether these take rows only when their whole state has arrived (for comparison)
    lost: dict[Stage, Origin] = {}  # operators here that have lost a state on its way; it may arrive again
    # States that take another route than rows here: the origin of the pieces, and the next node.
    leads: dict[Origin, NodeId] = {}
    # It changes when a node above without a disk, which takes rows of this node in order, has started again.
    above: int = 0
    # A node with sources keeps its batches until the next version arrives (`control/deployment/holistic`).
    holds: bool = False
    # Makers whose earlier batches were taken by a node that has died: operators begin with the first batch that
    # arrives.
    anywhere: tuple[Origin, ...] = ()
    # The version in which the operators here began anew. A node with a disk keeps their input apart from earlier input.
    anew: int = 0
    releases: dict[Stage, tuple[Origin, ...]] = {}  # operators here, and the origins that they let go
    # Operators that take batches of these origins one by one (`data/fragment/reconfigure/shares`), and where the
    # origins begin. Batches of an origin without a beginning wait until it is known.
    lifts: dict[Stage, tuple[Origin, ...]] = {}
    begins: dict[Origin, Begin] = {}
    # Batches that operators on other nodes have counted, or take now: operators here let them in without their rows.
    elsewhere: Counted = ()


class SourceHere(msgspec.Struct, frozen=True, kw_only=True):
    """A source of a stream on a device. One that `goes_on` has the name of an earlier start of its node, and counts
    what that start has made."""

    stream: str
    origin: Origin
    columns: str  # as text: name type, name type
    goes_on: bool = False


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer that a node may talk to: its address, and the public key that proves its identity. A `device` speaks for
    itself only; other nodes pass on batches of the nodes below them (`Learned`)."""

    node: NodeId
    address: str = ""
    key: str = ""
    device: bool = False


class Learned(msgspec.Struct, frozen=True, array_like=True):
    """Makers of batches (`Origin.maker`) that a node may take from its neighbours, beside the neighbours themselves. It
    follows the first `after` pairs of neighbour and maker, which the node knows."""

    after: int
    pairs: tuple[tuple[NodeId, str], ...]


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """One node's counts of the rows of one origin for one query.

    `held` are the batches that any part of the node has. `counted` are the batches that it counted, by the operator or
    output that took them; batches that no operator or output takes any more are under an empty name.
    """

    query: QueryId
    origin: Origin
    produced: int = 0
    delivered: int = 0
    evicted: int = 0
    late: int = 0
    lost: int = 0
    buffered: int = 0
    resent: int = 0
    duplicates: int = 0
    watermark: int | None = None
    lost_here: int = 0  # of those lost, what the next start of a node with a disk does not count again
    evicted_here: int = 0
    made: int = 0  # batches of the origin whose rows are among those produced here
    seen: int = 0  # batches of the origin up to the last one that is counted as delivered, evicted, late or lost here
    open: int = 0  # rows in open windows
    faulted: int = 0
    faulted_here: int = 0
    held: Spans = ()
    counted: tuple[tuple[str, Spans], ...] = ()
    produced_here: int = 0
    delivered_here: int = 0
    late_here: int = 0


class Held(msgspec.Struct, frozen=True, array_like=True):
    """What one node keeps of one query until the next node has it: bytes, and the age of the oldest batch."""

    query: QueryId
    bytes: int
    age_us: int


class TroubleHere(msgspec.Struct, frozen=True, array_like=True):
    """What is wrong with one query on one node, in words that say what to do. While it `holds`, no row of the query
    gets past the node. If it is `final`, it does not end by itself. `lacks` names a user's function that the node
    cannot load. A `fault` is of rows that could not be computed."""

    text: str
    holds: bool = False
    final: bool = False
    lacks: str = ""
    fault: bool = False


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a node's report that seldom changes."""

    kind: Kind
    address: str
    parents: tuple[NodeId, ...]
    slots: int
    memory_bytes: int
    sources: tuple[SourceHere, ...]
    durable: bool = False
    trusts: bool = False  # whether it runs users' functions that come by value
    disk_bytes: int = 0  # the room on its disk, beside its memory


class Report(_Message, frozen=True, tag=20, kw_only=True):
    """A node's regular report to the coordinator: its name, what it runs, what it counted.

    Reports of one start are numbered 1, 2, 3 … A `whole` report is complete. Any other says what changed since the
    report before it: None means "as before", and it has only the queries and tallies that changed. If a report is
    missing, the coordinator asks for a whole one.
    """

    protocol: int
    node: NodeId
    start: int
    number: int
    whole: bool
    facts: Facts | None = None
    running: dict[QueryId, Version] = {}
    ended: tuple[QueryId, ...] = ()  # queries that it no longer runs
    unknown: tuple[QueryId, ...] | None = None  # queries that it holds batches of, or opens the folders of
    tallies: tuple[Tally, ...] = ()
    refused: dict[str, int] | None = None
    knows: str | None = None  # a digest of the peers that it knows
    troubles: dict[QueryId, tuple[TroubleHere, ...]] | None = None  # what is wrong with queries on it
    reaches: tuple[NodeId, ...] | None = None  # its parents that it has a working link with
    held: tuple[Held, ...] | None = None
    taken_bytes: int = 0  # bytes of all batches that its store has taken since its start
    shrunk: tuple[int, int] = (0, 0)  # bytes of the rows that it packed, before and after
    learned: tuple[int, int] | None = None  # how many pairs of `Learned` it knows, and their checksum
    moved: tuple[tuple[QueryId, Origin], ...] | None = None  # states that it has sent whole, or has received whole
    obeyed: int = 0  # the number of the last orders that it has taken
    released: tuple[Released, ...] | None = None  # origins that its operators have let go


class Orders(_Message, frozen=True, tag=21):
    """The difference between what a node reports and what it should run and know. `plans` are the plans of the
    fragments, by digest, unless the node has them already. With `whole` the coordinator asks for a whole report.

    A query in `stop` has ended. A query in `leave` takes other routes: the senders still hold the batches that this
    node holds, so nothing is lost if it drops them.

    Orders to one node are numbered, and its reports say which were the last. So a report that was made before some
    orders came is not taken for an answer to them. Orders without a number only ask for a whole report.
    """

    protocol: int
    deploy: tuple[Fragment, ...]
    stop: tuple[QueryId, ...]
    peers: tuple[Peer, ...] | None = None  # None if the peers that it knows are right
    trouble: str = ""
    leave: tuple[QueryId, ...] = ()
    plans: dict[str, bytes] = {}
    whole: bool = False
    learn: Learned | None = None
    # By query, what operators of earlier starts of a node without a disk had computed to the end. A node with a disk
    # below may send these batches again after its own restart.
    counted: dict[QueryId, Counted] = {}
    number: int = 0


class Goodbye(_Message, frozen=True, tag=22):
    """A node leaves for good. Its sources end."""

    node: NodeId


# Between a user's command and the coordinator


class Ask(_Message, frozen=True, tag=30):
    """A request. Its `id` makes repeating it harmless. Each verb has a type for its body."""

    id: Annotated[str, msgspec.Meta(max_length=2 * NAME_BYTES_MAX)]
    verb: Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
    body: bytes


class Answer(_Message, frozen=True, tag=31):
    """The answer to an `Ask`. `trouble` says what went wrong; it is empty if nothing did."""

    id: str
    body: bytes
    trouble: str = ""


def plan_digest(plan: bytes) -> str:
    """The digest by which a plan is named."""
    return blake2b(plan, digest_size=16).hexdigest()


def digest_of(peers: tuple[Peer, ...]) -> str:
    """A digest of a list of peers, for comparing two lists."""
    listed = sorted(msgspec.json.encode(peer) for peer in peers)
    return blake2b(b"".join(listed), digest_size=8).hexdigest() if listed else ""


def chained(check: int, neighbour: NodeId, maker: str) -> int:
    """The checksum of pairs of `Learned`, with one more."""
    return crc32(f"{neighbour} {maker}".encode(), check)


Message = Hello | Welcome | Refused | Data | Ack | Beat | Resend | Report | Orders | Goodbye | Ask | Answer

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Message)


def _numbers(report: Report) -> Iterator[int]:
    """The numbers that a node gives by itself. Counts, and what others can fill, are cut or left out later, where it is
    decided what to believe (`control/members/honest`)."""
    yield from (report.protocol, report.start, report.number, report.taken_bytes, *report.shrunk)
    yield from (*(report.learned or ()), *report.running.values())
    yield from (number for tally in report.tallies for number in (tally.made, tally.seen, *tally.held[-1:]))
    yield from (number for tally in report.tallies for _, spans in tally.counted for number in spans[-1:])
    if report.facts is not None:
        yield from (report.facts.slots, report.facts.memory_bytes, report.facts.disk_bytes)


def check_fragment(fragment: Fragment) -> None:
    """Refuse a fragment with bad names: a node uses them as folders, and as keys. The paths of its sinks are checked
    where their folders are opened. O(origins)."""
    checked_name(fragment.query, "a query")
    for node in (*(() if fragment.next is None else (fragment.next,)), *fragment.others, *fragment.leads.values()):
        checked_name(node, "a node")
    tables = (fragment.makes, fragment.sends, fragment.awaits, fragment.lost)
    for origin in (*fragment.feeds, *fragment.leads, *fragment.anywhere, *(o for t in tables for o in t.values())):
        check_origin(origin)
    for origins in (*fragment.waits.values(), *fragment.knows.values()):
        for origin in origins:
            check_origin(origin)
    for _, origin, spans in fragment.elsewhere:
        check_origin(origin)
        if not check_spans(spans):
            raise BadName(f"batches of `{str(origin)[:80]}` cannot be elsewhere as {spans[:4]}")


def check_report(report: Report) -> None:
    """Refuse a report with bad names, or with more than a node can have. Names become keys and texts that others read
    back, even names of queries that nobody knows. O(report)."""
    checked_name(report.node, "a node")
    named = (report.running, report.ended, report.unknown or (), report.troubles or ())
    for query in (query for queries in named for query in queries):
        checked_name(query, "a query")
    for query, origin in report.moved or ():
        checked_name(query, "a query")
        check_origin(origin)
    for each in report.released or ():
        checked_name(each.query, "a query")
        check_origin(each.origin)
        if not ANYWHERE <= each.begin.next <= SEQ_MAX or not -SEQ_MAX <= each.begin.mark <= SEQ_MAX:
            raise BadName(f"`{report.node}` says that `{str(each.origin)[:80]}` begins where it cannot")
    for held in report.held or ():
        checked_name(held.query, "a query")
    for node in report.reaches or ():
        checked_name(node, "a node")
    if len(report.tallies) > TALLIES_MAX:
        raise BadName(f"`{report.node}` reports {len(report.tallies):,} tallies at once; the most is {TALLIES_MAX:,}")
    if not within(_numbers(report), SEQ_MAX):
        raise BadName(f"`{report.node}` reports a number that cannot be; it is below 0 or above {SEQ_MAX:,}")
    for tally in report.tallies:
        checked_name(tally.query, "a query")
        check_origin(tally.origin)
        sets = (tally.held, *(spans for _, spans in tally.counted))
        if len(sets) > TAKERS_MAX or any(len(spans) > BOUNDS_MAX or not check_spans(spans) for spans in sets):
            raise BadName(f"`{report.node}` reports batches of `{str(tally.origin)[:80]}` that cannot be")
    if report.facts is not None:
        if len(report.facts.sources) > SOURCES_MAX or len(report.facts.parents) > PARENTS_MAX:
            raise BadName(
                f"`{report.node}` reports {len(report.facts.sources):,} sources and {len(report.facts.parents):,} "
                f"parents; a node has at most {SOURCES_MAX:,} and {PARENTS_MAX:,}"
            )
        for node in report.facts.parents:
            checked_name(node, "a node")
        if len(report.facts.address) > ADDRESS_MAX or not report.facts.address.isprintable():
            raise BadName(f"`{report.node}` reports an address that cannot be; write it like tcp://host:4701")
        for source in report.facts.sources:
            check_origin(source.origin)
            if (source.origin.name, source.origin.stage, source.origin.node) != (source.stream, SOURCE, report.node):
                raise BadName(f"`{source.origin}` cannot name a source of stream `{source.stream}` on `{report.node}`")


def encode(message: Message) -> bytes:
    """A message as bytes."""
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """The message from its bytes. Bad bytes raise a ProtocolError that says what is wrong."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise ProtocolError("oversize", f"a message of {len(data)} bytes; at most {MESSAGE_BYTES_MAX} are read")
    try:
        message: Message = _DECODER.decode(data)
        return message
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProtocolError("malformed", f"not a message of protocol {PROTOCOL}: {error}") from error
