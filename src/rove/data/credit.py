"""Room that is promised to peers before they use it.

Law: a promise is never taken back, so the same room is not promised twice, but for a little that every peer gets, so
that none starves behind others that are silent. A quarter of the room is kept for that little, and for the one frame
with which each peer may go over its promise: peers × (`PROMISE_BYTES_MIN` + a frame) have to fit into it.

Peers that are silent would keep what they were promised for ever. So they are promised little, and those that send
several times what they have used of their last promise: a backlog has all it can get after one round trip.
"""

from __future__ import annotations

from rove.data.link import Link
from rove.model.ids import NodeId

PROMISE_BYTES_MIN = 16 * 1024  # room that every peer is promised while there is any
PEERS_MIN = 8  # no peer is promised more than one part of so many
SILENT_MIN = 64  # nor one that sends nothing more than one of so many
GROWTH = 8  # what a peer is promised, for what it has used


class Credit:
    """What peers may still send. A moment costs O(links that said something, or were promised little)."""

    def __init__(self, limit_bytes: int) -> None:
        self._most, self._least = limit_bytes // PEERS_MIN, limit_bytes // SILENT_MIN
        self._spare = limit_bytes // 4
        self._outstanding: dict[NodeId, int] = {}  # as it was when we last looked
        self._promises: dict[NodeId, int] = {}  # the last one made
        self._promised = 0
        self._hungry: dict[NodeId, Link] = {}

    def share(self, links: dict[NodeId, Link], room: int) -> dict[NodeId, Link]:
        """Promise the room there is to these and to those who got little; everyone looked at."""
        room -= self._spare
        if room > 0:
            links = links | self._hungry
            self._hungry = {}
        used = {name: self._used(link) for name, link in links.items()}
        parts = max(2, sum(1 for bytes in used.values() if bytes))  # who sends now shares; half is left for others
        for name, link in links.items():
            wanted = min(max(self._least, GROWTH * used[name]), self._most)
            part = max(min((room - self._promised) // parts, wanted), PROMISE_BYTES_MIN)
            if room > 0 and link.outstanding < part:
                self._promises[name] = link.grant(part)
                self._used(link)
            if link.outstanding < PROMISE_BYTES_MIN:
                self._hungry[name] = link
        return links

    def _used(self, link: Link) -> int:
        """Count what a peer may still send; what it has used of its last promise, all of it if it has begun anew."""
        peer, now = link.peer, link.outstanding
        self._promised += now - self._outstanding.get(peer, 0)
        self._outstanding[peer] = now
        return max(0, self._promises.get(peer, 0) - now)
