"""Batches that are acked, and whose senders have not said that they heard the ack.

Law: on a node without a disk, a stateful operator computes a batch only when the sender has heard its ack. A sender
that has not heard it sends the batch again, also to the next start of the node. So the next start never gets a batch
that an earlier one had computed. A batch that was acked and not computed is lost with the node, as the rows of open
windows do.

A session may end before the sender has confirmed. If it says in its next session that it had not heard the ack, it
sends the batch again, and the batch is dropped here. If it cannot tell, because its process has died, the batch waits
until it arrives again; or until a later batch of its origin arrives over another route, because routes keep the order
of an origin; or for `PATIENCE_US`. For the same time it waits for a sender that is silent.

A batch may arrive more than once before an operator takes it: again from its sender, or over another route that its
query has taken. The fate of the latest frame counts. The sender of an earlier one drops its copy when it leaves the
route, although it has said that it kept the batch.
"""

from __future__ import annotations

from collections import deque

from rove.data.link.link import AckFate, Link
from rove.data.link.receipts import FrameReceipt
from rove.model.ids import NodeId, Origin, QueryId

PATIENCE_US = 30_000_000
LOOK_US = 1_000_000  # between two looks at who is silent


class Confirmation:
    """What the senders of one batch say of its ack: they heard it (`confirmed`), or they have `kept` the batch and send
    it again. `places` are the operators, by identity and origin, that wait for it."""

    __slots__ = ("_keepers", "_receipt", "confirmed", "frames", "last", "places", "query", "waits")

    def __init__(self, query: QueryId, receipt: FrameReceipt) -> None:
        self.query, self._receipt = query, receipt
        self.confirmed = False
        self._keepers: set[NodeId] = set()  # the senders that have kept the batch
        self.frames = 0  # the frames with this batch whose fate is open
        self.last = receipt.link.peer  # who sent the latest of them
        self.places: list[tuple[str, Origin]] = []
        self.waits: list[Confirmation] = []  # those that need the frame of this one: itself, or the first of this batch

    @property
    def kept(self) -> bool:
        """Whether the sender of its latest frame has kept the batch and sends it again."""
        return self.last in self._keepers

    def told(self, peer: NodeId, fate: AckFate) -> None:
        """The fate of one frame with this batch is known."""
        self.frames -= 1
        if fate is AckFate.KEPT:
            self._keepers.add(peer)
        else:
            self._keepers.discard(peer)

    def settle(self) -> None:
        """Decide it, because no more frames of the batch are open."""
        self.confirmed = not self.kept

    def came_with(self, other: Confirmation) -> bool:
        """Whether two batches came in one session."""
        mine, its = self._receipt, other._receipt
        return mine.link is its.link and mine.session == its.session


class Unheard:
    """The confirmations that a node waits for, by link, in the order of the frames."""

    def __init__(self) -> None:
        self._links: dict[NodeId, deque[tuple[FrameReceipt, Confirmation]]] = {}
        self._spoke: dict[NodeId, Link] = {}  # links that may have brought a confirmation
        self._unknown: deque[tuple[int, Confirmation]] = deque()  # those that may never come, and until when to wait
        self._silent: dict[NodeId, int] = {}  # peers that are silent, and since when
        self._look_us = 0

    def wait(self, receipt: FrameReceipt, confirmation: Confirmation) -> None:
        """A frame was taken. Wait for its confirmation, if an operator needs it."""
        for each in confirmation.waits:
            each.frames += 1
            each.last = receipt.link.peer
            self._links.setdefault(receipt.link.peer, deque()).append((receipt, each))
            receipt.link.asks = True

    def spoke(self, link: Link) -> None:
        """A peer has sent a message about its link."""
        if link.asks:
            self._spoke[link.peer] = link

    def settled(self, now: int) -> list[Confirmation]:
        """The confirmations that have arrived since, or are no longer waited for. O(those, and links that brought
        one); once a second O(links that owe one)."""
        found: list[Confirmation] = []
        for link in self._spoke.values():
            found += self._told(link, now)
        self._spoke.clear()
        if now >= self._look_us:
            self._look_us = now + LOOK_US
            self._look(now)
        while self._unknown and self._unknown[0][0] <= now:
            confirmation = self._unknown.popleft()[1]
            if not (confirmation.frames or confirmation.confirmed):
                confirmation.settle()
                found.append(confirmation)
        return found

    def _told(self, link: Link, now: int) -> list[Confirmation]:
        found: list[Confirmation] = []
        waiting = self._links.get(link.peer, deque())
        while waiting and (fate := waiting[0][0].fate) is not AckFate.WAITS:
            confirmation = waiting.popleft()[1]
            confirmation.told(link.peer, fate)
            if fate is AckFate.UNKNOWN:
                self._unknown.append((now + PATIENCE_US, confirmation))
            elif not confirmation.frames:
                confirmation.settle()
                found.append(confirmation)
        if not waiting:
            self._links.pop(link.peer, None)
            link.asks = False
        return found

    def _look(self, now: int) -> None:
        """Peers that have been silent for long may never come back."""
        silent = {peer: waiting for peer, waiting in self._links.items() if not waiting[0][0].link.there}
        self._silent = {peer: self._silent.get(peer, now) for peer in silent}
        for peer, waiting in silent.items():
            if now - self._silent[peer] >= PATIENCE_US:
                for _, confirmation in self._links.pop(peer):
                    confirmation.told(peer, AckFate.UNKNOWN)
                    self._unknown.appendleft((now, confirmation))
                waiting[0][0].link.asks = False
