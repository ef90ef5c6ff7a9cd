"""Who is there: nodes as they last said of themselves, their keys, and how long they have been silent.

Law: a silent node is away, not gone; only a goodbye or an operator removes it. A node is who its key says it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from rove.control.members.ended import Ended
from rove.control.topology.changes import AddLink, AddNode, Change, RemoveLink, RemoveNode
from rove.control.topology.nodes import Link, Node
from rove.control.topology.topology import Topology
from rove.model.errors import TopologyError
from rove.model.events import Conn
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import Held, Kind, Peer, Report, SourceHere, Tally

TELL_AGAIN_US = 900_000
AWAY_US = 5_000_000  # without a report for this long a node is away
RATE_SHARE = 0.3  # of the newest report in what a node is said to take in


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a node."""

    node: NodeId
    kind: Kind
    slots: int
    memory_bytes: int
    address: str = ""
    links: tuple[tuple[NodeId, int, int], ...] = ()  # parent, latency, bytes a second
    sources: tuple[SourceHere, ...] = ()
    key: str = ""
    durable: bool = False
    trusts: bool = False
    revoked: bool = False
    incarnation: int = 0  # of a node without a disk: what it names begins anew with it


@dataclass(slots=True)
class Member:
    """A node now. `conn` is None until it has been heard since the coordinator started."""

    record: NodeRecord
    conn: Conn | None = None
    incarnation: int = 0
    heard_us: int = 0
    running: dict[QueryId, Version] = field(default_factory=dict)
    unknown: tuple[QueryId, ...] = ()
    knows: str = ""
    tallies: tuple[Tally, ...] = ()
    held: tuple[Held, ...] = ()
    taken_bytes: int = 0
    bytes_per_s: float = 0.0  # what it takes into its store
    shrunk: tuple[int, int] = (0, 0)
    disk_bytes: int = 0  # it may keep, behind those in memory
    refused: dict[str, int] = field(default_factory=dict)
    troubles: dict[QueryId, str] = field(default_factory=dict)
    told: dict[QueryId, tuple[Version, int]] = field(default_factory=dict)  # what it was last told to run, and when

    def tell(self, query: QueryId, version: Version, now: int) -> bool:
        """Whether it is time to tell it: once, and again if it does not seem to have heard."""
        last = self.told.get(query)
        if last is not None and last[0] == version and now - last[1] < TELL_AGAIN_US:
            return False
        self.told[query] = (version, now)
        return True

    def flows(self, taken_bytes: int, now: int) -> None:
        """Learn how much it takes in, the last seconds counting most."""
        if now > self.heard_us:
            rate = (taken_bytes - self.taken_bytes) * 1_000_000 / (now - self.heard_us)
            self.bytes_per_s += RATE_SHARE * (rate - self.bytes_per_s)

    def is_another(self, report: Report, now: int) -> bool:
        """Whether a report is of a second process under this name. Of two the one that was started later is believed,
        while it speaks; a node whose clock went back is, too, once the other one is silent."""
        return report.incarnation < self.incarnation and now - self.heard_us <= AWAY_US

    def silent_us(self, now: int) -> int:
        return now - self.heard_us if self.conn is not None else 0

    def oldest_us(self, now: int) -> int:
        """How long the oldest batch waits that it kept when it was last heard; 0 if there was none."""
        return max((held.age_us for held in self.held), default=-self.silent_us(now)) + self.silent_us(now)

    def held_bytes(self) -> int:
        """What it kept when it was last heard."""
        return sum(held.bytes for held in self.held)

    def lasts_us(self, now: int) -> int | None:
        """How long until its store is full, if nothing leaves it; None if nothing comes in."""
        if self.bytes_per_s < 1:
            return None
        room = self.record.memory_bytes + self.disk_bytes - self.held_bytes()
        return max(0, int(room * 1_000_000 / (self.bytes_per_s * (self.packs_to() or 1))) - self.silent_us(now))

    def packs_to(self) -> float | None:
        """The share of their size that rows have when they are packed, as measured; None if none were yet."""
        before, after = self.shrunk
        return after / before if before else None

    def state(self, now: int) -> str:
        if self.record.revoked:
            return "revoked"
        if self.conn is None:
            return "expected"
        return "up" if now - self.heard_us <= AWAY_US else "away"


