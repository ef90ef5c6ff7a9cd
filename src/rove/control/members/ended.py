"""Keeps the counts of nodes that are gone: nodes that left, and earlier starts of nodes that have restarted.

Law: counts are kept, also through a restart of the coordinator. An origin that is `gone` makes no more rows. If a start
that was thought to be over reports again, its record is removed. The last `STARTS_MAX` starts of a node have a record
each. Earlier ones are added up in one record, so that a node that starts again and again costs no more and no more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Counted, Tally
from rove.model.spans import Spans, both, bounded, union

STARTS_MAX = 8  # starts of one node with a record each
OWN_LINES_MAX = 5_000  # counts of rows that earlier starts of one node made; of the oldest ones no more is known
GONE_MAX = 5_000  # origins of one node that are known to be gone

_ADDED = ("produced", "delivered", "evicted", "late", "lost", "resent", "duplicates", "lost_here", "evicted_here")
_ADDED_HERE = ("faulted", "faulted_here", "produced_here", "delivered_here", "late_here")


class EndedRecord(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "incarnation"}):
    """A start of a node that is over: its counts, and the origins that ended with it. In the catalog `start` has the
    name `incarnation`."""

    node: NodeId
    start: int
    tallies: tuple[Tally, ...]
    gone: tuple[Origin, ...]
    lives: bool = False  # the node goes on; only these origins have ended
    dead: bool = False  # the node is silent, and counts as dead; it may report again
    earlier: bool = False  # all starts that have no record of their own any more
    left: bool = False  # the start goes on; operators that have left it have counted this, and no later start will

    @property
    def name(self) -> str:
        if self.earlier or self.left:
            return f"{self.node} {'earlier' if self.earlier else 'left'}"
        return f"{self.node} {self.start}" + (" lives" if self.lives else "")


class Ended:
    """The starts of nodes that are over. `gone` are the origins that ended with them."""

    def __init__(self) -> None:
        self._records: dict[str, EndedRecord] = {}
        self._news: dict[str, EndedRecord | None] = {}
        self._lines: dict[tuple[QueryId, Origin], dict[str, Tally]] = {}  # by query and origin, then by record
        self.gone: dict[Origin, None] = {}
        self.again: dict[QueryId, None] = {}  # queries with operators that may have computed their input again
        self._of_node: dict[NodeId, dict[str, EndedRecord]] = {}  # by node, then by the name of the record
        self._dead: dict[NodeId, EndedRecord] = {}  # the starts of silent nodes that count as dead
        self._left: dict[NodeId, EndedRecord] = {}  # of starts that go on, what operators have counted that have left

    def restore(self, records: Iterable[EndedRecord]) -> None:
        found = {r.name: r for r in records}
        self._left = {r.node: r for r in found.values() if r.left}
        self._records = {name: r for name, r in found.items() if not r.left}
        self._dead = {r.node: r for r in self._records.values() if r.dead}
        for record in self._records.values():
            self._list(record)
        self._settle()

    def over(
        self,
        node: NodeId,
        start: int,
        tallies: Iterable[Tally],
        gone: Iterable[Origin],
        again: Container[QueryId] = (),
        sources: Container[Origin] = (),
        counts: Container[tuple[QueryId, Origin]] = (),
    ) -> None:
        """A start of a node is over. For queries that the node computes `again` from its disk, the next start counts
        rows that end there and output of its operators again. It does not count again the rows that its `sources` had
        made, nor rows that were lost, nor what operators had counted that have moved to another node. For sources that
        go on it `counts` everything that they have made."""
        ended = dict.fromkeys(gone)
        kept = [
            _stays(t, t.origin in sources) if t.query in again else replace(t, buffered=0, open=0, held=())
            for t in tallies
        ]
        kept = [replace(t, produced=0, made=0) if (t.query, t.origin) in counts else t for t in kept]
        record = EndedRecord(node=node, start=start, tallies=tuple(kept), gone=tuple(ended))
        self._keep(record)
        if (left := self._left.pop(node, None)) is not None:
            self._news[left.name] = None

    def goes_on(self, node: NodeId, start: int, tallies: Iterable[Tally], whole: bool) -> None:
        """A start of a node reports. What operators have counted that have left it is stored: if the node starts again
        while no coordinator runs, nobody else knows it. O(tallies)"""
        record = self._left.get(node)
        before = {} if record is None or record.start != start else {(t.query, t.origin): t for t in record.tallies}
        now = {} if whole else dict(before)
        for tally in tallies:
            key = (tally.query, tally.origin)
            if tally.produced_here or tally.delivered_here or tally.late_here:
                now[key] = _stays(tally)
            else:
                now.pop(key, None)
        if now.keys() != before.keys() or any(_rows(now[key]) != _rows(before[key]) for key in now):
            record = EndedRecord(node=node, start=start, tallies=tuple(now.values()), gone=(), left=True)
            self._news[record.name] = record if now else None
            self._left[node] = record

    def unheard(self, node: NodeId, start: int) -> tuple[Tally, ...]:
        """A node has started again, or is gone, and its start before was not heard by this coordinator. Returns what
        operators had counted that had left that start. `start` is the one that runs now."""
        record = self._left.get(node)
        return () if record is None or record.start == start else record.tallies

    def died(self, node: NodeId, start: int, tallies: Iterable[Tally]) -> None:
        """Count a silent node as dead. What it counted stays counted. Its batches count as held by no node."""
        if node in self._dead:
            return
        kept = tuple(replace(t, buffered=0, open=0, held=()) for t in tallies)
        record = EndedRecord(node=node, start=start, tallies=kept, gone=(), dead=True)
        self._dead[node] = record
        self._keep(record)

    def revived(self, node: NodeId) -> EndedRecord | None:
        """A node that counted as dead reports again, or is removed. Returns what it had counted. The record goes: the
        node says itself what it counts, or its start is over now."""
        record = self._dead.pop(node, None)
        if record is not None:
            self.heard(node, record.start)
        return record

    def ended(self, node: NodeId, start: int, gone: Iterable[Origin]) -> None:
        """Origins have ended while their node goes on."""
        record = EndedRecord(node=node, start=start, tallies=(), gone=(), lives=True)
        before = self._records.get(record.name, record)
        self._keep(replace(record, gone=tuple(dict.fromkeys((*before.gone, *gone)))[-GONE_MAX:]))

    def _keep(self, record: EndedRecord) -> None:
        self._put(record)
        old = sorted((r for r in self._of_node[record.node].values() if not (r.dead or r.earlier)), key=_age)
        if (kept := _kept_apart(old)) < len(old):
            before = self._of_node[record.node].get(f"{record.node} earlier")
            old = [*([] if before is None else [before]), *old[: len(old) - kept]]
            self._put(_together(record.node, old))
            for each in old:
                if not each.earlier:
                    self._drop(each)
            self._settle()

    def _put(self, record: EndedRecord) -> None:
        self._unlist(self._records.get(record.name))
        self._records[record.name] = self._news[record.name] = record
        self._list(record)
        self.gone |= dict.fromkeys(record.gone)

    def _drop(self, record: EndedRecord) -> None:
        del self._records[record.name]
        self._news[record.name] = None
        self._unlist(record)

    def heard(self, node: NodeId, start: int) -> None:
        """A start reports, so it is not over, and reports its own counts. O(1) if it was not thought to be over."""
        record = self._records.get(f"{node} {start}")
        if record is not None:
            self._drop(record)
            self._settle()

    def __iter__(self) -> Iterator[EndedRecord]:
        return iter(self._records.values())

    def tallies(self) -> Iterator[Tally]:
        return (tally for record in self._records.values() for tally in record.tallies)

    def of(self, line: tuple[QueryId, Origin]) -> list[Tally]:
        """The counts of one query and origin."""
        return list(self._lines.get(line, {}).values())

    def counted(self, node: NodeId, query: QueryId) -> Counted:
        """What operators of earlier starts of a node had counted, if the next start does not compute it again: the
        operator and side, the origin, the batches. O(counts of these starts)."""
        found: dict[tuple[str, Origin], Spans] = {}
        for tally in (t for record in self._of_node.get(node, {}).values() for t in record.tallies if t.query == query):
            for taker, spans in tally.counted:
                if taker:
                    found[taker, tally.origin] = union((found.get((taker, tally.origin), ()), spans))
        return tuple((*key, spans) for key, spans in sorted(found.items()))

    def _list(self, record: EndedRecord) -> None:
        self._of_node.setdefault(record.node, {})[record.name] = record
        for tally in record.tallies:
            self._lines.setdefault((tally.query, tally.origin), {})[record.name] = tally

    def _unlist(self, record: EndedRecord | None) -> None:
        if record is not None:
            self._of_node[record.node].pop(record.name, None)
            for tally in record.tallies:
                self._lines[tally.query, tally.origin].pop(record.name, None)

    def news(self) -> dict[str, EndedRecord | None]:
        """The records that have changed since the last call, by name; None for removed ones."""
        found, self._news = self._news, {}
        return found

    def _settle(self) -> None:
        self.gone = {origin: None for record in self._records.values() for origin in record.gone}


def _stays(t: Tally, is_source: bool = False) -> Tally:
    """The counts of a start that the next one does not make again, although it computes its input again. A node counts
    all that its sources have made."""
    return Tally(
        query=t.query,
        origin=t.origin,
        produced=t.produced if is_source else t.produced_here,
        made=t.made if is_source or t.produced_here else 0,
        seen=t.seen,
        delivered=t.delivered_here,
        late=t.late_here,
        lost=t.lost_here,
        evicted=t.evicted_here,
        faulted=t.faulted_here,
        counted=tuple((taker, spans) for taker, spans in t.counted if not taker),
    )


def _rows(tally: Tally) -> tuple[int, ...]:
    return tally.produced, tally.delivered, tally.late, tally.lost, tally.evicted, tally.faulted


def _age(record: EndedRecord) -> tuple[int, bool]:
    """Records of one node in the order of its starts. A start below 0 is one that is known by its successor alone."""
    return abs(record.start), record.lives


def _kept_apart(records: list[EndedRecord]) -> int:
    """How many of a node's records, the newest, are kept as they are. O(counts)."""
    lines = 0
    for kept, record in enumerate(reversed(records)):
        lines += sum(tally.origin.node == record.node for tally in record.tallies)
        if kept >= STARTS_MAX or (kept and lines > OWN_LINES_MAX):
            return kept
    return len(records)


