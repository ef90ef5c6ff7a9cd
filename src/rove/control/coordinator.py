"""The coordinator: it knows the nodes and the queries, and tells each node what to run.

Law: it compares what nodes report with what they should run, and sends the difference. So any message may be lost, and
the coordinator may die and restart: the difference is sent again. Records are stored before it answers. Rows never wait
for it. An event costs what it touches: the queries and nodes that it concerns, never all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rove.control.asks.enlist import enlist
from rove.control.asks.requests import HistoryLine
from rove.control.asks.snapshot import Snapshot, snapshot
from rove.control.asks.troubles import Troubles
from rove.control.asks.verbs import VERBS
from rove.control.commands import Command, Event, Keep
from rove.control.deployment.change_set import ChangeSet
from rove.control.deployment.deployments import Deployments
from rove.control.deployment.holistic import Redeploy
from rove.control.deployment.part import PartRecord
from rove.control.deployment.query import Query, QueryEvent, QueryRecord, QueryState
from rove.control.deployment.tables.history import History, place_of
from rove.control.members.absence import Absence
from rove.control.members.below import AboveRecord, Below
from rove.control.members.clouds import CloudRecord, Clouds
from rove.control.members.ended import EndedRecord
from rove.control.members.heard import Heard
from rove.control.members.honest.bounds import check_bounds
from rove.control.members.honest.report import Liars, honest, kind_of
from rove.control.members.honest.sources import compare
from rove.control.members.invitations import Invitations, InviteRecord
from rove.control.members.membership import Member, Membership, NodeRecord
from rove.control.members.missing.judge import Judge
from rove.control.members.spark_side import SparkSide
from rove.control.order import Order
from rove.model.errors import BadName, DiskError, ProtocolError, RoveError, TopologyError, nearest
from rove.model.events import COORDINATOR, Allow, Arrived, Conn, Garbled, Send, Tick
from rove.model.ids import NodeId, QueryId, Version
from rove.model.messages import (
    PROTOCOL,
    Answer,
    Ask,
    Goodbye,
    Orders,
    Peer,
    Refused,
    Report,
    check_report,
)

OPERATOR = NodeId("operator")  # the holder of this key may give commands
ANSWERS_MAX = 1_000  # answers that are kept for repeated requests


class Coordinator:
    """One machine for topology, streams, queries and deployments. `now` never runs backwards; `wall` is the wall clock,
    for people."""

    def __init__(self, keys: bool = False, operator_key: str = "", redeploy: Redeploy = "incremental") -> None:
        self._keys = keys
        self._operator = Peer(node=OPERATOR, key=operator_key)
        self.membership = Membership()
        self.invitations = Invitations()
        self.clouds = Clouds()
        self.streams = self.membership.streams
        self.below = Below()
        self.deployments = Deployments(self.membership, self.below, redeploy)
        self.queries = self.deployments.queries
        self.history = History()
        self.spark = SparkSide()
        self.absence = Absence()
        self.liars = Liars()
        self.refused: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}  # to requests that changed something: repeating one changes nothing
        self._commands: list[Command] = []
        self._orders: dict[NodeId, Order] = {}
        self.now = self.wall = 0

    def restore(self, records: Iterable[tuple[str, str, bytes]]) -> list[Command]:
        """Restore everything from its records. O(records)."""
        nodes, ended, queries, above, changes = [], [], [], [], []
        plans: dict[str, bytes] = {}
        versions: dict[str, Version] = {}
        parts: dict[QueryId, list[PartRecord]] = {}
        for kind, name, data in records:
            match kind:
                case "node":
                    nodes.append(msgspec.msgpack.decode(data, type=NodeRecord))
                case "stream":
                    self.streams.restore(name, data.decode())
                case "plan":
                    plans[name] = data
                case "query":
                    queries.append(msgspec.msgpack.decode(data, type=QueryRecord))
                case "version":
                    versions[name] = msgspec.msgpack.decode(data, type=Version)
                case "part":
                    part = msgspec.msgpack.decode(data, type=PartRecord)
                    parts.setdefault(part.query, []).append(part)
                case "change":
                    changes.append(msgspec.msgpack.decode(data, type=HistoryLine))
                case "ended":
                    ended.append(msgspec.msgpack.decode(data, type=EndedRecord))
                case "above":
                    above.append(msgspec.msgpack.decode(data, type=AboveRecord))
                case "cloud":
                    self.clouds.keep(msgspec.msgpack.decode(data, type=CloudRecord))
                case "invite":
                    self.invitations.keep(msgspec.msgpack.decode(data, type=InviteRecord))
        self.history.restore(changes)
        self.membership.restore(nodes)
        self.membership.ended.restore(ended)
        self.below.restore(above)
        for record in queries:
            if record.plan not in plans:
                raise DiskError(f"the catalog lacks the plan of query `{record.query}`; restore it from a copy")
            query = self.deployments.new(record, plans[record.plan])
            version = versions.get(record.query, Version(0))
            self.deployments.restore(query, parts.get(record.query, ()), version)
        for node in self.membership.members:
            self.name_parents(node)
        self._commands = []
        self._follow_streams()
        return [*self._commands, *self._keep_above(), self.allowed()]

    def handle(self, event: Event, now: int, wall: int = 0) -> list[Command]:
        """Take an event. Returns what to do about it."""
        self._commands, self._orders, self.now, self.wall = [], {}, now, wall
        self.deployments.now = now
        match event:
            case Arrived(message=Report() as report):
                self._report(report, event)
            case Arrived(message=Ask() as ask):
                self._ask(ask, event)
            case Arrived(message=Goodbye(node=node)):
                if self._is(node, event.key):
                    self.forget_node(node)
            case Arrived(message=Refused()):
                self.count("refused by a node")
            case Arrived(conn=conn):
                self._refuse(conn, "unexpected", "the coordinator takes reports and asks, nothing else")
            case Garbled(conn=conn, why=why, text=text):
                self._refuse(conn, why, text)
            case Tick():
                self.absence.look(self.deployments, self.membership, now)
                self._forget_invitations()
                self.settle()
                self.membership.missing.look(Judge(self.queries, self.membership, self.below, now), now)
        self._follow_streams()
        for name, record in self.membership.ended.news().items():
            self._commands.append(Keep("ended", name, None if record is None else msgspec.msgpack.encode(record)))
        self._say_orders()
        return self._commands

    def snapshot(self, now: int, wall: int) -> Snapshot:
        """Everything it knows, for metrics."""
        return snapshot(self.troubles(now, wall), self.deployments.load)

    def troubles(self, now: int, wall: int) -> Troubles:
        """A reader of what holds queries up."""
        return Troubles(self.deployments, self.membership, self.spark, self.absence, now=now, wall=wall)

    def validate(self) -> None:
        """Raise if an index contradicts the records. O(everything)."""
        self.membership.validate()
        self.below.validate()
        self.absence.validate(self.deployments, self.membership.topology)
        self.deployments.validate()

    # Nodes

    def _report(self, report: Report, event: Arrived) -> None:
        if report.protocol != PROTOCOL:
            text = f"the coordinator speaks protocol {PROTOCOL}, not {report.protocol}; use one version of rove"
            self._refuse(event.conn, "protocol", text)
            return
        try:
            check_report(report)
            check_bounds(report)
        except BadName as error:
            self._refuse(event.conn, "malformed", str(error))
            return
        if not self._is(report.node, event.key):
            self._refuse(event.conn, "identity", f"`{report.node}` does not have this key; join with a token first")
            return
        known = self.membership.members.get(report.node)
        if known is not None and known.is_another(report, self.now):
            text = f"a process that was started later runs as `{report.node}`; stop one of them, or rename it"
            self._refuse(event.conn, "identity", text)
            return
        try:
            believed, lie = honest(report, known, self.deployments, self.below)
            heard = self.membership.heard(believed, event.conn, self.now)
        except ProtocolError as error:
            self._refuse(event.conn, error.why, str(error))
            return
        except TopologyError as error:
            self._refuse(event.conn, "malformed", str(error))
            return
        if lie:
            self.count("identity")
            self.liars.heard(report.node, kind_of(report, known), lie, self.now)
        if heard is None:
            self._commands.append(Send(event.conn, Orders(PROTOCOL, (), (), whole=True)))
            return
        member = self.membership.members[report.node]
        if report.facts is not None:
            self._follow_streams(report.node)
        self._follow(report.node, heard)
        self._stop_at_faults(believed)
        self.deployments.touch_moved(report.node, believed.moved or (), believed.released or ())
        self.settle()
        self._compare(report.node, member, heard)
        if self.deployments.holistic:
            self.settle()  # a query whose nodes have all answered goes on

    def _follow(self, node: NodeId, heard: Heard) -> None:
        """Mark the queries that are affected by a node's report on itself and its links."""
        record, before = heard.record, heard.before
        self.deployments.touch_lacking(node, heard.lacking)
        if heard.restarted:
            self.deployments.computes_again(node)
        if record is not None:
            self.keep("node", node, record)
            sources = (*record.sources, *(() if before is None else before.sources))
            self.deployments.touch_sources(node, {s.stream: None for s in sources})
            if record.kind != "device":
                self.deployments.touch_links(node, relay=True)
            if before is None or before.start != record.start:
                self.deployments.touch_start(node)
            for near in self.membership.neighbours(node):
                self.tell_peers(near)
            self.name_parents(node)
        for each in heard.relinked:
            relay = self.membership.members[each].record.kind != "device"
            self.deployments.touch_links(each, relay)

    def name_parents(self, node: NodeId) -> None:
        """Batches of a node may come through the parents that it names, and those of its children through it."""
        for child, parent in self.membership.named(node):
            self.below.add(child, parent)

    def _keep_above(self) -> list[Command]:
        return [Keep("above", news.maker, msgspec.msgpack.encode(news)) for news in self.below.news()]

    def _stop_at_faults(self, report: Report) -> None:
        """Stop queries that have rows which cannot be computed, if their users asked for that. O(troubles)."""
        for id, troubles in (report.troubles or {}).items():
            query, faults = self.queries.get(id), [trouble.text for trouble in troubles if trouble.fault]
            if faults and query is not None and query.record.stops_at_fault and not query.stopped:
                said = f"stopped, because a row could not be computed on {report.node}: {faults[0]}"
                query.record = msgspec.structs.replace(query.record, stopped_by=said)
                self.stop(query)

    def _follow_streams(self, node: NodeId | None = None) -> None:
        for stream, columns in compare(self.membership, self.deployments.reads, self.now, node).items():
            self._commands.append(Keep("stream", stream, None if columns is None else columns.encode()))

    def _compare(self, node: NodeId, member: Member, heard: Heard) -> None:
        """Tell a node the difference between what it runs and what it should run, and tell the nodes that waited for
        it. O(queries in which it does not run what it should + nodes that waited for it)."""
        for id, version in heard.ran.items():
            query = self.queries.get(id)
            if query is None or query.stopped:
                self.deployments.reopen(id, node)
                continue
            for each in query.rollout.heard(node, version, query.fragments.get(node), self.now):
                self._look(query, each)
            if node not in query.rollout.pending and node in query.fragments:
                self.deployments.close(id, node)
            else:
                self.deployments.reopen(id, node)
            self._complete(query)
        if member.unknown:
            self.deployments.open.setdefault(node, {}).update(dict.fromkeys(member.unknown))
        for id in list(self.deployments.open.get(node, ())):
            self._bring(id, node, member)
        for each in self.below.heard(node, member.learned, self.now):
            for query in self.deployments.live(each):
                self._look(query, each)
        self.tell_peers(node)
        self._teach(node)
        if member.trouble:
            self._order(node).trouble = member.trouble

    def tell_peers(self, node: NodeId) -> None:
        """Tell a node its peers, unless it knows them."""
        member = self.membership.members.get(node)
        peers, digest = self.membership.peers_of(node)
        if member is not None and digest != member.knows:
            self._order(node).peers = peers

    def _teach(self, node: NodeId) -> None:
        """Tell a node whose batches its neighbours may send, as far as it does not know."""
        member = self.membership.members.get(node)
        if member is not None and member.conn is not None and (news := self.below.tell(node, self.now)) is not None:
            self._order(node).learn = news

    def _bring(self, id: QueryId, node: NodeId, member: Member) -> None:
        """Make a node run what it should of one query."""
        query = self.queries.get(id)
        runs = id in member.running or id in member.unknown or not member.orders.knew(id)
        if query is not None and node in query.fragments and not query.stopped:
            self._look(query, node)
            if node not in query.rollout.pending:
                self.deployments.close(id, node)
        elif not runs:
            member.orders.told.pop(id, None)
            self._let_go(query, id, node)
        elif query is None or query.stopped or query.deployment is None:
            self._order(node).stop[id] = None
        elif query.rollout.may_leave(node, query.deployment):
            self._order(node).leave[id] = None

    def _let_go(self, query: Query | None, id: QueryId, node: NodeId) -> None:
        if id in self.deployments.of_node.get(node, ()):
            self._commands.append(Keep("part", f"{id}/{node}", None))
        self.deployments.let_go(id, node)
        if query is not None and not query.stopped:
            query.rollout.heard(node, None, None, self.now)
            self._complete(query)

    def _look(self, query: Query, node: NodeId) -> None:
        """Tell a node its part of a query, if it may be told now."""
        member, deployment = self.membership.members.get(node), query.deployment
        if member is None or member.conn is None or deployment is None:
            return
        if query.rollout.look(node, deployment, self.now):
            order = self._order(node)
            order.deploy.append(fragment := deployment.fragments[node])
            member.orders.tells(query.id)
            if not query.rollout.untold:
                self.history.told(query.id, self.wall)
            self.tell_peers(node)  # it must know the nodes that it sends to
            # The plan was sent with the query's first fragment. A node that seems not to have it gets it again.
            if query.id not in member.running or query.lacks_plan(node):
                order.plans[fragment.plan] = deployment.terms.split.plan
                order.counted[query.id] = self.membership.ended.counted(node, query.id)

    def _complete(self, query: Query) -> None:
        if query.state is QueryState.DEPLOYING and not query.rollout.pending:
            query.step(QueryEvent.COMPLETE)
            self._keep_history(self.history.ended(query.id, "done", self.wall))

    def forget_node(self, node: NodeId) -> None:
        """Remove a node for good, with its sources."""
        member = self.membership.members.get(node)
        if member is None:
            return
        self.deployments.touch_node(node)
        self.deployments.touch_sources(node, {s.stream: None for s in member.record.sources})  # some may have no place
        for query in self.deployments.live(node):
            query.rollout.unhear(node, self.now)
            self.deployments.reopen(query.id, node)  # the node may come back before the query has another route
        self.membership.remove(node)
        self.liars.forget(node)
        self._commands.append(Keep("node", node, None))
        self.allow()
        self.settle()

    def member(self, node: NodeId) -> Member:
        """The node with that name. If there is none, the error lists the nodes."""
        found = self.membership.members.get(node)
        if found is None:
            raise TopologyError(f"no node `{node}`; {nearest(node, list(self.membership.members))}")
        return found

    def _is(self, node: NodeId, key: str) -> bool:
        if node in (COORDINATOR, OPERATOR) or not self._keys:
            return node not in (COORDINATOR, OPERATOR, "")
        member = self.membership.members.get(node)
        return member is not None and not member.record.revoked and member.record.key == key != ""

    def allow(self) -> None:
        """Update which keys may connect. Without keys every process may. O(nodes)."""
        if self._keys:
            self._commands.append(self.allowed())

    def allowed(self) -> Allow:
        """The peers that may connect: nodes, processes of `rove cloud`, all who are invited, and the user who gives
        commands."""
        nodes = [Peer(node=m.record.node, key=m.record.key) for m in self.membership.members.values() if m.record.key]
        return Allow((*nodes, *self.clouds.peers(), *self.invitations.peers(), self._operator))

    def _forget_invitations(self) -> None:
        """Remove expired invitations. No process may connect with them."""
        if gone := self.invitations.expired(self.wall):
            for record in gone:
                self.keep_bytes("invite", record.key, None)
            self.allow()

    # Queries

    def settle(self) -> None:
        """Change the marked queries, store the change sets, and tell their nodes. O(their touched nodes)."""
        for query, change in self.deployments.settle():
            self.roll_out(query, change)

    def roll_out(self, query: Query, change: ChangeSet) -> None:
        """Store a change set, and tell those of its nodes that may be told now."""
        if change.version <= 1:
            self.keep("query", query.id, query.record)
        if change.difference:
            self.keep("version", query.id, change.version)
            self._keep_history(self.history.began(change, self.wall))
        for record in change.records:
            held = record.part is not None or record.node in query.rollout.states
            encoded = msgspec.msgpack.encode(record) if held else None
            self._commands.append(Keep("part", record.name, encoded))
        for node in change.difference.fragments:
            self._look(query, node)
        self._complete(query)

    def stop(self, query: Query) -> None:
        """Stop a query, and tell all nodes that run it."""
        nodes = self.deployments.stop(query)
        self.keep("query", query.id, query.record)
        self._keep_history(self.history.ended(query.id, "stopped", self.wall))
        self.streams.touch(query.streams)
        for node in nodes:
            member = self.membership.members.get(node)
            if member is not None:
                self._bring(query.id, node, member)
        self.settle()

    # Asks

    def _ask(self, ask: Ask, event: Arrived) -> None:
        known = self._answers.get(ask.id)
        if ask.verb == "enlist":
            answer = known or enlist(self, ask, event.key)
        elif not self._may_ask(ask.verb, event.key):
            self._refuse(event.conn, "identity", "this key may not give commands")
            return
        else:
            answer = known or self._answer(ask)
        self._commands.append(Send(event.conn, answer))

    def _may_ask(self, verb: str, key: str) -> bool:
        """Whether the holder of a key may ask this. Without keys every user of this computer may."""
        if not self._keys or key == self._operator.key:
            return True
        return verb in VERBS and VERBS[verb].for_cloud and self.clouds.has_key(key)

    def _answer(self, ask: Ask) -> Answer:
        verb = VERBS.get(ask.verb)
        if verb is None:
            return Answer(ask.id, b"", f"no verb `{ask.verb}`; {nearest(ask.verb, list(VERBS))}")
        try:
            answer = Answer(ask.id, msgspec.json.encode(verb.run(self, ask.body)))
        except RoveError as error:
            answer = Answer(ask.id, b"", str(error))
        except msgspec.MsgspecError as error:
            answer = Answer(ask.id, b"", f"`{ask.verb}` cannot be read: {error}")
        if verb.changes:
            self.remember(answer)
        return answer

    def remember(self, answer: Answer) -> None:
        """Keep an answer, in case the request is repeated."""
        self._answers[answer.id] = answer
        if len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]

    # Commands

    def keep(self, kind: str, name: str, record: msgspec.Struct | int) -> None:
        self._commands.append(Keep(kind, name, msgspec.msgpack.encode(record)))

    def keep_bytes(self, kind: str, name: str, record: bytes | None) -> None:
        self._commands.append(Keep(kind, name, record))

    def _keep_history(self, lines: Iterable[HistoryLine]) -> None:
        for line in lines:
            self.keep("change", place_of(line), line)

    def _order(self, node: NodeId) -> Order:
        return self._orders.setdefault(node, Order())

    def _say_orders(self) -> None:
        """Send each node one message. Nodes above are told first, and learn whose batches they may take."""
        self._commands += self._keep_above()
        for node in self.below.grown():
            self._teach(node)
        for node, order in sorted(self._orders.items(), key=lambda each: each[1].learn is None):
            member = self.membership.members.get(node)
            if member is not None and member.conn is not None:
                self._commands.append(Send(member.conn, order.message(member.orders.next())))

    def _refuse(self, conn: Conn, why: str, text: str) -> None:
        self.count(why)
        self._commands.append(Send(conn, Refused(why, text)))

    def count(self, why: str) -> None:
        """Count a refused message by its reason."""
        self.refused[why] = self.refused.get(why, 0) + 1
