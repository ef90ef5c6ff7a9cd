"""All queries, and where each of them runs.

Law: what happens to nodes and links only marks queries; they are placed anew at the next moment, in the order they were
marked, and the books on what they take of each node are kept with them.
"""

from __future__ import annotations

from msgspec.structs import replace

from rove.control.deployment.query import Query
from rove.control.deployment.sources import sources_of
from rove.control.members.membership import Membership
from rove.control.placement import Load, Request
from rove.model.errors import PlanError, RoveError, nearest
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Report
from rove.plan.operators import Operator
from rove.plan.stages import Stages


class Deployments:
    """Queries by name. `load` is what they take of each node."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.queries: dict[QueryId, Query] = {}
        self.load = Load()
        self._stale: dict[QueryId, None] = {}  # queries to be placed anew

    def query(self, name: str) -> Query:
        found = self.queries.get(QueryId(name))
        if found is None:
            raise PlanError(f"no query `{name}`; {nearest(name, list(self.queries))}")
        return found

    def add(self, query: Query) -> None:
        """A query from now on, with the place it has."""
        self.queries[query.id] = query
        if query.placement is not None and not query.record.stopped:
            self.load.add(query.placement)

    def stop(self, query: Query) -> list[NodeId]:
        """A query is over; who runs it."""
        self._stale.pop(query.id, None)
        if query.placement is not None:
            self.load.remove(query.placement)
        nodes = list(query.record.fragments)
        query.record = replace(query.record, stopped=True, fragments={})
        for other in self.queries.values():
            if other.trouble and not other.record.stopped:  # there is more room now
                self.mark(other)
        return nodes

    # When to place

    def mark(self, query: Query) -> None:
        self._stale[query.id] = None

    def touch(self, streams: set[str], relay: bool = False) -> None:
        """Queries that read one of these streams, or wait for a route, are marked."""
        for query in self.queries.values():
            if not query.record.stopped and (relay or query.placement is None or streams & set(query.streams)):
                self.mark(query)

    def touch_node(self, node: NodeId) -> None:
        """Queries with operators on a node that has forgotten what they were at are marked."""
        for query in self.queries.values():
            fragment = query.record.fragments.get(node)
            if not query.record.stopped and fragment is not None and fragment.makes:
                self.mark(query)

    def touch_routes(self, report: Report) -> None:
        """Queries whose rows are cut off on a device that reaches another parent, or may go by a relay now that they
        could not before, are marked."""
        for query in self.queries.values():
            routes = {} if query.record.stopped or query.placement is None else query.placement.routes
            fragment = query.record.fragments.get(report.node)
            known = () if fragment is None else (fragment.next, *fragment.others)
            cut_off = fragment is not None and report.reaches and not any(p in report.reaches for p in known)
            if routes and (report.kind != "device" or cut_off):
                self.mark(query)

    def settle(self) -> list[Query]:
        """Place what is marked; the queries that run elsewhere now."""
        changed = []
        for id in list(self._stale):
            del self._stale[id]
            query = self.queries[id]
            version = query.record.version
            try:
                self.place(query)
            except RoveError as error:
                query.trouble = str(error)
            if query.record.version != version:
                changed.append(query)
        return changed

    # Where to place

    def place(self, query: Query) -> None:
        """Give a query its place, or a better one; no place is an error. One that waits says so in its `trouble`."""
        request = self.request(query)
        if request is None:
            return
        before = query.placement
        topology = self._membership.topology
        query.deploy(request, query.place(request, topology, self.load), topology)
        if query.id in self.queries and query.placement is not before:
            if before is not None:
                self.load.remove(before)
            if query.placement is not None:
                self.load.add(query.placement)

    def request(self, query: Query) -> Request | None:
        """What is to be placed now; None while a stream has no source or there is no gateway."""
        gateways = self._membership.gateways()
        sink = query.record.sink
        if sink.node is not None and not self._membership.topology.has(sink.node):
            query.trouble = f"waits for node `{sink.node}`"
            return None
        if not gateways and sink.node is None:
            query.trouble = "waits for a gateway"
            return None
        gateway = gateways[0] if gateways else sink.node
        if gateway is None:
            return None
        sources = sources_of(query, self._membership, sink.node or gateway)
        if query.placement is None and not any(sources.values()):
            query.trouble = "waits for sources of " + ", ".join(f"`{s}`" for s in query.streams)
            return None
        query.trouble = ""
        return query.request(sources, gateway, self._membership.starts)

    def parts(self, query: Query) -> tuple[Stages, Operator | None]:
        """What workers run of a query, and what is left for Spark."""
        request = self.request(query)
        if request is None or query.placement is None:
            raise PlanError(f"query `{query.id}` has no place yet: {query.trouble}")
        halves = query.split(query.placement)
        return halves.lower, next(iter(halves.upper.values()), None)

    def explained(self, query: Query) -> str:
        """Where a query runs, or would, and why."""
        request = self.request(query)
        if request is None:
            return query.trouble
        placement = query.placement or query.place(request, self._membership.topology, self.load)
        return query.explained(request, placement, self._membership.topology)
