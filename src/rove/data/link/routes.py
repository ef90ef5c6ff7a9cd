"""The routes of batches from a node, and what happens when a route changes.

Law: a node that knows other routes takes one by itself when its own breaks. Batches that are not acked take the new
route. If one has already arrived, the receiver drops the duplicate by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.link import Said
from rove.data.link.neighbours import Neighbours
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.ids import NodeId, Origin, QueryId


class Routes:
    """The routes of all queries on one node."""

    def __init__(self, neighbours: Neighbours, store: Store) -> None:
        self._neighbours, self._store = neighbours, store

    def send(self, running: RunningFragment, entry: KeptBatch, now: int, overtakes: bool = False) -> list[Said]:
        """Send a batch to the next node, now or as soon as possible."""
        way = running.way(entry.header)
        if way is None:
            return []
        if running.holds:
            if not entry.gone:
                running.kept.append(entry)
            return []
        return self._neighbours.link(way).offer(entry, now, overtakes)

    def turned(self, query: QueryId, before: NodeId | None, running: RunningFragment, now: int) -> list[Said]:
        """A query may have another route than before. Batches that are not acked take it."""
        if before is None or running.route is None or before == running.route:
            return []
        taken = self._neighbours.take_back(before, query)
        return [send for entry in taken for send in self.send(running, entry, now)]

    def left(self, query: QueryId, before: Iterable[NodeId], running: RunningFragment, now: int) -> list[Said]:
        """Drop the copies on earlier routes of a query that it no longer has: no node there takes them, so no node
        would ack them."""
        gone = [node for node in before if running.route is not None and node not in running.routes]
        taken = [entry for node in gone for entry in self._neighbours.take_back(node, query)]
        return [send for entry in taken for send in self.send(running, entry, now)]

    def led(self, query: QueryId, before: Mapping[Origin, NodeId], running: RunningFragment, now: int) -> list[Said]:
        """States had these ways of their own. Pieces whose way has changed take the new one. A state that has none any
        more has arrived or was given up, so its pieces are dropped. O(states, and batches on these links)."""
        leads, sends = running.fragment.leads, list[Said]()
        changed = {origin: node for origin, node in before.items() if leads.get(origin) != node}
        for node in dict.fromkeys(changed.values()):
            if not any(e.header.state and e.header.origin in changed for e in self._neighbours.link(node).entries()):
                continue
            for entry in self._neighbours.take_back(node, query):
                if entry.header.state and entry.header.origin in changed and entry.header.origin not in leads:
                    self._store.drop(entry)
                else:
                    sends += self.send(running, entry, now)
        return sends

    def changed(self, queries: Iterable[tuple[QueryId, RunningFragment]], now: int) -> list[Said]:
        """Parents are away or back. O(queries and their kept batches)."""
        sends: list[Said] = []
        for query, running in queries:
            if not running.fragment.others or running.route is None:
                continue
            route, up = running.route, [p for p in running.routes if self._neighbours.link(p).there]
            if up and route not in up:
                running.route = up[0]
                sends += self.turned(query, route, running, now)
            if running.fragment.copies and up:
                sends += self._copied(query, running.route, [p for p in up if p != running.route], now)
        return sends

    def sweep(self, running: RunningFragment) -> None:
        """A waiting entry may be gone. Amortized O(1)."""
        if running.route is None:
            return
        if running.holds:
            running.kept.sweep()
        else:
            self._neighbours.link(running.route).sweep()

    def forget(self, running: RunningFragment) -> list[Header]:
        """A query has ended. Returns the headers of unsent batches that no other node can have."""
        dropped = [entry for entry in running.kept if self._store.holds(entry)]
        lost = [entry.header for entry in dropped if entry.nowhere_else]
        for entry in dropped:
            self._store.drop(entry)
        return lost

    def _copied(self, query: QueryId, route: NodeId, others: list[NodeId], now: int) -> list[Said]:
        """Send batches kept without a route over all routes, in case another one breaks."""
        sends: list[Said] = []
        for entry in self._neighbours.link(route).kept(query):
            if not entry.copies:
                for other in others:
                    sends += self._neighbours.link(other).offer(self._store.copy(entry), now)
        return sends
