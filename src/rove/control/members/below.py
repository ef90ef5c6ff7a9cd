"""The makers whose batches each node may pass on: those below it.

Law: a node may send its own batches and those of all makers below it. A node is below each parent that it ever named,
and below each node that it was ever told to send to on a route that goes on from there; and so on upwards. An operator
that has one origin for all nodes (`busy#3`) is below each node that ever ran it. So whatever a node was told to pass on
is below it. A move between parents that are known changes nothing.

This table of makers only grows; entries are never removed. Batches of old routes arrive hours later, and those of a
node that was removed may have no other copy. The counts of removed nodes (`ended`) are kept for as long.

Each node is told the makers below its neighbours as a list that only gets longer (`Learned`), and says how much of it
it knows. A new maker costs O(links above it). A node that gets another parent costs O(makers below it × links above
that parent), once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId
from rove.model.messages import LEARNED_MAX, Fragment, Learned, chained

TELL_AGAIN_US = 900_000


class AboveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that batches of a maker go to, each with its place among all pairs of the table. Restored in that
    order, the lists of all nodes are as they were."""

    maker: str
    above: tuple[tuple[NodeId, int], ...]


class _List:
    """What one node is told: pairs of neighbour and maker, with the checksum up to each."""

    __slots__ = ("checks", "known", "moved_us", "pairs", "told", "waits")

    def __init__(self) -> None:
        self.pairs: list[tuple[NodeId, str]] = []
        self.checks = [0]
        self.known = 0  # the pairs that the node says it knows
        self.told = 0  # the pairs that it was told
        self.moved_us = 0  # when it was last told from `known` on, or `known` moved
        self.waits: deque[tuple[int, str]] = deque()  # how much it must know before a maker may send

    def add(self, neighbour: NodeId, maker: str) -> None:
        self.pairs.append((neighbour, maker))
        self.checks.append(chained(self.checks[-1], neighbour, maker))


class Below:
    """The table of one coordinator."""

    def __init__(self) -> None:
        self._above: dict[str, dict[NodeId, int]] = {}
        self._below: dict[NodeId, dict[str, None]] = {}
        self._lists: dict[NodeId, _List] = {}
        self._unheard: dict[str, dict[NodeId, int]] = {}  # by maker, the nodes that must know more before it may send
        self._news: dict[str, None] = {}  # makers whose records have changed
        self._grown: dict[NodeId, None] = {}  # nodes with more to be told
        self._places = 0

    def restore(self, records: Iterable[AboveRecord]) -> None:
        """Restore the table. O(table)."""
        found = [(place, record.maker, above) for record in records for above, place in record.above]
        for place, maker, above in sorted(found):
            self._places = place
            self.add(maker, above)
        self._unheard, self._news, self._grown = {}, {}, {}
        for each in self._lists.values():
            each.waits.clear()

    # What happens

    def add(self, maker: str, above: NodeId) -> None:
        """Batches of a maker, and of all below it, go to a node from now on. O(1) if they do already."""
        known = self._above.setdefault(maker, {})
        if above in known or above == maker:
            return
        known[above] = self._places
        self._places += 1
        self._news[maker] = None
        touched: dict[NodeId, None] = {}
        open_: deque[tuple[str, NodeId, str]] = deque((maker, above, each) for each in (maker, *self._of(maker)))
        while open_:
            neighbour, node, each = open_.popleft()
            if each != neighbour:
                self._list(node).add(NodeId(neighbour), each)
                touched[node] = None
            if each != node and each not in self._below.setdefault(node, {}):
                self._below[node][each] = None
                open_.extend((node, further, each) for further in self._above.get(node, ()))
        self._grown |= touched
        for node in touched:
            found = self._list(node)
            found.waits.append((len(found.pairs), maker))
            self._unheard.setdefault(maker, {})[node] = len(found.pairs)

    def routed(self, node: NodeId, fragment: Fragment, end: NodeId) -> None:
        """Note the route of a node that is told its part of a query that ends on `end`. Rows that end there go no
        further. O(hops)."""
        for above in () if fragment.next is None else (fragment.next, *fragment.others):
            if above != end:
                self.add(node, above)
        for origin in fragment.makes.values():  # an operator that came aside has the name of another node
            if origin.node != node:
                self.add(origin.maker, node)

    def heard(self, node: NodeId, known: tuple[int, int], now: int) -> list[NodeId]:
        """Note how much a node knows. If that is no beginning of its list, it is told everything. Returns the nodes
        that may have waited for it. O(these)."""
        found = self._lists.get(node)
        if found is None:
            return []
        count, check = known
        if not (0 <= count < len(found.checks) and found.checks[count] == check):
            count = 0
        if count < found.known or count > found.told:  # it has started again, or we have
            found.told = count
        if count != found.known:
            found.known, found.moved_us = count, now
        woken: dict[NodeId, None] = {}
        while found.waits and found.waits[0][0] <= found.known:
            position, maker = found.waits.popleft()
            waiting = self._unheard.get(maker, {})
            if waiting.get(node) == position:
                del waiting[node]
                woken |= dict.fromkeys((*self._above[maker], *(() if "#" in maker else (NodeId(maker),))))
            if not waiting:
                self._unheard.pop(maker, None)
        return list(woken)

    # Reading

    def has(self, node: NodeId, maker: str) -> bool:
        """Whether a node may send batches of a maker."""
        return node == maker or maker in self._below.get(node, ())

    def is_heard(self, node: NodeId, maker: str) -> bool:
        """Whether a node has confirmed whose batches it may take because of a maker's place. O(1)."""
        return node not in self._unheard.get(maker, ())

    def tell(self, node: NodeId, now: int) -> Learned | None:
        """What a node is told now; None if it knows all, or was told a moment ago. O(what it is told)."""
        found = self._lists.get(node)
        if found is None:
            return None
        if found.told == found.known or now - found.moved_us >= TELL_AGAIN_US:
            found.told, found.moved_us = found.known, now
        pairs = tuple(found.pairs[found.told : found.told + LEARNED_MAX])
        if not pairs:
            return None
        found.told += len(pairs)
        return Learned(found.told - len(pairs), pairs)

    def grown(self) -> list[NodeId]:
        """The nodes with more to be told since the last call."""
        found, self._grown = list(self._grown), {}
        return found

    def news(self) -> Iterator[AboveRecord]:
        """The records that have changed since the last call."""
        found, self._news = self._news, {}
        return (AboveRecord(maker=maker, above=tuple(self._above[maker].items())) for maker in found)

    def _of(self, maker: str) -> tuple[str, ...]:
        return tuple(self._below.get(NodeId(maker), ()))

    def _list(self, node: NodeId) -> _List:
        return self._lists.setdefault(node, _List())

    def validate(self) -> None:
        """Raise if what is below each node does not follow from the pairs. O(table)."""
        fresh = Below()
        fresh.restore(AboveRecord(maker=m, above=tuple(above.items())) for m, above in self._above.items())
        if {n: set(b) for n, b in fresh._below.items()} != {n: set(b) for n, b in self._below.items()}:
            raise BrokenInvariant("the makers below nodes do not follow from who sends to whom")
        if {n: each.pairs for n, each in fresh._lists.items()} != {n: each.pairs for n, each in self._lists.items()}:
            raise BrokenInvariant("the makers that nodes are told do not follow from who sends to whom")
        for maker, nodes in self._unheard.items():
            for node, position in nodes.items():
                if position <= self._lists[node].known:
                    raise BrokenInvariant(f"`{maker}` waits for `{node}`, which knows enough")
