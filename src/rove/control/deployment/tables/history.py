"""The history of changes: what caused each, which nodes it touched, and how long its steps took.

Law: a change of a query is one line. It is under way until all its nodes run it, until a newer change of the query
overtakes it, or until the query is stopped. Lines are stored, so a coordinator that restarts goes on with them. The
oldest make room for new ones. A step of a change costs O(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec.structs import replace

from rove.control.asks.requests import HistoryLine
from rove.control.deployment.change_set import ChangeSet
from rove.model.ids import NodeId, QueryId

LINES_MAX = 1_000
NODES_MAX = 10  # nodes of a change that are named
US_PER_MS = 1_000


class History:
    """The last changes of all queries. Times are the coordinator's wall clock."""

    def __init__(self) -> None:
        self._lines: dict[int, HistoryLine] = {}  # by number, in order
        self._open: dict[QueryId, int] = {}  # the change of each query that is under way
        self._next = 0

    def restore(self, lines: Iterable[HistoryLine]) -> None:
        """Restore stored lines. A change that was under way still is."""
        self._lines = {line.number: line for line in sorted(lines, key=lambda line: line.number)}
        self._next = max(self._lines, default=-1) + 1
        self._open = {QueryId(line.query): line.number for line in self if line.outcome == "under way"}

    def __iter__(self) -> Iterator[HistoryLine]:
        """All lines, the oldest first."""
        yield from self._lines.values()

    def began(self, change: ChangeSet, wall: int) -> list[HistoryLine]:
        """A change set was made. Returns the lines to store."""
        overtaken = self.ended(change.query, "overtaken", wall)
        found = change.difference
        line = HistoryLine(
            number=self._next,
            query=change.query,
            version=change.version,
            causes=change.causes,
            began_us=wall,
            deploy=_some(found.deploy),
            update=_some(found.update),
            undeploy=_some(found.undeploy),
            nodes=len(found.fragments) + len(found.undeploy),
        )
        self._lines[line.number] = line
        self._open[change.query] = line.number
        self._next += 1
        if len(self._lines) > LINES_MAX:
            del self._lines[next(iter(self._lines))]
        return [*overtaken, line]

    def told(self, query: QueryId, wall: int) -> None:
        """All nodes of a query were told their newest part."""
        line = self._lines.get(self._open.get(query, -1))
        if line is not None and line.told_ms is None:
            self._lines[line.number] = replace(line, told_ms=_since(line, wall))

    def ended(self, query: QueryId, outcome: Literal["done", "overtaken", "stopped"], wall: int) -> list[HistoryLine]:
        """The change of a query that was under way is over. Returns the line to store, if there is one."""
        line = self._lines.get(self._open.pop(query, -1))
        if line is None:
            return []
        line = self._lines[line.number] = replace(line, outcome=outcome, took_ms=_since(line, wall))
        return [line]


def place_of(line: HistoryLine) -> str:
    """The name under which a line is stored. The oldest line gives its name to a new one."""
    return str(line.number % LINES_MAX)


def _since(line: HistoryLine, wall: int) -> int:
    return max(0, wall - line.began_us) // US_PER_MS


def _some(nodes: Iterable[NodeId]) -> tuple[NodeId, ...]:
    return tuple(sorted(nodes)[:NODES_MAX])
