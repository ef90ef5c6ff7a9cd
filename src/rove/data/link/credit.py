"""Room that is promised to peers before they use it.

Law: a promise is never taken back, so the same room is not promised twice, but for a little that every peer gets, so
that none starves behind others that are silent. A quarter of the room is kept for that little, and for the one frame
with which each peer may go over its promise: peers × (`PROMISE_BYTES_MIN` + a frame) have to fit into it. (Where the
room is all promised and peers go on sending, they get that little in every round trip: see decision 3.)
"""

from __future__ import annotations

from rove.data.link.link import Link
from rove.model.ids import NodeId

PROMISE_BYTES_MIN = 16 * 1024  # room that every peer is promised while there is any
PEERS_MIN = 8  # no peer is promised more than one part of so many


class Credit:
    """What peers may still send. A moment costs O(links that said something, or were promised little)."""

    def __init__(self, limit_bytes: int) -> None:
        self._most = limit_bytes // PEERS_MIN
        self._spare = limit_bytes // 4
        self._promises: dict[NodeId, int] = {}
        self._promised = 0
        self._hungry: dict[NodeId, Link] = {}

    def share(self, links: dict[NodeId, Link], room: int, peers: int) -> dict[NodeId, Link]:
        """Promise the room there is, in equal parts, to these and to those who got little; everyone looked at."""
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

    def _count(self, link: Link) -> None:
        self._promised += link.outstanding - self._promises.get(link.peer, 0)
        self._promises[link.peer] = link.outstanding
