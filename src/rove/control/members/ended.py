"""Keeps the counts of nodes that are gone: nodes that left, and earlier starts of nodes that have restarted.

Law: counts are kept, also through a restart of the coordinator. An origin that is `gone` makes no more rows. If a start
that was thought to be over reports again, its record is removed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Counted, Tally
from rove.model.spans import Spans, union


class EndedRecord(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "incarnation"}):
    """A start of a node that is over: its counts, and the origins that ended with it. In the catalog `start` has the
    name `incarnation`."""

    node: NodeId
    start: int
    tallies: tuple[Tally, ...]
    gone: tuple[Origin, ...]
    lives: bool = False  # the node goes on; only these origins have ended
    dead: bool = False  # the node is silent, and counts as dead; it may report again

    @property
    def name(self) -> str:
        return f"{self.node} {self.start}" + (" lives" if self.lives else "")


class Ended:
    """The starts of nodes that are over. `gone` are the origins that ended with them."""

    def __init__(self) -> None:
        self._records: dict[tuple[NodeId, int, bool], EndedRecord] = {}
        self._news: dict[str, EndedRecord | None] = {}
        self._lines: dict[tuple[QueryId, Origin], dict[str, Tally]] = {}  # by query and origin, then by record
        self.gone: dict[Origin, None] = {}
        self._of_node: dict[NodeId, dict[str, EndedRecord]] = {}  # by node, then by the name of the record
        self._dead: dict[NodeId, EndedRecord] = {}  # the starts of silent nodes that count as dead

    def restore(self, records: Iterable[EndedRecord]) -> None:
        self._records = {(r.node, r.start, r.lives): r for r in records}
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
            Tally(
                query=t.query,
                origin=t.origin,
                produced=t.produced if t.origin in sources else t.produced_here,
                made=t.made if t.origin in sources or t.produced_here else 0,
                delivered=t.delivered_here,
                late=t.late_here,
                lost=t.lost_here,
                evicted=t.evicted_here,
                faulted=t.faulted_here,
                counted=tuple((taker, spans) for taker, spans in t.counted if not taker),
            )
            if t.query in again
            else replace(t, buffered=0, open=0, held=())
            for t in tallies
        ]
        kept = [replace(t, produced=0, made=0) if (t.query, t.origin) in counts else t for t in kept]
        record = EndedRecord(node=node, start=start, tallies=tuple(kept), gone=tuple(ended))
        self._keep(record)

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
        before = self._records.get((node, start, True))
        ended = dict.fromkeys((*(() if before is None else before.gone), *gone))
        self._keep(EndedRecord(node=node, start=start, tallies=(), gone=tuple(ended), lives=True))

    def _keep(self, record: EndedRecord) -> None:
        key = (record.node, record.start, record.lives)
        self._unlist(self._records.get(key))
        self._records[key] = self._news[record.name] = record
        self._list(record)
        self.gone |= dict.fromkeys(record.gone)

    def heard(self, node: NodeId, start: int) -> None:
        """A start reports, so it is not over, and reports its own counts. O(1) if it was not thought to be over."""
        record = self._records.pop((node, start, False), None)
        if record is not None:
            self._news[record.name] = None
            self._unlist(record)
            self._settle()

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