class Membership:
    """Nodes by name, with the topology they make."""

    def __init__(self) -> None:
        self.members: dict[NodeId, Member] = {}
        self.topology = Topology()
        self.ended = Ended()
        self.starts: dict[NodeId, int] = {}  # the incarnations of nodes that forget
        self._claims: dict[NodeId, dict[NodeId, Link]] = {}  # links said to lead to a node, by who said so

    def restore(self, records: list[NodeRecord]) -> None:
        """Nodes as they were kept; none has been heard yet."""
        self.members = {r.node: Member(r) for r in records}
        self.starts = {r.node: r.incarnation for r in records}
        live = [r for r in records if not r.revoked]
        self.topology = Topology([_node(r) for r in live])
        for link in (link for r in live for link in _links(r)):
            self._claims.setdefault(link.b, {})[link.a] = link
            if self.topology.has(link.b) and not self.topology.linked(link.a, link.b):
                self.topology.add_link(link)

    def heard(self, report: Report, conn: Conn, now: int) -> NodeRecord | None:
        """Take a report; the node's record if it changed."""
        member = self.members.get(report.node)
        before = member.record if member is not None else None
        if before is not None and before.key and before.kind != report.kind:
            raise TopologyError(f"`{report.node}` was invited as a {before.kind} and says it is a {report.kind}")
        links = before.links if before is not None else ()
        known = {parent: (parent, latency, rate) for parent, latency, rate in links}
        if report.parents:
            links = tuple(known.get(p, (p, _LATENCY_US, _BYTES_PER_S)) for p in report.parents)
        record = NodeRecord(
            node=report.node,
            kind=report.kind,
            slots=report.slots,
            memory_bytes=report.memory_bytes,
            address=report.address,
            links=links,
            sources=report.sources,
            key=before.key if before is not None else "",
            durable=report.durable,
            trusts=report.trusts,
            incarnation=0 if report.durable else report.incarnation,
        )
        self.starts[report.node] = record.incarnation
        if member is None:
            member = self.members[report.node] = Member(record)
        here = {source.origin for source in report.sources}
        gone = [s.origin for s in (() if before is None else before.sources) if s.origin not in here]
        if member.incarnation == report.incarnation:
            member.flows(report.taken_bytes, now)
            if gone:
                self.ended.ended(report.node, report.incarnation, gone)
        else:
            member.told = {}
            if member.incarnation or gone:
                # Of one that was not heard since we started only its successor is known.
                ended = member.incarnation or -report.incarnation
                sources = {s.origin for s in (() if before is None else before.sources)}
                again = member.running if report.durable else ()
                self.ended.over(report.node, ended, member.tallies, gone, again, sources)
            self.ended.heard(report.node, report.incarnation)
        member.conn, member.heard_us, member.incarnation = conn, now, report.incarnation
        member.running, member.unknown, member.knows = report.running, report.unknown, report.knows
        member.tallies, member.refused, member.troubles = report.tallies, report.refused, report.troubles
        member.held, member.taken_bytes, member.shrunk = report.held, report.taken_bytes, report.shrunk
        member.disk_bytes = report.disk_bytes
        if record == before and self.topology.has(record.node):
            return None
        self._settle(record)
        return record

    def marked(self, report: Report) -> bool:
        """Take what a node says of its links to its parents; whether that is news. O(parents)."""
        linked = [p for p in report.parents if self.topology.linked(report.node, p)]
        news = [p for p in linked if self.topology.mark(report.node, p, works=p in report.reaches)]
        return bool(news)

    def enlist(self, node: NodeId, kind: Kind, key: str) -> NodeRecord:
        """A node's name now belongs to whoever holds this key."""
        member = self.members.get(node)
        if member is None:
            record = NodeRecord(node=node, kind=kind, slots=0, memory_bytes=0, key=key)
            self.members[node] = Member(record)
        else:
            record = replace(member.record, key=key, revoked=False)
            member.record = record
        return record

    def remove(self, node: NodeId) -> None:
        """A node is gone for good, with its links and its sources."""
        gone = self.members.pop(node, None)
        self.starts.pop(node, None)
        self._over(gone)
        for link in [] if gone is None else _links(gone.record):
            self._claims.get(link.b, {}).pop(node, None)
        if self.topology.has(node):
            self.topology.remove_node(node)

    def _over(self, member: Member | None) -> None:
        if member is not None:
            gone = [source.origin for source in member.record.sources]
            self.ended.over(member.record.node, member.incarnation, member.tallies, gone)

    def revoke(self, node: NodeId) -> NodeRecord:
        """Nobody is this node any more, until it is invited again."""
        record = replace(self.members[node].record, key="", revoked=True, sources=())
        self._over(self.members[node])
        self.members[node] = Member(record)
        if self.topology.has(node):
            self.topology.remove_node(node)
        return record

    def plan(self, record: NodeRecord) -> NodeRecord:
        """A node that is expected, from a file; its record with what was known of it before."""
        member = self.members.get(record.node)
        if member is None:
            self.members[record.node] = Member(record)
        else:
            member.record = record = replace(
                member.record, links=tuple({k[0]: k for k in (*member.record.links, *record.links)}.values())
            )
        self._settle(record)
        return record

    def tallies(self) -> Iterator[Tally]:
        """What all nodes have counted, those that are no more among them."""
        yield from (tally for member in self.members.values() for tally in member.tallies)
        yield from self.ended.tallies()

    def unheard(self, now: int) -> set[str]:
        """Sources of nodes that are not heard now. O(sources)."""
        away = (member for member in self.members.values() if member.state(now) != "up")
        return {source.origin for member in away for source in member.record.sources}

    def peers_of(self, node: NodeId) -> tuple[Peer, ...]:
        """Whom a node may talk to: those it has a link with."""
        if not self.topology.has(node):
            return ()
        found = [self.members[n].record for n in self.topology.neighbours(node) if n in self.members]
        return tuple(Peer(node=r.node, address=r.address, key=r.key) for r in found if not r.revoked)

    def gateways(self) -> list[NodeId]:
        found = (m.record for m in self.members.values())
        return sorted(r.node for r in found if r.kind == "gateway" and not r.revoked)

    def _settle(self, record: NodeRecord) -> None:
        """Bring the topology to what a node says, and what others say of their links to it. O(links of the node)."""
        for link in _links(self.members[record.node].record):
            self._claims.get(link.b, {}).pop(record.node, None)
        self.members[record.node].record = record
        topology, node = self.topology, _node(record)
        changes: list[Change] = []
        wanted = {link.b: link for link in _links(record)}
        for link in wanted.values():
            self._claims.setdefault(link.b, {})[link.a] = link
        if not topology.has(node.id):
            wanted |= self._claims.get(node.id, {})
            changes.append(AddNode(node))
            have: dict[NodeId, Link] = {}
        else:
            have = {n: topology.link(node.id, n) for n in topology.neighbours(node.id)}
            wanted |= {n: k for n, k in have.items() if k.b == node.id}
            if topology.node(node.id) != node:
                changes += [RemoveNode(node.id), AddNode(node)]
                have = {}
        changes += [RemoveLink(node.id, n) for n in have if n not in wanted]
        changes += [AddLink(k) for n, k in wanted.items() if n not in have and topology.has(n)]
        topology.change(changes)


_LATENCY_US = Link(NodeId("a"), NodeId("b")).latency_us
_BYTES_PER_S = Link(NodeId("a"), NodeId("b")).bytes_per_s


def _node(record: NodeRecord) -> Node:
    return Node(record.node, record.kind, record.slots, record.memory_bytes)


def _links(record: NodeRecord) -> list[Link]:
    return [Link(record.node, parent, latency, rate) for parent, latency, rate in record.links]


def records_of(topology: Topology) -> list[NodeRecord]:
    """The nodes of a topology as they would be kept. O(nodes + links)."""
    links: dict[NodeId, list[tuple[NodeId, int, int]]] = {}
    for link in topology.links():
        links.setdefault(link.a, []).append((link.b, link.latency_us, link.bytes_per_s))
    return [
        NodeRecord(
            node=node.id,
            kind=node.kind,
            slots=node.slots,
            memory_bytes=node.memory_bytes,
            links=tuple(links.get(node.id, ())),
        )
        for node in topology.nodes()
    ]