def _together(node: NodeId, records: Iterable[EndedRecord]) -> EndedRecord:
    """The counts of several starts of a node, added up by query and origin, the oldest first. O(counts)."""
    lines: dict[tuple[QueryId, Origin], Tally] = {}
    gone: dict[Origin, None] = {}
    for record in records:
        gone |= dict.fromkeys(record.gone)
        for tally in record.tallies:
            key = (tally.query, tally.origin)
            before = lines.pop(key, None)
            lines[key] = tally if before is None else _added(before, tally)
    own = [key for key in lines if key[1].node == node]
    for key in own[:-OWN_LINES_MAX]:
        del lines[key]
    last = tuple(gone)[-GONE_MAX:]
    return EndedRecord(node=node, start=0, tallies=tuple(lines.values()), gone=last, earlier=True)


def _added(a: Tally, b: Tally) -> Tally:
    """Two counts of one line as one. A batch that both had lost is lost once."""
    takers = {**dict(a.counted), **dict(b.counted)}
    counted = {taker: union((dict(a.counted).get(taker, ()), dict(b.counted).get(taker, ()))) for taker in takers}
    sums = {name: getattr(a, name) + getattr(b, name) for name in (*_ADDED, *_ADDED_HERE)}
    if both(dict(a.counted).get("", ()), dict(b.counted).get("", ())):
        sums["lost"] -= min(a.lost, b.lost)
    marks = [mark for mark in (a.watermark, b.watermark) if mark is not None]
    return replace(
        b,
        **sums,
        made=max(a.made, b.made),
        seen=max(a.seen, b.seen),
        watermark=max(marks, default=None),
        counted=tuple((taker, bounded(spans)) for taker, spans in sorted(counted.items())),
    )
