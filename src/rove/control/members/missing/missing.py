"""Notices batches that no node has any more.

Law: a batch is missing if an operator or output that takes the batches of its origin has not counted it, and no node
holds it. Nodes report at different moments, so a batch between two nodes may be in no report. It is missing only if
that stays so for `PATIENCE_US`, and every node that could hold it has reported since.

A report costs O(its tallies), and a look O(lines that have changed since the last look).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from rove.control.members.ended import Ended
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Tally
from rove.model.spans import Spans, both, minus, size, union

NEVER = -1  # a moment before all others
PATIENCE_US = 5_000_000
LOOK_US = 1_000_000

Line: TypeAlias = tuple[QueryId, Origin]
HeardUpTo: TypeAlias = Callable[[QueryId, Origin], int | None]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Batches that have been in no report since some moment."""

    since_us: int
    batches: Spans


class Missing:
    """The tallies of all nodes by query and origin, and the doubts about them, the oldest first."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._tallies: dict[Line, dict[NodeId, Tally]] = {}
        self._of_node: dict[NodeId, dict[Line, None]] = {}
        self._changed: dict[Line, None] = {}
        self._doubts: dict[Line, list[Doubt]] = {}
        self._missing: dict[Line, Doubt] = {}
        self._due_us = 0

    def take(self, node: NodeId, tallies: Iterable[Tally], whole: bool) -> None:
        """Take the tallies of a report. O(tallies), plus O(tallies of the node) if it is a whole one."""
        if whole:
            self.forget(node)
        here = self._of_node.setdefault(node, {})
        for tally in tallies:
            line = (tally.query, tally.origin)
            self._tallies.setdefault(line, {})[node] = tally
            here[line] = None
            self._changed[line] = None

    def forget(self, node: NodeId) -> None:
        """Forget the tallies of a node that is gone or has started again. O(tallies of the node)."""
        for line in self._of_node.pop(node, {}):
            nodes = self._tallies[line]
            del nodes[node]
            if not nodes:
                del self._tallies[line]
            self._changed[line] = None

    def look(self, heard: HeardUpTo, now: int) -> None:
        """Compare what was made with what is held and counted. `heard` gives the moment up to which all nodes that may
        hold a line's batches have reported, `NEVER` if one has not; None if the line is over."""
        if now < self._due_us:
            return
        self._due_us = now + LOOK_US
        for line in {**self._changed, **self._doubts}:
            self._look(line, heard, now)
        self._changed = {}

    def _look(self, line: Line, heard: HeardUpTo, now: int) -> None:
        unseen = self.unseen(line)
        heard_us = heard(*line) if unseen else None
        if heard_us is None:
            self._doubts.pop(line, None)
            self._missing.pop(line, None)
            return
        doubts = [Doubt(d.since_us, kept) for d in self._doubts.get(line, ()) if (kept := both(d.batches, unseen))]
        if fresh := minus(unseen, union(doubt.batches for doubt in doubts)):
            doubts.append(Doubt(now, fresh))
        self._doubts[line] = doubts
        old = [d for d in doubts if now - d.since_us >= PATIENCE_US and heard_us > d.since_us]
        if old:
            self._missing[line] = Doubt(old[0].since_us, union(d.batches for d in old))
        else:
            self._missing.pop(line, None)

    def unseen(self, line: Line) -> Spans:
        """The batches of a line that no node holds and that are not counted everywhere. O(nodes with that line)."""
        tallies = [*self._tallies.get(line, {}).values(), *self._ended.of(line)]
        made = max((tally.made for tally in tallies), default=0)
        if rows_in_flight(tallies) <= 0 or not made:
            return ()
        takers: dict[str, list[Spans]] = {}
        for tally in tallies:
            for taker, spans in tally.counted:
                takers.setdefault(taker, []).append(spans)
        over = takers.pop("", [])
        whole = (0, made)
        open_ = union(minus(whole, union((*spans, *over))) for spans in takers.values()) if takers else whole
        held = union(tally.held for tally in tallies)
        # If every name is counted and rows are still in flight, a taker that has reported nothing should have received
        # them.
        return minus(open_, held) if open_ or held else whole

    def of(self, query: str, origin: Origin) -> Doubt | None:
        """The batches of a line that are missing."""
        return self._missing.get((QueryId(query), origin))

    def rows(self, query: str, origin: Origin, in_flight: int) -> int:
        """How many of a line's rows in flight are missing, if batches are. Where only the names of batches are known,
        all are assumed to have equally many rows: which of two nodes hold a batch, and whether a batch has been in
        doubt for long."""
        line = (QueryId(query), origin)
        held: Spans = ()
        rows = 0
        for tally in self._tallies.get(line, {}).values():
            if tally.held:
                fresh = minus(tally.held, held)
                rows += (tally.buffered + tally.open) * size(fresh) // size(tally.held)
                held = union((held, tally.held))
        doubt, unseen = self._missing.get(line), size(self.unseen(line))
        sure = size(doubt.batches) / unseen if doubt is not None and unseen else 1
        return max(1, round((in_flight - rows) * min(1.0, sure)))

    def queries(self) -> set[str]:
        """The queries with missing batches. O(lines with missing batches)."""
        return {query for query, _ in self._missing}

    def lines(self, query: QueryId) -> Iterable[tuple[Origin, Doubt]]:
        """The lines of a query with missing batches. O(lines with missing batches)."""
        return ((origin, doubt) for (id, origin), doubt in sorted(self._missing.items()) if id == query)


def rows_in_flight(tallies: Iterable[Tally]) -> int:
    """The rows of one line that were produced and are not counted otherwise."""
    return sum(t.produced - t.delivered - t.evicted - t.late - t.lost - t.faulted for t in tallies)
