"""The neighbours of a node: the peers that the coordinator named, a link with each, and their connections.

Law: messages before a Hello are refused. With keys, so are peers that the coordinator has not named with that key. A
node dials its parents; other peers dial it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.data.events import Command, Cut, Dial, Loaded, Met
from rove.data.link.credit import Credit
from rove.data.link.link import BEATS, Link, Said
from rove.data.settings import WorkerSettings
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import ProtocolError, must
from rove.model.events import Allow, Arrived, Conn, Drop
from rove.model.ids import NodeId, Origin
from rove.model.messages import PROTOCOL, Hello, Message, Peer, digest_of


class Neighbours:
    """The links of one node. `reached` are the parents with a working link."""

    def __init__(self, settings: WorkerSettings, incarnation: int, store: Store) -> None:
        self._settings, self._incarnation, self._store = settings, incarnation, store
        self.links: dict[NodeId, Link] = {}
        self._conns: dict[Conn, NodeId] = {}
        self._dirty: dict[NodeId, Link] = {}  # links that may have something to send
        self._credit = Credit(settings.memory_bytes)
        self._peers: dict[NodeId, Peer] = {}
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
                self._incarnation,
                peer,
                self._store,
                self._settings.backlog,
                self._settings.silent_us,
            )
        return found

    def may_speak_for(self, peer: NodeId, origin: Origin) -> bool:
        """Whether a peer may send batches of an origin. A device has nobody below it. Whether it owns a merging
        operator, whose origin names no node, is known to the query (`RunningFragment.check_owner`)."""
        known = self._peers.get(peer)
        return known is None or not known.device or origin.node in ("", peer)

    def is_device(self, peer: NodeId) -> bool:
        known = self._peers.get(peer)
        return known is not None and known.device

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
        if not hello.node or hello.node == node:
            raise ProtocolError("identity", f"`{hello.node}` cannot be the name of a peer")
        for old in [c for c, n in self._conns.items() if n == hello.node and c != event.conn]:
            del self._conns[old]
        self._conns[event.conn] = hello.node
        return self.heard(self.link(hello.node), hello, event.conn, now)

    def heard(self, link: Link, message: Message, conn: Conn, now: int) -> list[Said]:
        """Handle a message of a peer that is not Data."""
        self._dirty[link.peer] = link
        return link.heard(message, conn, now)

    def receive(self, link: Link, number: int, size: int, now: int) -> tuple[bool, list[Said]]:
        """Take a frame. Returns whether it is new and in order."""
        self._dirty[link.peer] = link
        return link.receive(number, size, now)

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
        return commands

    def forget(self, query: str) -> list[Header]:
        """A query has ended. Returns the headers of its unsent batches that no other node can have."""
        self._dirty |= self.links
        return [header for link in self.links.values() for header in link.forget(query)]

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
            must(name in self.links, "whoever said hello has a link", conn, name)
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
