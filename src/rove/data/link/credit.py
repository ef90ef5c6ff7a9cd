"""Credit: room that is promised to peers before they use it.

Law: a promise is never taken back. So the same room is not promised twice, except for a small amount that every peer
gets, so that no peer starves while others are silent. A quarter of the room is reserved for these small amounts, and
for the one frame by which each peer may exceed its promise: peers × (`PROMISE_BYTES_MIN` + a frame) must fit into it.
(If all room is promised and peers go on sending, they get that amount in every round trip: see decision 3.)
"""

from __future__ import annotations

from rove.data.link.link import Link
from rove.model.errors import must
from rove.model.ids import NodeId

PROMISE_BYTES_MIN = 16 * 1024  # promised to every peer while there is room
PEERS_MIN = 8  # no peer is promised more than this fraction (1/8) of the room


class Credit:
    """What peers may still send. A call costs O(links that sent something, or were promised little)."""

    def __init__(self, limit_bytes: int) -> None:
        self._most = limit_bytes // PEERS_MIN
        self._spare = limit_bytes // 4
        self._promises: dict[NodeId, int] = {}
        self._promised = 0
        self._hungry: dict[NodeId, Link] = {}

    def share(self, links: dict[NodeId, Link], room: int, peers: int) -> dict[NodeId, Link]:
        """Promise the free room in equal parts to these links and to links that got little. Returns all links looked
        at."""
        room -= self._spare
        if room > 0:
            links = links | self._hungry
            self._hungry = {}
        for name, link in links.items():
            self._count(link)
            part = max(min((room - self._promised) // max(1, peers), self._most), PROMISE_BYTES_MIN)
            if room > 0 and link.outstanding < part:
                link.grant(part)
                self._count(link)
            if link.outstanding < PROMISE_BYTES_MIN:
                self._hungry[name] = link
        return links

    def validate(self, links: dict[NodeId, Link]) -> None:
        """Raise unless the sum of all promises equals the promises to each peer. O(links)."""
        promised = sum(self._promises.values())
        must(self._promised == promised, "promised credit adds up", self._promised, promised)
        for name, promise in self._promises.items():
            must(promise >= 0, "a promise is not negative", name, promise)
            must(name in links, "a promise is to a neighbour", name)

    def _count(self, link: Link) -> None:
        self._promised += link.outstanding - self._promises.get(link.peer, 0)
        self._promises[link.peer] = link.outstanding
