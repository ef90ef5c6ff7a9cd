"""All queries and their deployments.

Law: an event of nodes and links only notes the queries that it touches, with the nodes to look at. `settle` then
changes those queries, in the order in which they were touched, with one change set each. Indexes are kept, not
searched: stream to queries, node to queries, and the few queries that wait for more nodes or room.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from msgspec.structs import replace

from rove.control.deployment import migration
from rove.control.deployment.alternatives import alternatives
from rove.control.deployment.aside.drain import drain
from rove.control.deployment.change_set import ChangeSet
from rove.control.deployment.dead import replacement
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.holistic import Holistic, Redeploy, place_anew
from rove.control.deployment.part import PartRecord
from rove.control.deployment.query import Query, QueryEvent, QueryRecord
from rove.control.deployment.reroute import has_better, lead, move, relieve
from rove.control.deployment.rollout import Rollout
from rove.control.deployment.shares import shares
from rove.control.deployment.tables.invariants import check_indexes
from rove.control.deployment.touched import Touched, Waiting, no_route, no_sources, note_cut, stays, wanted
from rove.control.members.below import Below
from rove.control.members.membership import Membership
from rove.control.placement import Load, Placement, Request, SourceAt, strategy
from rove.control.placement.explain import explain
from rove.model.errors import PlanError, RoveError, nearest
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import Released
from rove.plan.operators import Operator
from rove.plan.stages import Stages


class Deployments:
    """Queries by name. `load` is what they take of each node. `of_node` holds the queries in which a node has, or had,
    a part; `open` holds the queries whose newest part the node does not run yet."""

    def __init__(self, membership: Membership, below: Below, redeploy: Redeploy = "incremental") -> None:
        self._membership, self._below = membership, below
        whole, self._whole_states = redeploy.startswith("holistic"), redeploy == "state_transfer"
        self.holistic = Holistic(self, membership, redeploy != "holistic_serial") if whole else None
        self.queries: dict[QueryId, Query] = {}
        self.load = Load()
        self.of_node: dict[NodeId, dict[QueryId, None]] = {}
        self.open: dict[NodeId, dict[QueryId, None]] = {}
        self.absent: dict[tuple[QueryId, NodeId], None] = {}  # nodes that are no longer waited for, by query
        self.rerouted: dict[tuple[QueryId, NodeId], None] = {}  # nodes with new fragments, until `absence` has looked
        self._of_stream: dict[str, dict[QueryId, None]] = {}
        self._leavers = shares.Leavers(membership)
        self._unsettled: dict[QueryId, None] = {}  # queries that more nodes or room may help
        self._touched: dict[QueryId, Touched] = {}
        self.now = 0  # the time of the event that is being handled

    # Queries

    def query(self, name: str) -> Query:
        found = self.queries.get(QueryId(name))
        if found is None:
            raise PlanError(f"no query `{name}`; {nearest(name, list(self.queries))}")
        return found

    def new(self, record: QueryRecord, plan: bytes) -> Query:
        """Make a query. It is not added yet."""
        rollout = Rollout(record.query, self._membership.members, self._below, self._membership.works)
        return Query.of(record, plan, rollout, self._whole_states)

    def may_carry(self, query: QueryId, relay: NodeId, node: NodeId) -> bool:
        """Whether a batch of a query that was made on `node` can have come to `relay`. O(nodes above `node`)."""
        found = self.queries.get(query)
        return found is None or found.deployment is None or found.deployment.past_routes.may_carry(relay, node)

    def add(self, query: Query) -> None:
        """Add a query, with its deployment if it has one."""
        self.queries[query.id] = query
        for stream in () if query.stopped else query.streams:
            self._of_stream.setdefault(stream, {})[query.id] = None
        self._settled(query)

    def restore(self, query: Query, records: Iterable[PartRecord], version: Version) -> None:
        """Restore a query from its records. O(its nodes × stages × height)."""
        found, record = list(records), query.record
        if record.gateway is not None and not record.stopped:
            query.deployment = query.deploy(record.gateway, self.load, self._membership.starts)
            query.deployment.restore(found, version)
            for node, fragment in query.fragments.items():
                self._below.routed(node, fragment, query.deployment.root)
            self.absent |= {(query.id, node): None for node in query.deployment.absent}
            for node in query.deployment.sourced:
                note_cut(query, query.deployment, node, self._membership.topology, self.now)
        query.restored((kept.node for kept in found), self.now)
        for kept in found:
            self._index(query, kept.node)
            self.computes_again(kept.node)  # its earlier starts are not known
        self.add(query)
        touched, topology = self._touch(query), self._membership.topology
        touched.retry = True
        touched.drained |= {kept.node: None for kept in found if topology.is_drained(kept.node)}

    def stop(self, query: Query) -> list[NodeId]:
        """Stop a query. Returns the nodes that may run it."""
        nodes = list(query.rollout.states)
        if query.deployment is not None:
            query.deployment.release()
        query.step(QueryEvent.STOP)
        query.record = replace(query.record, stopped=True)
        self._touched.pop(query.id, None)
        for stream in query.streams:
            self._of_stream.get(stream, {}).pop(query.id, None)
        for node in nodes:
            self.reopen(query.id, node)
            self.absent.pop((query.id, node), None)
        self._unsettled.pop(query.id, None)
        self.grown()  # there is more room now
        return nodes

    def let_go(self, query: QueryId, node: NodeId) -> None:
        """A node has ended a query that it was told to leave."""
        self.of_node.get(node, {}).pop(query, None)
        self.close(query, node)
        known = self.queries.get(query)
        if known is not None and known.deployment is not None:
            known.deployment.left(node)

    def close(self, query: QueryId, node: NodeId) -> None:
        """A node runs what it should of a query."""
        self.open.get(node, {}).pop(query, None)

    def reopen(self, query: QueryId, node: NodeId) -> None:
        """A node does not run what it should of a query, or may run a part that it has lost."""
        self.open.setdefault(node, {})[query] = None

    def _index(self, query: Query, node: NodeId) -> None:
        self.of_node.setdefault(node, {})[query.id] = None
        self.rerouted[query.id, node] = None
        self.reopen(query.id, node)

    # Marking

    def _touch(self, query: Query) -> Touched:
        return self._touched.setdefault(query.id, Touched())

    def touch_sources(self, node: NodeId, streams: Iterable[str]) -> None:
        """Sources of these streams were added or removed on a node. O(queries of the streams)."""
        for stream in streams:
            for id in self._of_stream.get(stream, ()):
                self._touch(self.queries[id]).nodes[node] = None

    def computes_again(self, node: NodeId) -> None:
        """A node has started again, is gone or counts as dead: what operators there have given is computed again. O(its
        queries)."""
        self._membership.ended.again |= self.of_node.get(node, {})

    def touch_node(self, node: NodeId) -> None:
        """A node was removed. O(its queries)."""
        self.computes_again(node)
        for query in self.live(node):
            touched = self._touch(query)
            touched.nodes[node] = None
            if query.deployment is not None and replacement.remembers(query.deployment, node):
                touched.dead[node] = None

    def touch_start(self, node: NodeId) -> None:
        """A node has restarted and has lost its state. O(its queries)."""
        for query in self.live(node):
            fragment = query.fragments.get(node)
            if fragment is not None and (fragment.makes or fragment.awaits):
                self._touch(query).restarted[node] = None

    def touch_links(self, node: NodeId, relay: bool) -> None:
        """The links of a node have changed. O(its queries). A relay may also help queries that wait for routes."""
        for query in self.live(node):
            touched = self._touch(query)
            (touched.relays if relay else touched.nodes)[node] = None
        if relay:
            self.grown()

    def touch_lacking(self, node: NodeId, queries: Iterable[QueryId]) -> None:
        """A node cannot load functions of these queries. O(these queries)."""
        for id in queries:
            if id in self.queries:
                self._touch(self.queries[id]).lacking[node] = None

    def touch_drained(self, node: NodeId) -> None:
        """A node is being drained, or takes part again. O(its queries)."""
        for query in self.live(node):
            self._touch(query).drained[node] = None
        self.touch_links(node, relay=True)

    def touch_dead(self, query: Query, node: NodeId) -> None:
        """A node counts as dead for a query."""
        self.computes_again(node)
        self._touch(query).dead[node] = None

    def touch_moved(self, node: NodeId, moved: Iterable[tuple[QueryId, Origin]], released: Iterable[Released]) -> None:
        """A node says which states have moved whole, and which origins it has let go. O(these states × route)."""
        live = {query.id: query for query in self.live(node)}
        for query, state in ((live[id], state) for id, state in moved if id in live):
            if query.deployment is not None and migration.over(query.deployment, node, state, query.moved):
                self._touch(query).arrived[state] = None
        for id, devices in self._leavers.heard(node).items():
            self._touch(self.queries[id]).nodes |= devices
        for each in (each for each in released if each.query in live):
            self._touch(live[each.query]).released[node, each.origin] = each.begin

    def grown(self) -> None:
        """There is more room, or there are more routes. O(queries that wait for it)."""
        for id in self._unsettled:
            self._touch(self.queries[id]).retry = True

    def unsettled(self) -> Iterable[QueryId]:
        """The queries that wait for nodes, room or routes."""
        return self._unsettled

    def set_absent(self, query: Query, node: NodeId, absent: bool) -> None:
        """Set whether a node is absent for a query."""
        self._touch(query).absent[node] = absent
        if absent:
            self.absent[query.id, node] = None
        else:
            self.absent.pop((query.id, node), None)

    def reads(self, stream: str) -> bool:
        """Whether a query that goes on reads a stream."""
        return bool(self._of_stream.get(stream))

    def live(self, node: NodeId) -> list[Query]:
        """The queries in which a node has a part."""
        found = (self.queries[id] for id in self.of_node.get(node, ()) if id in self.queries)
        return [query for query in found if not query.stopped]

    # Placing

    def settle(self) -> list[tuple[Query, ChangeSet]]:
        """Place the marked queries. Returns their change sets."""
        changed = []
        while self._touched:
            id = next(iter(self._touched))
            touched, query = self._touched.pop(id), self.queries[id]
            if query.stopped:  # it may have been marked before
                continue
            if query.deployment is None:
                try:
                    change = self.place(query)
                except RoveError as error:
                    query.wait(str(error), self.now)
                    change = None
            else:
                change = self._follow(query, query.deployment, touched)
            self._settled(query)
            if change:
                changed.append((query, dataclasses.replace(change, causes=touched.causes())))
        if self.holistic:
            changed += self.holistic.steps(self.now)
        return changed

    def _follow(self, query: Query, deployment: Deployment, touched: Touched) -> ChangeSet | None:
        """Amend a deployment, or queue the query if it is to be redeployed whole because a source can move."""
        topology = self._membership.topology
        if stays(query, deployment, touched, self._membership, self.now):
            return None
        nodes = touched.to_look_at(query)
        if self.holistic is None or not any(has_better(deployment, node, topology) for node in nodes):
            return self._amend(query, deployment, touched)
        self.holistic.queue(query.id, touched)
        return None

    def hold(self, query: Query, deployment: Deployment) -> ChangeSet:
        """Let all nodes of a query keep what they have."""
        deployment.hold(True)
        return self.rolled_out(query, deployment)

    def redeploy(self, query: Query, deployment: Deployment, touched: Touched) -> ChangeSet:
        """Place a query that holds from nothing, and deploy it whole."""
        deployment.hold(False)
        gateway, sources = query.record.gateway or deployment.root, self._reaching(query, deployment.root)
        request = query.request(gateway, sources, self._membership.troubled.lacking)
        place_anew(query, deployment, request, self._membership.topology, self.load)
        change = self._amend(query, deployment, touched)
        self._settled(query)
        return change

    def place(self, query: Query) -> ChangeSet | None:
        """Place a query for the first time. None while it waits; a query that cannot be placed raises. O(sources ×
        stages × height)."""
        request = self.request(query)
        if isinstance(request, Waiting):
            query.wait(request.reason, self.now)
            return None
        placement = strategy(query.record.strategy)(request, self._membership.topology, self.load)
        return self.put_down(query, request, placement)

    def put_down(self, query: Query, request: Request, placement: Placement) -> ChangeSet:
        """Deploy a strategy's placement of a query. O(nodes × stages × height)."""
        spark = tuple(sorted(placement.spark))
        query.record = replace(query.record, gateway=request.gateway, spark=spark, why=dict(placement.why))
        deployment = query.deploy(request.gateway, self.load, self._membership.starts)
        deployment.place(placement, request.sources)
        self._alternatives(query, deployment, request)
        query.deployment, query.placed_us = deployment, self.now
        query.wait("", self.now)
        return self.rolled_out(query, deployment)

    def withdraw(self, query: Query) -> None:
        """Release the slots of a query that was placed and then refused."""
        if query.deployment is not None:
            query.deployment.release()
            for node in query.rollout.states:
                self.let_go(query.id, node)

    def request(self, query: Query) -> Request | Waiting:
        """The request for a query that has no place yet. Of several gateways it takes the first by name that a source
        reaches; the others stand by. O(sources of its streams × gateways)."""
        gateways, sink = self._membership.gateways(), query.record.sink
        if sink.node is not None and not self._membership.topology.has(sink.node):
            return Waiting(f"waits for node `{sink.node}`, where its sink is; start it")
        candidates = gateways if sink.node is None else (gateways or [sink.node])
        if not candidates:
            return Waiting("waits for a gateway; start one: rove gateway")
        for gateway in candidates:
            sources = self._reaching(query, sink.node or gateway)
            if any(sources.values()):
                return query.request(gateway, sources, self._membership.troubled.lacking)
        known = (self._membership.sources_of(stream, columns) for stream, columns in query.columns.items())
        cut_off = next((node for nodes in known for node in nodes.values()), None)
        return Waiting(no_sources(query.streams) if cut_off is None else no_route(cut_off, sink.node or candidates[0]))

    def _reaching(self, query: Query, end: NodeId) -> dict[Stage, tuple[SourceAt, ...]]:
        """The sources of a query that have a route to its end."""
        return {
            stage: tuple(
                SourceAt(origin, node)
                for origin, node in self._membership.sources_of(stream, query.columns[stream]).items()
                if self._reaches(node, end)
            )
            for stream, stage in query.streams.items()
        }

    def standing_by(self) -> set[NodeId]:
        """The gateways that no query uses while another one is used. O(queries)."""
        used = {query.record.gateway for query in self.queries.values() if not query.stopped}
        spare = {node for node in self._membership.gateways() if node not in used}
        return spare if used & set(self._membership.gateways()) else set()

    def _amend(self, query: Query, deployment: Deployment, touched: Touched) -> ChangeSet:
        """Adapt a deployment to its present sources and links. O(marked nodes × stages × height); O(sources) if the
        query wants alternative routes."""
        request = query.request(query.record.gateway or deployment.root, {}, self._membership.troubled.lacking)
        nodes = touched.to_look_at(query)
        nodes |= shares.settled(deployment, touched, self._membership.members)
        for node in nodes:
            self._drop_gone(deployment, node)
        topology = self._membership.topology
        for state in touched.arrived:
            migration.arrived(deployment, state)
            query.moved.pop(state, None)
        for node in {**query.drained, **touched.drained}:
            self._drain(query, deployment, request, node)
        nodes |= replacement.follow(query, deployment, request, topology, self.load, touched.dead, self._membership)
        move(deployment, request, nodes, topology, self.load)
        self._leavers.follow(deployment, request, nodes, self.load, self.now)
        for node in nodes:
            self._lead_new(query, deployment, request, node)
            note_cut(query, deployment, node, topology, self.now)
        for node in touched.lacking:
            if node in deployment.tree:
                relieve(deployment, request, node, topology, self.load)
        for node in query.drained:
            migration.prune(deployment, node)
        for node in touched.restarted:
            if (part := deployment.tree.parts.get(node)) is not None:
                migration.lost(deployment, node)
                deployment.restarted(node)
                if not part.sources and not part.stays:  # its operators have lost their state, and get no rows
                    migration.retire(deployment, node, part)
        for node, absent in touched.absent.items():
            deployment.set_absent(node, absent)
        self._alternatives(query, deployment, request)
        query.wait("" if deployment.sourced else no_sources(query.streams), self.now)
        return self.rolled_out(query, deployment)

    def _drain(self, query: Query, deployment: Deployment, request: Request, node: NodeId) -> None:
        """Move the operators of a node that is being drained. If that cannot be, the query says why, and it is tried
        again with the next change."""
        query.drained.pop(node, None)
        topology = self._membership.topology
        if node in deployment.tree and topology.is_drained(node):
            query.drained[node] = drain(deployment, request, node, topology, self.load)

    def _drop_gone(self, deployment: Deployment, node: NodeId) -> None:
        """Remove sources that have ended. A source that is away, or has no route now, keeps its place. A node that was
        removed, and has none below it, loses its part: no operator waits for output of its operators. Operators
        elsewhere that took rows of it alone stay. So does a device whose rows wait at the root (`shares`)."""
        gone = self._membership.ended.gone
        part = deployment.tree.parts.get(node)
        if part is None or part.held:
            return
        if node not in self._membership.members:
            migration.removed(deployment, node, part)
        elif any(origin in gone for _, origin in part.sources):
            left = tuple(pair for pair in part.sources if pair[1] not in gone)
            deployment.put({node: replace(part, sources=left)})

    def _lead_new(self, query: Query, deployment: Deployment, request: Request, node: NodeId) -> None:
        """Give routes to the unplaced sources of a node."""
        here, have = (
            wanted(query, node, self._membership),
            dict.fromkeys(origin for _, origin in deployment.placed(node)),
        )
        for origin in [o for o, each in query.unplaced.items() if each.node == node and o not in here]:
            del query.unplaced[origin]
        for origin, stage in here.items():
            if origin in have:
                continue
            if not self._reaches(node, deployment.root):
                query.leave_out(origin, node, no_route(node, deployment.root), self.now)
                continue
            position = deployment.journal.position
            try:
                lead(deployment, request, stage, SourceAt(origin, node), self._membership.topology, self.load)
            except RoveError as error:
                deployment.roll_back(position)
                reason = f"`{origin}` cannot be routed to the operators that run already: {error}"
                query.leave_out(origin, node, reason, self.now)
            else:
                query.unplaced.pop(origin, None)

    def _alternatives(self, query: Query, deployment: Deployment, request: Request) -> None:
        if query.record.replication > 1:
            found = alternatives(deployment, request, self._membership.topology, query.record.replication)
            deployment.set_alternatives(found.begin, found.relays)

    def rolled_out(self, query: Query, deployment: Deployment) -> ChangeSet:
        """Make the change of a deployment final, and follow what its nodes are told of it."""
        change = deployment.settle()
        difference = change.difference
        query.rollout.changed(difference, self.now)
        for node, fragment in difference.fragments.items():
            self._below.routed(node, fragment, deployment.root)
        for node in (*difference.fragments, *difference.undeploy):
            self._index(query, node)
        if difference:
            query.step(QueryEvent.CHANGE)
        return change

    def _settled(self, query: Query) -> None:
        if query.unsettled and not query.stopped:
            self._unsettled[query.id] = None
        else:
            self._unsettled.pop(query.id, None)

    def _reaches(self, node: NodeId, end: NodeId) -> bool:
        topology = self._membership.topology
        return topology.has(node) and topology.reaches(node, end)

    # Questions

    def parts(self, query: Query) -> tuple[Stages, Operator | None]:
        """The part of a query that workers run, and the part that Spark runs."""
        halves = query.split()
        if halves is None:
            raise PlanError(f"query `{query.id}` has no place yet: {query.waits_for}")
        return halves.lower, next(iter(halves.upper.values()), None)

    def explained(self, query: Query) -> str:
        """Where a query runs, or would run, and why. O(its nodes × stages × height)."""
        topology, placement = self._membership.topology, query.placement()
        if placement is not None and query.deployment is not None:
            gateway = query.record.gateway or query.deployment.root
            asked = query.request(gateway, query.deployment.sources(), self._membership.troubled.lacking)
            return explain(asked, placement, topology, self._membership.rows_per_s)
        request = self.request(query)
        if isinstance(request, Waiting):
            return request.reason
        placed = strategy(query.record.strategy)(request, topology, self.load)
        return explain(request, placed, topology, self._membership.rows_per_s)

    def validate(self, whole: bool = True) -> None:
        """Raise if a query contradicts itself, or an index the queries. O(nodes of all queries); `whole` costs most."""
        check_indexes(self, self._membership.members, self._of_stream, self._unsettled, whole)
