"""Whose batches each neighbour below a node may send.

Law: a neighbour may send its own batches and those of the makers that the coordinator has named for it. They were below
it at some time, and batches of old routes may come hours later, so no maker is taken back. A node that has not heard
from the coordinator yet takes nothing that its neighbours pass on. Nothing is lost by that: they keep it.
"""

from __future__ import annotations

from rove.model.ids import NodeId
from rove.model.messages import Learned, chained


class Below:
    """The makers by neighbour. `known` says how many pairs are known, and their checksum."""

    def __init__(self) -> None:
        self._pairs: list[tuple[NodeId, str]] = []
        self._makers: dict[NodeId, set[str]] = {}
        self._check = 0

    @property
    def known(self) -> tuple[int, int]:
        return len(self._pairs), self._check

    def everything(self) -> Learned:
        """All pairs, for the next start of the node."""
        return Learned(0, tuple(self._pairs))

    def may_pass_on(self, neighbour: NodeId, maker: str) -> bool:
        """Whether a neighbour may send batches of a maker. O(1)."""
        return maker in self._makers.get(neighbour, ())

    def learn(self, news: Learned) -> bool:
        """Learn more pairs. Those that begin at 0 are all, and replace what is known. Pairs that do not follow what is
        known wait until the coordinator sends them again. Returns whether something was learned. O(pairs)."""
        if news.after == 0:
            self._pairs, self._makers, self._check = [], {}, 0
        if news.after != len(self._pairs) or not news.pairs:
            return False
        for neighbour, maker in news.pairs:
            self._makers.setdefault(neighbour, set()).add(maker)
            self._check = chained(self._check, neighbour, maker)
        self._pairs += news.pairs
        return True
