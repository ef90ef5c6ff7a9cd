"""How many rows an end may have counted of batches that their maker has not reported yet.

Law: nodes report at different moments, so an end may be ahead of the maker. When the end's count was lower than what
the maker has reported since, it had counted nothing beyond that. So what lies beyond is at most what the end has
counted since then. A few earlier counts of each end are kept for that; without one of them nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TypeAlias

from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Tally

EARLIER_MAX = 6  # earlier counts of one line on one node

Line: TypeAlias = tuple[QueryId, Origin]
Ends: TypeAlias = tuple[int, ...]

_ends = attrgetter("delivered", "evicted", "late", "lost", "faulted")


class Ahead:
    """The earlier counts by line and node, the oldest first: how many batches an end had seen, and its rows."""

    def __init__(self) -> None:
        self._earlier: dict[tuple[Line, NodeId], tuple[tuple[int, Ends], ...]] = {}

    def note(self, line: Line, node: NodeId, before: Tally, now: Tally) -> None:
        """A node has reported again. O(1)."""
        if now.seen > before.seen:
            key = (line, node)
            self._earlier[key] = (*self._earlier.get(key, ())[1 - EARLIER_MAX :], (before.seen, _ends(before)))

    def forget(self, line: Line, node: NodeId) -> None:
        """A node is gone, has started again, or reports everything anew."""
        self._earlier.pop((line, node), None)

    def rows(self, line: Line, made: int, here: Iterable[tuple[NodeId, Tally]]) -> int | None:
        """The most rows that these nodes have counted of batches from number `made` on; None if that is not known.
        O(nodes)."""
        rows = 0
        for node, tally in here:
            if tally.seen <= made:
                continue
            earlier = [ends for seen, ends in self._earlier.get((line, node), ()) if seen <= made]
            if not earlier:
                return None
            rows += sum(max(0, now - then) for now, then in zip(_ends(tally), earlier[-1], strict=True))
        return rows
