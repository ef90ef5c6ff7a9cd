"""Which way batches go from a node, and what becomes of them when that changes.

Law: whoever knows other roads takes one when its own is not there, and asks nobody. What is not in safe hands goes
along; what has arrived after all is known there by its name.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.data.fragment.running_fragment import Running
from rove.data.link.neighbours import Neighbours
from rove.data.store.kept_batch import Entry
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.events import Send
from rove.model.ids import NodeId, QueryId


class Roads:
    """The roads of all queries on one node."""

    def __init__(self, neighbours: Neighbours, store: Store) -> None:
        self._neighbours, self._store = neighbours, store

    def send(self, running: Running, entry: Entry, now: int, overtakes: bool = False) -> list[Send]:
        """On to the next node, now or as soon as it can be."""
        if running.road is None:
            return []
        if running.kept is not None:
            if not entry.gone:
                running.kept.append(entry)
            return []
        return self._neighbours.link(running.road).offer(entry, now, overtakes)

    def turned(self, query: QueryId, before: NodeId | None, running: Running, now: int) -> list[Send]:
        """A query may have another road than before: what is not in safe hands yet takes it."""
        if before is None or running.road is None or before == running.road:
            return []
        return [
            send for entry in self._neighbours.link(before).take_back(query) for send in self.send(running, entry, now)
        ]

    def changed(self, queries: Iterable[tuple[QueryId, Running]], now: int) -> list[Send]:
        """Parents have gone or come back. O(queries, and what they kept)."""
        sends: list[Send] = []
        for query, running in queries:
            if not running.fragment.others or running.road is None:
                continue
            road, up = running.road, [p for p in running.roads if self._neighbours.link(p).there]
            if up and road not in up:
                running.road = up[0]
                sends += self.turned(query, road, running, now)
            if running.fragment.copies and up:
                sends += self._copied(query, running.road, [p for p in up if p != running.road], now)
        return sends

    def sweep(self, running: Running) -> None:
        """An entry that waits for its road may be gone. O(1), spread out."""
        if running.road is None:
            return
        if running.kept is None:
            self._neighbours.link(running.road).sweep()
        else:
            running.kept.sweep()

    def forget(self, running: Running) -> list[Header]:
        """A query is over: what had not set out, of that what nobody else can have."""
        dropped = [entry for entry in running.kept or () if self._store.holds(entry)]
        lost = [entry.header for entry in dropped if entry.nowhere_else]
        for entry in dropped:
            self._store.drop(entry)
        return lost

    def _copied(self, query: QueryId, road: NodeId, others: list[NodeId], now: int) -> list[Send]:
        """What was kept while no road was there goes over all of them, in case another one breaks."""
        sends: list[Send] = []
        for entry in self._neighbours.link(road).kept(query):
            if not entry.copies:
                for other in others:
                    sends += self._neighbours.link(other).offer(self._store.copy(entry), now)
        return sends
