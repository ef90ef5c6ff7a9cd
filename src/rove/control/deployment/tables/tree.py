"""The routes of one query as a tree, with the operators that run on each node.

Law: every node has one next node, and all routes end at the root. What a node runs follows from what is hosted on it
and below it: a stateless operator that is hosted below runs here too, for batches that missed it. An operator that
takes batches in order runs only where it is hosted.

A change costs O(changed nodes × height × stages).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rove.control.deployment.part import Part
from rove.control.deployment.tables.journal import Journal
from rove.model.errors import BrokenInvariant, TopologyError
from rove.model.ids import NodeId, Stage
from rove.plan.stages import Stages, stateless

_NOTHING: frozenset[Stage] = frozenset()


class Tree:
    """Parts by node. `children` are the nodes whose next node is this one; `runs` are the operators that have been
    applied when a batch leaves."""

    def __init__(self, stages: Stages, journal: Journal) -> None:
        self._stages, self._journal = stages, journal
        self._stateless = [stateless(operator) for operator in stages.operators]
        self.parts: dict[NodeId, Part] = {}
        self.children: dict[NodeId, dict[NodeId, None]] = {}
        self.runs: dict[NodeId, frozenset[Stage]] = {}
        # For each node and stateless stage, how many nodes at or below it host the stage.
        self._hosted: dict[NodeId, dict[Stage, int]] = {}

    def __contains__(self, node: NodeId) -> bool:
        return node in self.parts

    def route(self, start: NodeId) -> Iterator[NodeId]:
        """The nodes from a node to the root. O(height)."""
        at: NodeId | None = start
        while at is not None:
            yield at
            at = self.parts[at].next

    def below(self, starts: Iterable[NodeId]) -> Iterator[NodeId]:
        """These nodes and all nodes below them, each once. O(nodes found)."""
        seen: dict[NodeId, None] = {}
        waiting = [node for node in starts if node in self.parts]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen[node] = None
                yield node
                waiting += self.children.get(node, ())

    def put(self, changes: Mapping[NodeId, Part | None]) -> dict[NodeId, None]:
        """Give nodes new parts, or none. Returns the nodes from which on routes or operators differ now."""
        touched: dict[NodeId, None] = {}
        moved: dict[NodeId, None] = {}
        for node, new in changes.items():
            old = self.parts.get(node)
            if old is None or new is None or old.next != new.next:
                moved[node] = None
            if old is not None:
                self._detach(node, old, touched)
        for node, new in changes.items():
            self._replace(node, new)
            touched[node] = None
        for node, new in changes.items():
            if new is not None:
                self._attach(node, new, touched)
        for node in touched:
            runs = self._runs(node)
            if runs != self.runs.get(node, _NOTHING):
                moved[node] = None
            if node not in self.parts:
                self._journal.pop(self.runs, node)
            elif self.runs.get(node) != runs:
                self._journal.put(self.runs, node, runs)
        return moved

    def _runs(self, node: NodeId) -> frozenset[Stage]:
        part = self.parts.get(node)
        if part is None:
            return _NOTHING
        below = (stage for stage, hosts in self._hosted.get(node, {}).items() if hosts)
        here = (s for s in part.hosts if not self._stateless[s] and self._stages.inputs[s])
        return frozenset((*below, *here))

    def _replace(self, node: NodeId, new: Part | None) -> None:
        """Replace a node's part while the node is detached from its next node."""
        journal, old = self._journal, self.parts.get(node)
        counts = dict(self._hosted.get(node, {}))
        for stage in () if old is None else old.hosts:
            if self._stateless[stage]:
                counts[stage] -= 1
        for stage in () if new is None else new.hosts:
            if self._stateless[stage]:
                counts[stage] = counts.get(stage, 0) + 1
        if new is not None:
            journal.put(self.parts, node, new)
            journal.put(self._hosted, node, counts)
            return
        if left := self.children.get(node):
            raise TopologyError(f"`{next(iter(left))}` sends to `{node}`, which has no part in the query")
        journal.pop(self.parts, node)
        journal.pop(self._hosted, node)
        journal.pop(self.children, node)

    def _detach(self, node: NodeId, part: Part, touched: dict[NodeId, None]) -> None:
        if self._attached(node):
            self._count(node, -1, touched)
            self._journal.pop(self.children[part.next], node)  # type: ignore[index]

    def _attach(self, node: NodeId, part: Part, touched: dict[NodeId, None]) -> None:
        if part.next is None:
            return
        if part.next not in self.parts:
            raise TopologyError(f"`{node}` sends to `{part.next}`, which has no part in the query")
        if part.next not in self.children:
            self._journal.put(self.children, part.next, {})
        self._journal.put(self.children[part.next], node, None)
        self._count(node, 1, touched)

    def _attached(self, node: NodeId) -> bool:
        part = self.parts.get(node)
        return part is not None and part.next is not None and node in self.children.get(part.next, ())

    def _count(self, node: NodeId, sign: int, touched: dict[NodeId, None]) -> None:
        """Add what is hosted at and below a node to all nodes above it, or remove it. O(height × stages)."""
        hosted, at = self._hosted[node], node
        while self._attached(at):
            at = self.parts[at].next  # type: ignore[assignment]
            touched[at] = None
            if hosted:
                counts = dict(self._hosted[at])
                for stage, hosts in hosted.items():
                    counts[stage] = counts.get(stage, 0) + sign * hosts
                self._journal.put(self._hosted, at, counts)

    def validate(self) -> None:
        """Raise if the tree contradicts its parts. O(nodes × stages)."""
        fresh = Tree(self._stages, Journal())
        fresh.put(self.parts)
        for name in ("parts", "runs"):
            if getattr(fresh, name) != getattr(self, name):
                raise BrokenInvariant(f"the tree's {name} are not those of its parts")
        if {n: set(c) for n, c in fresh.children.items() if c} != {n: set(c) for n, c in self.children.items() if c}:
            raise BrokenInvariant("the tree's children are not those of its parts")
