"""The coordinator: who is there, which queries there are, who should run what.

Law: it compares what nodes say they run with what they should run, and sends the difference; so any message may be
lost, it may die and come back, and the same is said again. What it must not forget it asks to be kept before it
answers. Nothing that flows waits for it.

A node is told to run its part of a query once the node above runs its own, so rows seldom meet a node that does not
know their query yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from rove.control.asks.listings import node_lines, query_lines
from rove.control.asks.requests import (
    AccountLine,
    CloudAsk,
    CloudQuery,
    Enlist,
    Import,
    Invite,
    Named,
    NodeLine,
    Progress,
    QueryLine,
    Submit,
    Submitted,
    check_submit,
    from_body,
    to_body,
)
from rove.control.asks.snapshot import Snapshot, accounts, snapshot
from rove.control.deployment.deployments import Deployments
from rove.control.deployment.query import Query, QueryRecord
from rove.control.deployment.rollout import may_leave, runs_above, waiting_for
from rove.control.members.absence import Absence
from rove.control.members.ended import EndedRecord
from rove.control.members.invitations import Invitations, InviteRecord
from rove.control.members.membership import Member, Membership, NodeRecord, records_of
from rove.control.members.spark_side import SparkSide
from rove.control.members.trust import check_trust
from rove.control.placement import STRATEGIES
from rove.control.topology.files import Imported, read
from rove.model.errors import BadName, PlanError, RoveError, TopologyError, nearest
from rove.model.events import COORDINATOR, Allow, Arrived, Conn, Drop, Garbled, Send, Tick
from rove.model.ids import NodeId, QueryId, checked_name
from rove.model.messages import (
    PROTOCOL,
    Answer,
    Ask,
    Goodbye,
    Orders,
    Peer,
    Refused,
    Report,
    Sink,
    check_report,
    digest_of,
)
from rove.model.schema import schema_text
from rove.plan.operators import Source

OPERATOR = NodeId("operator")  # whoever holds this key gives commands


@dataclass(frozen=True, slots=True)
class Keep:
    """Make a record safe before anything that follows is done; None forgets it."""

    kind: str
    name: str
    record: bytes | None


Event: TypeAlias = Arrived | Garbled | Tick
Command: TypeAlias = Send | Keep | Allow | Drop


class Coordinator:
    """One machine for topology, streams, queries and deployments. `wall` is the clock on the wall, for people."""

    def __init__(self, keys: bool = False, operator_key: str = "") -> None:
        self._keys = keys
        self._operator = Peer(node=OPERATOR, key=operator_key)
        self.membership = Membership()
        self.invitations = Invitations()
        self.streams: dict[str, str] = {}
        self.deployments = Deployments(self.membership)
        self.queries = self.deployments.queries
        self.spark = SparkSide()
        self._absence = Absence()
        self.refused: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}  # to asks that changed something, so that a repeated one changes nothing
        self._verbs: dict[str, Callable[[bytes, int], Any]] = {
            "submit": self._submit,
            "stop": self._stop,
            "queries": self._queries,
            "topology": self._topology,
            "status": self._status,
            "streams": self._streams,
            "explain": self._explain,
            "import": self._import,
            "invite": self._invite,
            "revoke": self._revoke,
            "remove": self._remove,
            "cloud": self._cloud,
            "progress": self._progress,
            "recent": self._recent,
        }
        self._commands: list[Command] = []
        self._now = self._wall = 0

    def restore(self, records: Iterable[tuple[str, str, bytes]]) -> list[Command]:
        """Find its world again: everything that was kept."""
        nodes, ended = [], []
        for kind, name, data in records:
            match kind:
                case "node":
                    nodes.append(msgspec.msgpack.decode(data, type=NodeRecord))
                case "stream":
                    self.streams[name] = data.decode()
                case "query":
                    record = msgspec.msgpack.decode(data, type=QueryRecord)
                    self.deployments.add(Query.of(record))
                case "ended":
                    ended.append(msgspec.msgpack.decode(data, type=EndedRecord))
                case "invite":
                    self.invitations.keep(msgspec.msgpack.decode(data, type=InviteRecord))
        self.membership.restore(nodes)
        self.membership.ended.restore(ended)
        return [self._allowed()]

    def handle(self, event: Event, now: int, wall: int = 0) -> list[Command]:
        """Take an event; what to do about it."""
        self._commands, self._now, self._wall = [], now, wall
        match event:
            case Arrived(message=Report() as report):
                self._report(report, event, now)
            case Arrived(message=Ask() as ask):
                self._ask(ask, event, now)
            case Arrived(message=Goodbye(node=node)):
                if self._is(node, event.key):
                    self._forget_node(node)
            case Arrived(message=Refused()):
                self._count("told no")
            case Arrived(conn=conn):
                self._refuse(conn, "unexpected", "the coordinator takes reports and asks, nothing else")
            case Garbled(conn=conn, why=why, text=text):
                self._refuse(conn, why, text)
            case Tick():
                for query, absent in self._absence.changed(self.queries.values(), self.membership, now):
                    query.record = replace(query.record, absent=tuple(absent))
                    self.deployments.mark(query)
                self._settle()
        for name, record in self.membership.ended.news().items():
            self._commands.append(Keep("ended", name, None if record is None else msgspec.msgpack.encode(record)))
        return self._commands

    def snapshot(self, now: int, wall: int) -> Snapshot:
        """All it has been told, for whoever watches from outside."""
        return snapshot(self.queries.values(), self.membership, self.deployments.load, self.spark, now, wall)

    # Nodes

    def _report(self, report: Report, event: Arrived, now: int) -> None:
        if report.protocol != PROTOCOL:
            text = f"the coordinator speaks protocol {PROTOCOL}, not {report.protocol}; bring both to one version"
            self._refuse(event.conn, "protocol", text)
            return
        try:
            check_report(report)
        except BadName as error:
            self._refuse(event.conn, "malformed", str(error))
            return
        if not self._is(report.node, event.key):
            self._refuse(event.conn, "identity", f"`{report.node}` is not known by this key; join with a token first")
            return
        known = self.membership.members.get(report.node)
        if known is not None and known.is_another(report, now):
            text = f"a process that was started later runs as `{report.node}`; stop one of them, or name it otherwise"
            self._refuse(event.conn, "identity", text)
            return
        trouble = self._check_sources(report)
        before, record = ({}, None) if known is None else (known.running, known.record)
        try:
            changed = self.membership.heard(report, event.conn, now)
        except TopologyError as error:
            self._refuse(event.conn, "malformed", str(error))
            return
        if self.membership.marked(report):
            self.deployments.touch_routes(report)
        if changed is not None:
            self._keep("node", changed.node, changed)
            if record is None or replace(changed, incarnation=record.incarnation) != record:
                sources = (*changed.sources, *(() if record is None else record.sources))
                self.deployments.touch({s.stream for s in sources}, relay=changed.kind != "device")
                self._commands.append(self._allowed())
            self.deployments.touch_node(changed.node)
        self._settle()
        self._order(self.membership.members[report.node], trouble)
        for id in [q for q, version in report.running.items() if before.get(q) != version]:
            if id in self.queries:
                for node in waiting_for(self.queries[id], self.membership):  # those below may begin now
                    self._order(self.membership.members.get(node))

    def _check_sources(self, report: Report) -> str:
        """A source that contradicts its stream is said so; the others are taken."""
        troubles = []
        for source in report.sources:
            known = self.streams.get(source.stream)
            if known is None:
                self.streams[source.stream] = source.columns
                self._commands.append(Keep("stream", source.stream, source.columns.encode()))
            elif known != source.columns:
                troubles.append(
                    f"stream `{source.stream}` has columns {known}; `{source.origin}` brings {source.columns}"
                )
        return "; ".join(troubles)

    def _order(self, member: Member | None, trouble: str = "") -> None:
        """Tell a node the difference between what it runs and what it should."""
        if member is None or member.conn is None:
            return
        name = member.record.node
        deploy, stop, leave = [], [], []
        for query in self.queries.values():
            fragment = query.record.fragments.get(name)
            if query.record.stopped or fragment is None:
                if query.id in member.running or query.id in member.unknown:
                    if query.record.stopped or query.placement is None:
                        stop.append(query.id)
                    elif may_leave(query, self.membership, name):
                        leave.append(query.id)
            elif (
                member.running.get(query.id, -1) < fragment.version
                and runs_above(query, self.membership, fragment.next)
                and member.tell(query.id, fragment.version, self._now)
            ):
                deploy.append(fragment)
        stop += [q for q in (*member.running, *member.unknown) if q not in self.queries]
        peers = self.membership.peers_of(name)
        news = None if digest_of(peers) == member.knows else peers
        if deploy or stop or leave or news is not None or trouble:
            orders = Orders(PROTOCOL, tuple(deploy), tuple(stop), news, trouble, tuple(leave))
            self._commands.append(Send(member.conn, orders))

    def _forget_node(self, node: NodeId) -> None:
        member = self.membership.members.get(node)
        self.deployments.touch({s.stream for s in member.record.sources} if member is not None else set())
        self.membership.remove(node)
        self._commands.append(Keep("node", node, None))
        self._commands.append(self._allowed())

    def _is(self, node: NodeId, key: str) -> bool:
        if node in (COORDINATOR, OPERATOR):
            return False
        if not self._keys:
            return bool(node)
        member = self.membership.members.get(node)
        return member is not None and not member.record.revoked and member.record.key == key != ""

    def _allowed(self) -> Allow:
        """Everyone who may connect: nodes, invited nodes, and whoever gives commands."""
        nodes = [Peer(node=m.record.node, key=m.record.key) for m in self.membership.members.values() if m.record.key]
        return Allow((*nodes, *self.invitations.peers(), self._operator))

    # Queries

    def _settle(self) -> None:
        """Place what waits for a place, and tell those whom it concerns."""
        for query in self.deployments.settle():
            self._keep("query", query.id, query.record)
            for node in query.record.fragments:
                self._order(self.membership.members.get(node))

    # Asks

    def _ask(self, ask: Ask, event: Arrived, now: int) -> None:
        if ask.verb == "enlist":
            self._enlist(ask, event)
            return
        if self._keys and event.key != self._operator.key:
            self._refuse(event.conn, "identity", "this key may not give commands")
            return
        answer = self._answers.get(ask.id)
        if answer is None:
            answer = self._answer(ask, now)
            if ask.verb in ("submit", "stop", "import", "invite", "revoke", "remove"):
                self._answers[ask.id] = answer
                if len(self._answers) > 1_000:
                    del self._answers[next(iter(self._answers))]
        self._commands.append(Send(event.conn, answer))

    def _answer(self, ask: Ask, now: int) -> Answer:
        verb = self._verbs.get(ask.verb)
        if verb is None:
            return Answer(ask.id, b"", f"no verb `{ask.verb}`; {nearest(ask.verb, list(self._verbs))}")
        try:
            return Answer(ask.id, to_body(verb(ask.body, now)))
        except RoveError as error:
            return Answer(ask.id, b"", str(error))
        except msgspec.MsgspecError as error:
            return Answer(ask.id, b"", f"`{ask.verb}` cannot be read: {error}")

    def _submit(self, body: bytes, now: int) -> Submitted:
        asked = from_body(body, Submit)
        check_submit(asked)
        if asked.strategy not in STRATEGIES:
            raise PlanError(f"no placement strategy `{asked.strategy}`; {nearest(asked.strategy, list(STRATEGIES))}")
        known, record = self.queries.get(QueryId(asked.name)), QueryRecord.of(asked)
        if known is not None and not asked.explain:
            if known.record.stopped:
                raise PlanError(f"a query `{asked.name}` was stopped, and its rows are kept; choose another name")
            if others := known.record.asked_otherwise(record):
                raise PlanError(
                    f"there is a query `{asked.name}` already, with another {' and '.join(others)}; choose another name"
                )
            return Submitted(query=asked.name, version=known.record.version, text=self.deployments.explained(known))
        self._check_sink(asked.sink)
        query = Query.of(record)
        self._declare(query, keep=not asked.explain)
        if asked.explain:
            return Submitted(query=asked.name, version=0, text=self.deployments.explained(query))
        self.deployments.place(query)  # one that cannot be placed is refused, not kept
        check_trust(query, self.membership, self.spark)
        self.deployments.add(query)
        self._keep("query", query.id, query.record)
        for node in query.record.fragments:
            self._order(self.membership.members.get(node))
        return Submitted(query=asked.name, version=query.record.version, text=self.deployments.explained(query))

    def _check_sink(self, sink: Sink) -> None:
        """A sink that writes needs a node with a disk."""
        member = self.membership.members.get(sink.node) if sink.node is not None else None
        if member is not None and member.conn is not None and sink.kind != "discard" and not member.record.durable:
            raise PlanError(f"`{sink.node}` has no disk to end on; start it with --data DIR, or choose another node")

    def _declare(self, query: Query, keep: bool) -> None:
        """The streams a query reads have the columns it says, or it is refused."""
        for stream, stage in query.streams.items():
            operator = query.stages.operators[stage]
            columns = schema_text(operator.schema) if isinstance(operator, Source) else ""
            known = self.streams.get(checked_name(stream, "a stream"))
            if known is None and keep:
                self.streams[stream] = columns
                self._commands.append(Keep("stream", stream, columns.encode()))
            elif known not in (None, columns):
                raise PlanError(f"stream `{stream}` has columns {known}; the query reads {columns}")

    def _stop(self, body: bytes, now: int) -> Named:
        query = self.deployments.query(from_body(body, Named).name)
        if not query.record.stopped:
            nodes = self.deployments.stop(query)
            self._keep("query", query.id, query.record)
            for node in nodes:
                self._order(self.membership.members.get(node))
        return Named(name=query.id)

    # Listings

    def _queries(self, body: bytes, now: int) -> list[QueryLine]:
        return query_lines(self.queries.values(), self.membership, self.spark)

    def _topology(self, body: bytes, now: int) -> list[NodeLine]:
        return node_lines(self.membership, self.deployments.load, now)

    def _status(self, body: bytes, now: int) -> list[AccountLine]:
        name = from_body(body, Named).name
        if name:
            self.deployments.query(name)
        tallies = (t for t in self.membership.tallies() if not name or t.query == name)
        return accounts(tallies, list(self.queries.values()), self.membership, self._now, self._wall)

    def _streams(self, body: bytes, now: int) -> dict[str, str]:
        return self.streams

    def _explain(self, body: bytes, now: int) -> Named:
        return Named(name=self.deployments.explained(self.deployments.query(from_body(body, Named).name)))

    def _cloud(self, body: bytes, now: int) -> list[CloudQuery]:
        """What Spark should run."""
        self.spark.trusts = from_body(body, CloudAsk).trusts
        placed = [q for q in self.queries.values() if q.placement is not None and not q.record.stopped]
        return [self.spark.part_of(q, *self.deployments.parts(q)) for q in placed if q.record.cloud is not None]

    def _progress(self, body: bytes, now: int) -> Named:
        """How Spark gets on."""
        said = from_body(body, Progress)
        self.deployments.query(said.query)
        self.spark.heard(said)
        return Named(name=said.query)

    def _recent(self, body: bytes, now: int) -> list[Progress]:
        return self.spark.recent(self.deployments.query(from_body(body, Named).name).id)

    # The topology, by hand

    def _import(self, body: bytes, now: int) -> Named:
        asked = from_body(body, Import)
        found: Imported = read(asked.text, asked.updates or None)
        topology = found.topology()
        applied = 0
        for at_ms, batch in found.batches:
            if asked.through_ms is not None and at_ms <= asked.through_ms:
                topology.change(batch)
                applied += 1
        for record in records_of(topology):
            self._keep("node", record.node, self.membership.plan(record))
        size = f"{len(topology.nodes()):,} nodes, {len(topology.links()):,} links"
        return Named(name=f"{size}, {applied} of {len(found.batches)} batches of changes")

    def _invite(self, body: bytes, now: int) -> Named:
        record = self.invitations.invite(from_body(body, Invite))
        self._keep("invite", record.key, record)
        self._commands.append(self._allowed())
        return Named(name=record.node)

    def _revoke(self, body: bytes, now: int) -> Named:
        node = NodeId(from_body(body, Named).name)
        self._member(node)
        self.deployments.touch({s.stream for s in self.membership.members[node].record.sources})
        self._keep("node", node, self.membership.revoke(node))
        self._commands.append(self._allowed())
        for member in self.membership.members.values():
            self._order(member)
        return Named(name=node)

    def _remove(self, body: bytes, now: int) -> Named:
        node = NodeId(from_body(body, Named).name)
        self._member(node)
        self._forget_node(node)
        return Named(name=node)

    def _member(self, node: NodeId) -> Member:
        member = self.membership.members.get(node)
        if member is None:
            raise TopologyError(f"no node `{node}`; {nearest(node, list(self.membership.members))}")
        return member

    def _enlist(self, ask: Ask, event: Arrived) -> None:
        if (known := self._answers.get(ask.id)) is not None:
            self._commands.append(Send(event.conn, known))
            return
        try:
            asked = from_body(ask.body, Enlist)
            invite = self.invitations.accept(asked, event.key, self._wall)
        except (RoveError, msgspec.MsgspecError) as error:
            self._count("identity")
            self._commands.append(Send(event.conn, Answer(ask.id, b"", str(error))))
            return
        record = self.membership.enlist(invite.node, invite.kind, asked.key)
        self._keep("node", record.node, record)
        self._commands.append(Keep("invite", invite.key, None))
        self._commands.append(self._allowed())
        answer = self._answers[ask.id] = Answer(ask.id, to_body(Named(name=record.node)))
        self._commands.append(Send(event.conn, answer))

    def _keep(self, kind: str, name: str, record: msgspec.Struct) -> None:
        self._commands.append(Keep(kind, name, msgspec.msgpack.encode(record)))

    def _refuse(self, conn: Conn, why: str, text: str) -> None:
        self._count(why)
        self._commands.append(Send(conn, Refused(why, text)))

    def _count(self, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1
