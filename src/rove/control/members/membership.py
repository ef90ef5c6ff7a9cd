"""The nodes: what each last reported, its key, and how long it has been silent.

Law: a silent node is away, not gone. Only a goodbye or a user's command removes it. A node's key proves its identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from rove.control.members.accounts import made_since
from rove.control.members.ended import Ended
from rove.control.members.heard import Heard
from rove.control.members.missing.missing import Missing
from rove.control.members.streams import Streams
from rove.control.members.troubled import Troubled
from rove.control.order import Numbers
from rove.control.topology.changes import AddLink, AddNode, Change, RemoveLink, RemoveNode
from rove.control.topology.nodes import Link, Node
from rove.control.topology.topology import Topology
from rove.model.errors import BrokenInvariant, TopologyError
from rove.model.events import Conn
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import Facts, Held, Kind, Peer, Report, SourceHere, Tally, digest_of

AWAY_US = 5_000_000  # without a report for this long a node is away
NO_REPORT = -2  # no report follows the one with this number
RATE_SHARE = 0.3  # the weight of the newest report in the rate at which a node takes rows in


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "incarnation"}):
    """The record of a node in the catalog, where `start` has the name `incarnation`."""

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
    start: int = 0  # of a node without a disk, whose numbers begin again with each start
    draining: bool = False  # everything leaves the node
    barred: tuple[NodeId, ...] = ()  # parents that it may not be linked with, although it names them (`asks/nodes`)


@dataclass(slots=True)
class Member:
    """A node as it is now. `conn` is None until its first report since the coordinator started."""

    record: NodeRecord
    conn: Conn | None = None
    start: int = 0
    heard_us: int = 0
    number: int = 0  # the number of the last report that was taken
    running: dict[QueryId, Version] = field(default_factory=dict)
    parents: tuple[NodeId, ...] = ()
    reaches: tuple[NodeId, ...] | None = None  # the parents that it reaches; None if it has not reported them
    unknown: dict[QueryId, None] = field(default_factory=dict)  # queries of which it has batches and no part
    knows: str = ""
    orders: Numbers = field(default_factory=Numbers)
    learned: tuple[int, int] = (0, 0)  # how much it knows of whose batches its neighbours may send
    tallies: dict[tuple[QueryId, Origin], Tally] = field(default_factory=dict)
    held: tuple[Held, ...] = ()
    taken_bytes: int = 0
    bytes_per_s: float = 0.0  # the rate at which its store takes batches in
    rows_per_s: dict[str, float] = field(default_factory=dict)  # the rate at which its sources make rows, by stream
    shrunk: tuple[int, int] = (0, 0)
    disk_bytes: int = 0  # its room on disk, beside its memory
    refused: dict[str, int] = field(default_factory=dict)
    trouble: str = ""  # what is wrong with its report

    def flows(self, report: Report, now: int) -> None:
        """Update the rates at which the node takes batches in and its sources make rows. The last seconds count
        most."""
        if now <= self.heard_us:
            return
        per_s = 1_000_000 / (now - self.heard_us)
        self.bytes_per_s += RATE_SHARE * ((report.taken_bytes - self.taken_bytes) * per_s - self.bytes_per_s)
        for stream, rows in made_since(report, self.tallies, self.rows_per_s).items():
            before = self.rows_per_s.get(stream, rows * per_s)
            self.rows_per_s[stream] = before + RATE_SHARE * (rows * per_s - before)

    def is_another(self, report: Report, now: int) -> bool:
        """Whether a report is of a second process with the same name. Of two, the one that was started later is
        accepted while it reports. A node whose clock went back is accepted once the other one is silent."""
        return report.start < self.start and now - self.heard_us <= AWAY_US

    def silent_us(self, now: int) -> int:
        return now - self.heard_us if self.conn is not None else 0

    def oldest_us(self, now: int) -> int:
        """The age of the oldest batch in its last report; 0 if there was none."""
        return max((held.age_us for held in self.held), default=-self.silent_us(now)) + self.silent_us(now)

    def held_bytes(self) -> int:
        """The bytes that it kept in its last report."""
        return sum(held.bytes for held in self.held)

    def lasts_us(self, now: int) -> int | None:
        """How long until its store is full if nothing leaves it; None if nothing comes in."""
        if self.bytes_per_s < 1:
            return None
        room = self.record.memory_bytes + self.disk_bytes - self.held_bytes()
        return max(0, int(room * 1_000_000 / (self.bytes_per_s * (self.packs_to() or 1))) - self.silent_us(now))

    def packs_to(self) -> float | None:
        """The measured size of packed rows as a share of their unpacked size; None if none were packed yet."""
        before, after = self.shrunk
        return after / before if before else None

    def state(self, now: int) -> str:
        if self.record.revoked:
            return "revoked"
        if self.conn is None:
            return "expected"
        return "up" if now - self.heard_us <= AWAY_US else "away"


class Membership:
    """The nodes by name, and their topology."""

    def __init__(self) -> None:
        self.members: dict[NodeId, Member] = {}
        self.topology = Topology()
        self.ended = Ended()
        self.missing = Missing(self.ended)
        self.troubled = Troubled()
        self.starts: dict[NodeId, int] = {}  # the starts of nodes without a disk
        self._claims: dict[NodeId, dict[NodeId, Link]] = {}  # links to a node, by the node that reported them
        self.streams = Streams()
        self._gateways: dict[NodeId, None] = {}
        self._quiet: dict[NodeId, None] = {}  # nodes by the time of their last report, the oldest first
        self._peers: dict[NodeId, tuple[tuple[Peer, ...], str]] = {}  # the peers of a node, with a digest

    def restore(self, records: list[NodeRecord]) -> None:
        """Restore nodes from their records. None has reported yet. O(nodes + links)."""
        self.members = {r.node: Member(r) for r in records}
        self.starts.update((r.node, r.start) for r in records)
        live = [r for r in records if not r.revoked]
        self.topology = Topology([_node(r) for r in live])
        links = [link for r in live for link in _links(r)]
        for link in links:
            self._claims.setdefault(link.b, {})[link.a] = link
        pairs = {frozenset((k.a, k.b)): k for k in reversed(links) if self.topology.has(k.b)}
        self.topology.change([AddLink(link) for link in pairs.values()])
        for record in live:
            self.topology.drain(record.node, record.draining)
        for record in records:
            self._quiet[record.node] = None
            self._index(record, None)

    def heard(self, report: Report, conn: Conn, now: int) -> Heard | None:
        """Take a report. Returns what it changed; None if an earlier report is missing, so that a whole one is needed.
        O(what is new in it), plus O(its links) if the node itself has changed."""
        member = self.members.get(report.node)
        if not report.whole and (
            member is None or member.conn is None or (member.start, member.number) != (report.start, report.number - 1)
        ):
            return None
        before = member.record if member is not None else None
        record = before if report.facts is None else self._record(report, report.facts, before)
        if record is None:
            return None
        self.starts[report.node] = record.start
        if member is None:
            member = self.members[report.node] = Member(record)
        self._revive(report.node, member)
        restarted = member.start != report.start
        self._lives(member, report, record, before, restarted, now)
        if restarted:
            self.troubled.restarted(report.node)
        lacking = [] if report.troubles is None else self.troubled.heard(report.node, report.troubles, now)
        ran = self._take(member, report, conn, now)
        changed = record != before or not self.topology.has(record.node)
        if changed:
            self._settle(record)
        near = self.neighbours(report.node) if changed else ()
        relinked = tuple(node for node in (report.node, *near) if self._reached(node))
        return Heard(
            record=record if changed else None,
            before=before,
            restarted=restarted,
            relinked=relinked,
            ran=ran,
            lacking=lacking,
        )

    def _record(self, report: Report, facts: Facts, before: NodeRecord | None) -> NodeRecord:
        if before is not None and before.key and before.kind != facts.kind:
            raise TopologyError(f"`{report.node}` was invited as a {before.kind} and says it is a {facts.kind}")
        links, barred = ((), ()) if before is None else (before.links, before.barred)
        known = {parent: (parent, latency, rate) for parent, latency, rate in links}
        if facts.parents:
            links = tuple(known.get(p, (p, _LATENCY_US, _BYTES_PER_S)) for p in facts.parents if p not in barred)
        return NodeRecord(
            node=report.node,
            kind=facts.kind,
            slots=facts.slots,
            memory_bytes=facts.memory_bytes,
            address=facts.address,
            links=links,
            sources=facts.sources,
            key=before.key if before is not None else "",
            durable=facts.durable,
            trusts=facts.trusts,
            start=0 if facts.durable else report.start,
            draining=before is not None and before.draining,
            barred=barred,
        )

    def _lives(
        self,
        member: Member,
        report: Report,
        record: NodeRecord,
        before: NodeRecord | None,
        restarted: bool,
        now: int,
    ) -> None:
        """Follow the starts of a node: the counts of an earlier start are kept, and its origins have ended."""
        here = {source.origin for source in record.sources}
        gone = [s.origin for s in (() if before is None else before.sources) if s.origin not in here]
        if not restarted:
            member.flows(report, now)
            if gone:
                self.ended.ended(report.node, report.start, gone)
            return
        tallies = member.tallies.values() if member.start else self.ended.unheard(report.node, report.start)
        if member.start or gone or tallies:
            # If the earlier start has not reported since we started, only its successor is known.
            ended = member.start or -report.start
            sources = {s.origin for s in (() if before is None else before.sources)}
            again = member.running if record.durable else ()
            goes_on = {source.origin for source in record.sources if source.goes_on}
            counts = {(tally.query, tally.origin) for tally in report.tallies if tally.origin in goes_on}
            self.ended.over(report.node, ended, tallies, gone, again, sources, counts)
        self.ended.heard(report.node, report.start)

    def _take(self, member: Member, report: Report, conn: Conn, now: int) -> dict[QueryId, Version | None]:
        """Take a node's report on its work. Returns the queries that it runs in another version. O(report)."""
        runs = member.running
        ran: dict[QueryId, Version | None] = {}
        if report.whole:
            ran |= {query: None for query in runs if query not in report.running}
            member.running, member.tallies = dict(report.running), {}
        ran |= {query: None for query in report.ended if query in runs}
        ran |= {query: version for query, version in report.running.items() if runs.get(query) != version}
        if not report.whole:
            for query, version in ran.items():
                if version is None:
                    del runs[query]
                else:
                    runs[query] = version
        for tally in report.tallies:
            if tally == Tally(query=tally.query, origin=tally.origin):
                member.tallies.pop((tally.query, tally.origin), None)
            else:
                member.tallies[tally.query, tally.origin] = tally
        self.missing.take(report.node, report.tallies, report.whole)
        self.ended.goes_on(report.node, report.start, report.tallies, report.whole)
        member.conn, member.heard_us, member.start, member.number = conn, now, report.start, report.number
        if report.unknown is not None:
            member.unknown = dict.fromkeys(report.unknown)
        for name in ("knows", "refused", "held", "reaches", "learned"):
            if (said := getattr(report, name)) is not None:
                setattr(member, name, said)
        member.taken_bytes, member.shrunk, member.orders.obeyed = report.taken_bytes, report.shrunk, report.obeyed
        if report.facts is not None:
            member.disk_bytes, member.parents = report.facts.disk_bytes, report.facts.parents
        self._quiet.pop(report.node, None)
        self._quiet[report.node] = None
        return ran

    def rows_per_s(self, node: NodeId, stream: str) -> float | None:
        """The measured rate at which the sources of a stream on a node make rows; None if it is not known."""
        member = self.members.get(node)
        return None if member is None else member.rows_per_s.get(stream)

    def _reached(self, node: NodeId) -> bool:
        """Mark the links of a node to its parents as it reported. Returns whether one has changed. O(parents)."""
        member = self.members.get(node)
        if member is None or member.reaches is None:
            return False
        linked = [parent for parent in member.parents if self.topology.linked(node, parent)]
        reached = set(member.reaches)
        news = [parent for parent in linked if self.topology.mark(node, parent, works=parent in reached)]
        return bool(news)

    def enlist(self, node: NodeId, kind: Kind, key: str) -> NodeRecord:
        """Give a node's name to the holder of this key."""
        member = self.members.get(node)
        if member is None:
            record = NodeRecord(node=node, kind=kind, slots=0, memory_bytes=0, key=key)
            self.members[node] = Member(record)
            self._quiet[node] = None
        else:
            record = replace(member.record, kind=kind, key=key, revoked=False)
            if self.topology.has(node):
                self._settle(record)
                return record
            member.record = record
        self._index(record, None)
        return record

    def remove(self, node: NodeId) -> None:
        """Remove a node for good, with its links and its sources."""
        gone = self.members.pop(node, None)
        self.starts.pop(node, None)
        self._quiet.pop(node, None)
        self.troubled.forget(node)
        if gone is not None:
            self._index(None, gone.record)
        self._over(gone)
        for link in [] if gone is None else _links(gone.record):
            self._claims.get(link.b, {}).pop(node, None)
        if self.topology.has(node):
            self.topology.remove_node(node)

    def count_dead(self, node: NodeId) -> None:
        """Count a silent node as dead: routes avoid it, its batches count as held by no node, and its next report has
        to be a whole one. O(its tallies)."""
        member = self.members[node]
        if self.topology.has(node) and not self.topology.is_dead(node):
            self.topology.count_dead(node, True)
            self.ended.died(node, member.start, member.tallies.values())
            self.missing.forget(node)
            member.tallies, member.held, member.number = {}, (), NO_REPORT

    def _revive(self, node: NodeId, member: Member) -> None:
        """A node reports, or is removed. If it counted as dead, its counts are its own again."""
        if self.topology.has(node):
            self.topology.count_dead(node, False)
        if (record := self.ended.revived(node)) is not None:
            member.start = record.start
            member.tallies = {(tally.query, tally.origin): tally for tally in record.tallies}
            member.running = member.running or dict.fromkeys((t.query for t in record.tallies), Version(0))

    def _over(self, member: Member | None) -> None:
        if member is not None:
            self._revive(member.record.node, member)
            self.missing.forget(member.record.node)
            gone = [source.origin for source in member.record.sources]
            tallies = member.tallies.values() if member.start else self.ended.unheard(member.record.node, 0)
            self.ended.over(member.record.node, member.start, tallies, gone)

    def revoke(self, node: NodeId) -> NodeRecord:
        """Revoke a node's key. The node cannot connect until it is invited again."""
        record = replace(self.members[node].record, key="", revoked=True, sources=())
        self._over(self.members[node])
        self.troubled.forget(node)
        self._index(record, self.members[node].record)
        self.members[node] = Member(record)
        if self.topology.has(node):
            self.topology.remove_node(node)
        return record

    def plan(self, record: NodeRecord) -> NodeRecord:
        """Add an expected node from a file. Returns its record, with what was known before."""
        member = self.members.get(record.node)
        if member is None:
            self.members[record.node] = Member(record)
            self._quiet[record.node] = None
        else:
            links = {k[0]: k for k in (*member.record.links, *record.links)}
            barred = tuple(parent for parent in member.record.barred if parent not in links)
            record = replace(member.record, links=tuple(links.values()), barred=barred)
        self._settle(record)
        return record

    def rewrite(self, record: NodeRecord) -> None:
        """Give a node another record. O(its links)."""
        self._settle(record)

    def tallies(self) -> Iterator[Tally]:
        """The counts of all nodes, including those that are gone."""
        yield from (tally for member in self.members.values() for tally in member.tallies.values())
        yield from self.ended.tallies()

    def sources_of(self, stream: str, columns: str) -> Mapping[Origin, NodeId]:
        """The sources of a stream with these columns, with their nodes."""
        return self.streams.of(stream, columns)

    def silent(self, now: int) -> Iterator[tuple[NodeId, Member]]:
        """The nodes that are away, the longest silence first. O(nodes found)."""
        for node in self._quiet:
            member = self.members[node]
            if now - member.heard_us <= AWAY_US:
                return
            yield node, member

    def peers_of(self, node: NodeId) -> tuple[tuple[Peer, ...], str]:
        """The peers of a node, which are the nodes it has a link with, and a digest of them. O(1) until one changes."""
        if (known := self._peers.get(node)) is not None:
            return known
        records = [self.members[n].record for n in self.neighbours(node) if n in self.members]
        peers = tuple(
            Peer(node=r.node, address=r.address, key=r.key, device=r.kind == "device") for r in records if not r.revoked
        )
        found = self._peers[node] = (peers, digest_of(peers))
        return found

    def neighbours(self, node: NodeId) -> tuple[NodeId, ...]:
        """The nodes that a node has a link with."""
        return self.topology.neighbours(node) if self.topology.has(node) else ()

    def named(self, node: NodeId) -> list[tuple[NodeId, NodeId]]:
        """The pairs of child and parent that a node is in. O(its links)."""
        parents = [parent for parent, _, _ in self.members[node].record.links if parent in self.members]
        children = [child for child in self._claims.get(node, ()) if child in self.members]
        return [*((node, parent) for parent in parents), *((child, node) for child in children)]

    def works(self, a: NodeId, b: NodeId) -> bool:
        """Whether a link works, by the last report of the node that dials."""
        return self.topology.works(a, b)

    def gateways(self) -> list[NodeId]:
        """The gateways that have ever reported, ordered by name."""
        return sorted(filter(self.topology.has, self._gateways))

    def _index(self, new: NodeRecord | None, old: NodeRecord | None) -> None:
        """Update the indexes for a node's new record. O(its sources and links)."""
        self.streams.index(new, old)
        record = new or old
        if record is None:
            return
        if new is not None and new.kind == "gateway" and not new.revoked:
            self._gateways[new.node] = None
        else:
            self._gateways.pop(record.node, None)
        links = {parent for each in (new, old) if each is not None for parent, _, _ in each.links}
        for node in (record.node, *links, *self.neighbours(record.node)):
            self._peers.pop(node, None)

    def validate(self) -> None:
        """Raise if an index contradicts the records. O(nodes + sources + links)."""
        records = [m.record for m in self.members.values() if not m.record.revoked]
        self.streams.validate(records)
        if self._gateways.keys() != {r.node for r in records if r.kind == "gateway"}:
            raise BrokenInvariant("the index of gateways contradicts the reports of nodes")
        heard = [self.members[node].heard_us for node in self._quiet]
        if self._quiet.keys() != self.members.keys() or heard != sorted(heard):
            raise BrokenInvariant("nodes are not in the order of their last reports")
        for node, known_peers in list(self._peers.items()):
            del self._peers[node]
            if self.peers_of(node) != known_peers:
                raise BrokenInvariant(f"the peers of `{node}` are not those it has links with")

    def _settle(self, record: NodeRecord) -> None:
        """Update the topology by a node's record, and by the links that others report to it. O(links of the node)."""
        old = self.members[record.node].record
        for link in _links(old):
            self._claims.get(link.b, {}).pop(record.node, None)
        self._index(record, old)
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
        for near in topology.neighbours(record.node):
            self._peers.pop(near, None)


_LATENCY_US = Link(NodeId("a"), NodeId("b")).latency_us
_BYTES_PER_S = Link(NodeId("a"), NodeId("b")).bytes_per_s


def _node(record: NodeRecord) -> Node:
    return Node(record.node, record.kind, record.slots, record.memory_bytes)


def _links(record: NodeRecord) -> list[Link]:
    return [Link(record.node, parent, latency, rate) for parent, latency, rate in record.links]
