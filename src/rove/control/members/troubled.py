"""What nodes reported to be wrong, by query and by stream, and since when.

Law: the time of a trouble that goes on does not change, however often it is reported. Time is the coordinator's. A
report costs what it says; reading costs the troubles that are read.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TypeVar

from rove.model.ids import NodeId, QueryId
from rove.model.messages import TroubleHere

K = TypeVar("K")
V = TypeVar("V")


class Troubled:
    """Troubles of queries on nodes, and nodes whose sources have other columns than their stream."""

    def __init__(self) -> None:
        self._queries: dict[QueryId, dict[NodeId, dict[TroubleHere, int]]] = {}
        self._of_node: dict[NodeId, dict[QueryId, None]] = {}
        self._streams: dict[str, dict[NodeId, tuple[str, int]]] = {}
        self._misfits: dict[NodeId, dict[str, None]] = {}
        self._lacks: dict[NodeId, dict[str, None]] = {}

    def heard(self, node: NodeId, said: Mapping[QueryId, tuple[TroubleHere, ...]], now: int) -> list[QueryId]:
        """Take all troubles that a node has now. Returns the queries with functions that it lacks. O(its troubles,
        before and now)."""
        for query in self._of_node.pop(node, {}):
            if query not in said:
                _drop(self._queries, query, node)
        for query, troubles in said.items():
            before = self._queries.setdefault(query, {}).get(node, {})
            self._queries[query][node] = {trouble: before.get(trouble, now) for trouble in troubles}
            self._of_node.setdefault(node, {})[query] = None
        lacking = {query: t.lacks for query, troubles in said.items() for t in troubles if t.lacks}
        if lacking:
            self._lacks.setdefault(node, {}).update(dict.fromkeys(lacking.values()))
        return list(lacking)

    def brings(self, node: NodeId, misfits: Mapping[str, str], now: int) -> None:
        """Take the streams whose columns a node's sources contradict, with the reason. O(these, before and now)."""
        for stream in self._misfits.pop(node, {}):
            if stream not in misfits:
                _drop(self._streams, stream, node)
        for stream, reason in misfits.items():
            text, since = self._streams.setdefault(stream, {}).get(node, ("", 0))
            self._streams[stream][node] = (reason, since if text == reason else now)
            self._misfits.setdefault(node, {})[stream] = None

    def lacking(self, node: NodeId) -> Container[str]:
        """The functions that a node could not load since it started."""
        return self._lacks.get(node, ())

    def restarted(self, node: NodeId) -> None:
        """A node has started again. What it lacked may have been installed."""
        self._lacks.pop(node, None)

    def forget(self, node: NodeId) -> None:
        """A node is gone. O(its troubles)."""
        self.restarted(node)
        self.heard(node, {}, 0)
        self.brings(node, {}, 0)

    def of_query(self, query: QueryId) -> Iterator[tuple[NodeId, TroubleHere, int]]:
        """The troubles of a query, with their nodes and since when."""
        for node, troubles in self._queries.get(query, {}).items():
            for trouble, since in troubles.items():
                yield node, trouble, since

    def of_stream(self, stream: str) -> Iterator[tuple[NodeId, str, int]]:
        """The nodes whose sources have other columns than the stream, with the reason and since when."""
        for node, (reason, since) in self._streams.get(stream, {}).items():
            yield node, reason, since


def _drop(table: dict[K, dict[NodeId, V]], key: K, node: NodeId) -> None:
    """Remove a node's entry, and the key with its last entry."""
    entries = table.get(key, {})
    entries.pop(node, None)
    if not entries:
        table.pop(key, None)
