"""The neighbours of a node: the peers that the coordinator named, a link with each, and their connections.

Law: messages before a Hello are refused. With keys, so are peers that the coordinator has not named with that key. A
node dials its parents; other peers dial it. A peer speaks for itself and for the makers below it (`below`); a parent
speaks for all nodes, because rows that were made anywhere come down from it. A frame of another maker is refused: it
is neither taken nor acked, and no later frame of its link is taken until the coordinator has named the maker. So a peer
that forges stops its own link and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rove.data.events import Command, Cut, Dial, Loaded, Met
from rove.data.link.below import Below
from rove.data.link.credit import Credit
from rove.data.link.link import BEATS, Link, Said
from rove.data.link.unheard import Unheard
from rove.data.settings import WorkerSettings
from rove.data.store.kept_batch import KEPT_BYTES_MIN, KeptBatch
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import BadName, ProtocolError, must
from rove.model.events import Allow, Arrived, Conn, Drop
from rove.model.ids import NodeId, Origin, checked_name
from rove.model.messages import (
    PROTOCOL,
    ROWS_BYTES_MAX,
    Data,
    Hello,
    Learned,
    Message,
    Peer,
    check_header,
    digest_of,
)

STRANGE_US = 3_000_000  # how long a batch may arrive before the coordinator has named its maker


class _Strange(NamedTuple):
    """A batch that its peer may not send, and when it first came."""

    query: str
    origin: Origin
    since_us: int


class Neighbours:
    """The links of one node. `reached` are the parents with a working link."""

    def __init__(self, settings: WorkerSettings, start: int, store: Store) -> None:
        self._settings, self._start, self._store = settings, start, store
        self.links: dict[NodeId, Link] = {}
        self._conns: dict[Conn, NodeId] = {}
        self._dirty: dict[NodeId, Link] = {}  # links that may have something to send
        self._credit = Credit(settings.memory_bytes)
        self._peers: dict[NodeId, Peer] = {}
        self.below = Below()
        self.unheard = Unheard()
        self._strange: dict[NodeId, _Strange] = {}  # the peers whose links stand still
        self.digest = ""  # the digest of the peers
        self.reached: tuple[NodeId, ...] = ()
        self._cut_us: dict[NodeId, int] = {}  # parents that were reached and are not now, and since when

    @property
    def peers(self) -> tuple[Peer, ...]:
        return tuple(self._peers.values())

    def link(self, peer: NodeId) -> Link:
        """The link with a peer. It is made if there is none."""
        found = self.links.get(peer)
        if found is None:
            found = self.links[peer] = Link(
                self._settings.node,
                self._start,
                peer,
                self._store,
                self._settings.backlog,
                self._settings.silent_us,
            )
        return found

    def may_speak_for(self, peer: NodeId, origin: Origin) -> bool:
        """Whether a peer may send batches of an origin. O(1)."""
        maker = origin.node or origin.maker
        if maker == peer or peer in self._settings.parents:
            return True
        if not self.below.may_pass_on(peer, maker):
            return False
        # No node is below a device; but a device may run an operator that has one origin for all nodes.
        known = self._peers.get(peer)
        return known is None or not known.device or not origin.node

    def learn(self, news: Learned, now: int) -> list[Said]:
        """The coordinator has named more makers. Frames that may be taken now are requested. O(names + links that stand
        still)."""
        if not self.below.learn(news):
            return []
        may = [peer for peer, strange in self._strange.items() if self.may_speak_for(peer, strange.origin)]
        return [send for peer in may for send in self.links[peer].go_on(now)]

    def strangers(self, now: int) -> Iterator[tuple[NodeId, str, str]]:
        """The links that stand still: the peer, the query of the batch that it may not send, and what to do about it.
        They are listed after `STRANGE_US`, because the coordinator's message may still arrive. O(such links)."""
        for peer, (query, origin, since) in self._strange.items():
            if now - since >= STRANGE_US:
                yield (
                    peer,
                    query,
                    f"`{peer}` sends batches of `{origin}`, which is not below it. They are not taken, and `{peer}` "
                    f"keeps them with all that follow. If you do not trust it: rove keys revoke {peer}",
                )

    def at(self, conn: Conn) -> Link | None:
        """The link with the peer that said Hello on a connection."""
        peer = self._conns.get(conn)
        return None if peer is None else self.links[peer]

    # Messages

    def hello(self, hello: Hello, event: Arrived, now: int) -> list[Said]:
        """Handle a Hello."""
        node = self._settings.node
        if hello.protocol != PROTOCOL:
            text = f"{node} speaks protocol {PROTOCOL}, not {hello.protocol}; use one version of rove for both"
            raise ProtocolError("protocol", text)
        known = self._peers.get(hello.node)
        if self._settings.keys and (known is None or known.key != event.key):
            raise ProtocolError("identity", f"`{hello.node}` does not have this key")
        try:
            checked_name(hello.node, "a node")
        except BadName as error:
            raise ProtocolError("identity", str(error)) from error
        if hello.node == node:
            raise ProtocolError("identity", f"`{hello.node}` cannot be the name of a peer")
        for old in [c for c, n in self._conns.items() if n == hello.node and c != event.conn]:
            del self._conns[old]
        self._conns[event.conn] = hello.node
        return self.heard(self.link(hello.node), hello, event.conn, now)

    def heard(self, link: Link, message: Message, conn: Conn, now: int) -> list[Said]:
        """Handle a message of a peer that is not Data."""
        self._dirty[link.peer] = link
        said = link.heard(message, conn, now)
        self.unheard.spoke(link)
        return said

    def receive(self, link: Link, data: Data, size: int, now: int) -> tuple[bool, list[Said]]:
        """Take a frame, or refuse it. Returns whether it is new and in order. A frame that is not the next one is not
        taken, whichever maker it has. O(1)."""
        peer, origin = link.peer, data.header.origin
        if size > ROWS_BYTES_MAX + KEPT_BYTES_MIN:
            raise ProtocolError("oversize", f"rows of {size} bytes; at most {ROWS_BYTES_MAX} are read")
        check_header(data.header)
        if link.awaits(data.number) and not self.may_speak_for(peer, origin):
            link.stall(now)
            since = self._strange[peer].since_us if peer in self._strange else now
            self._strange[peer] = _Strange(data.header.query, origin, since)
            raise ProtocolError("identity", f"`{peer}` may not send batches of `{origin}`, which is not below it")
        self._dirty[peer] = link
        fresh, said = link.receive(data.number, size, now)
        if fresh and self._strange:
            self._strange.pop(peer, None)
        return fresh, said

    def loaded(self, event: Loaded, now: int) -> list[Said]:
        """Rows that a link requested have been read, or cannot be read."""
        link = self.links.get(event.peer)
        return [] if link is None else link.loaded(event, now)

    # Calls of the node

    def meet(self, peers: Iterable[Peer]) -> list[Command]:
        """Set the peers of this node, dial the parents among them, and disconnect peers that are no longer allowed."""
        before, named = self._peers, tuple(peers)
        self._peers, self.digest = {p.node: p for p in named}, digest_of(named)
        commands: list[Command] = [Allow(named)]
        for name, peer in self._peers.items():
            if name in self._settings.parents and peer.address and before.get(name) != peer:
                commands.append(Dial(peer))
                self.link(name).dial(name)
                self._conns[name] = name
        for gone in [n for n in before if n not in self._peers and n in self.links]:
            commands += [Drop(conn) for conn, name in self._conns.items() if name == gone]
            self._conns = {conn: name for conn, name in self._conns.items() if name != gone}
            self.links[gone].refused()
            self._strange.pop(gone, None)
        return commands

    def forget(self, query: str) -> list[Header]:
        """A query has ended. Returns the headers of its unsent batches that no other node can have."""
        self._dirty |= self.links
        return [header for link in self.links.values() for header in link.forget(query)]

    def give_up(self, query: str, now: int) -> bool:
        """A node has left a query, and only sent frames of it are left. Copies are dropped, and frames that came from
        other nodes: these nodes send them over another route. Peers may have left the query too, and would ack neither
        these frames nor those behind them. Other frames were made here, and are sent again. Returns whether there were
        any to drop. O(batches on all links)."""
        carriers = [link for link in self.links.values() if any(_elsewhere(e, query) for e in link.entries())]
        taken = [(link, entry) for link in carriers for entry in link.take_back(query)]
        for link, entry in taken:
            if _elsewhere(entry, query):
                self._store.drop(entry)
            else:
                link.offer(entry, now)
        self._dirty |= {link.peer: link for link in carriers}
        return bool(carriers)

    def take_back(self, peer: NodeId, query: str) -> list[KeptBatch]:
        """Take back the batches of a query that a peer has not acked, for another route."""
        link = self._dirty[peer] = self.link(peer)
        return link.take_back(query)

    def flush(self, room: int, now: int) -> list[Said]:
        """Promise free room and ack safe frames. O(links with something to send)."""
        self._dirty = self._credit.share(self._dirty, room, len(self._conns))
        said = [send for link in self._dirty.values() for send in link.flush(now)]
        self._dirty = {name: link for name, link in self._dirty.items() if link.open_frames()}
        return said

    @property
    def beat_us(self) -> int:
        """The shortest heartbeat interval of all links. O(links)."""
        return min((link.beat_us for link in self.links.values()), default=self._settings.silent_us // BEATS)

    def validate(self) -> None:
        """Every link, and what is promised to them. O(batches on all links)."""
        for name, link in self.links.items():
            must(link.peer == name, "a link is listed under its peer", name, link.peer)
            link.validate()
        for conn, name in self._conns.items():
            must(name in self.links, "a peer that said hello has a link", conn, name)
        for name in self._strange:
            must(name in self.links, "a link that stands still is a link of this node", name)
        for name, link in self._dirty.items():
            must(self.links.get(name) is link, "a link with news is a link of this node", name)
        self._credit.validate(self.links)

    def beat(self, now: int) -> list[Command]:
        """Send heartbeats, and notice peers that are silent or back. O(links)."""
        said: list[Command] = [send for link in self.links.values() for send in link.tick(now)]
        before = self.reached
        self.reached = tuple(p for p in self._settings.parents if p in self.links and self.links[p].there)
        for peer in before:
            if peer not in self.reached:
                self._cut_us[peer] = now
                said.append(Cut(peer))
        said += [Met(p, now - self._cut_us.pop(p)) for p in self.reached if p in self._cut_us]
        return said


def _elsewhere(entry: KeptBatch, query: str) -> bool:
    """Whether a batch is of a query, and another node or another link has it too."""
    return entry.header.query == query and (entry.receipt is not None or entry.original is not None)
