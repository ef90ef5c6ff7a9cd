"""Which readers read which makers in one query: where the rows of each source are taken, and which origins each reader
waits for.

Law: rows go up their route, and the first node that runs an operator takes them for it. A *maker* numbers batches: it
is a source or a stateful operator. A stateful operator whose sources have ended is still a maker, because its state is
emitted later. A *reader* is an operator that takes batches in order, or the end of the query. A stateful operator that
no rows reach is left out: readers would wait for it for ever.

A change costs O(nodes below it × stages × height); a device that moves has none below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from rove.control.deployment.part import At
from rove.control.deployment.tables.journal import Journal
from rove.control.deployment.tables.tree import Tree
from rove.model.ids import NodeId, Stage
from rove.plan.stages import Stages, merges, ordered, stateful

END = Stage(-1)  # the reader at the end of a query


class Meetings:
    """The `readers` of each maker, and the `makers` of each reader."""

    def __init__(self, stages: Stages, spark: Collection[Stage], outputs: Collection[Stage], tree: Tree) -> None:
        self._stages, self._tree, self._spark, self._outputs = stages, tree, spark, outputs
        self._ordered = [ordered(op) for op in stages.operators]
        self._stateful = [stateful(op) for op in stages.operators]
        # Operators that are left out where no rows reach them. Nobody waits for the operator of a watermark: it stays,
        # because a node with a disk may have to compute again what passed it.
        self._optional = [stateful(op) and not merges(op) for op in stages.operators]
        self._walks: dict[
            At, tuple[At, ...]
        ] = {}  # for each source, the operators that take its rows, with their nodes
        self._taken: dict[At, int] = {}  # for each operator and node, how many sources have their rows taken there
        self.readers: dict[At, tuple[At, ...]] = {}
        self.makers: dict[At, dict[At, None]] = {}
        self.root: NodeId | None = None

    # Reading

    def runs(self, stage: Stage, node: NodeId) -> bool:
        """Whether an operator runs on a node, for rows that reach it there."""
        if stage not in self._tree.runs.get(node, ()):
            return False
        return not self._optional[stage] or bool(self._taken.get((stage, node))) or self._keeps(stage, node)

    def _keeps(self, stage: Stage, node: NodeId) -> bool:
        """Whether an operator goes on although no rows may come."""
        part = self._tree.parts.get(node)
        return part is not None and stage in part.keeps

    def running(self, node: NodeId) -> list[Stage]:
        """The operators that run on a node, in order."""
        return sorted(stage for stage in self._tree.runs[node] if self.runs(stage, node))

    def walk(self, source: At) -> tuple[At, ...]:
        """The operators that take rows of a source, with their nodes, in the order of the plan."""
        return self._walks.get(source, ())

    def met(self, source: At) -> tuple[At, ...]:
        """The ordered operators that take rows of a source, with their nodes."""
        return self._ordered_of(self.walk(source))

    def disturbed(self, journal: Journal, position: int) -> list[NodeId]:
        """The nodes whose rows met ordered operators in other places at an earlier position of the journal, without
        sources that were added or removed. O(writes since)."""
        return [
            at[1]
            for at, before in journal.before(self._walks, position).items()
            if before is not None and at in self._walks and self._ordered_of(before) != self.met(at)
        ]

    def _ordered_of(self, walk: tuple[At, ...]) -> tuple[At, ...]:
        return tuple(at for at in walk if self._ordered[at[0]])

    def is_last(self, node: NodeId) -> bool:
        """Whether an operator on another node takes rows of this node alone, and would be left out without it. O(its
        sources × stages)."""
        walks = [self._walks.get((stage, node), ()) for stage in self._tree.parts[node].hosts if self.is_source(stage)]
        lifts = self._tree.parts[node].lifts  # nobody waits for what these give
        counts = Counter(
            at for walk in walks for at in walk if at[1] != node and self._optional[at[0]] and at[0] not in lifts
        )
        return any(self._taken.get(at) == count for at, count in counts.items())

    def is_source(self, stage: Stage) -> bool:
        return not self._stages.inputs[stage]

    def is_stateful(self, stage: Stage) -> bool:
        return self._stateful[stage]

    def read_by(self, node: NodeId) -> Iterator[At]:
        """The makers that readers on a node read, once for each reader. O(makers)."""
        stages = [stage for stage in self._tree.runs[node] if self._ordered[stage]]
        stages += [stage for stage in self._tree.parts[node].lifting if stage not in stages]
        for stage in (*stages, END):
            yield from self.makers.get((stage, node), ())

    # Changing

    def refresh(self, journal: Journal, moved: Iterable[NodeId], gone: Iterable[At]) -> None:
        """Follow a change of the tree: `moved` are the nodes from which on routes or operators differ, `gone` the
        makers that are no more."""
        tree, touched = self._tree, dict.fromkeys(self._tree.below(moved))
        before = {at: self._walks[at] for at in gone if at in self._walks}
        after: dict[At, tuple[At, ...]] = {}
        for node in touched:
            for stage in (s for s in tree.parts[node].hosts if self.is_source(s)):
                after[stage, node] = self._walk(stage, node)
                before[stage, node] = self._walks.get((stage, node), ())
        toggled = self._take(journal, before, after)
        candidates = dict.fromkeys(gone)
        for node in (*touched, *tree.below(toggled)):
            candidates |= dict.fromkeys(self._candidates(node))
        for maker in candidates:
            self._hear(journal, maker, self._consumers(maker) if self._makes(maker) else ())

    def _take(
        self, journal: Journal, before: dict[At, tuple[At, ...]], after: dict[At, tuple[At, ...]]
    ) -> dict[NodeId, None]:
        """Replace walks. Returns the nodes where an operator is now reached, or no longer reached."""
        toggled: dict[NodeId, None] = {}
        for sign, walks in ((-1, before), (1, after)):
            for walk in walks.values():
                for at in walk:
                    count = self._taken.get(at, 0)
                    journal.put(self._taken, at, count + sign)
                    if self._optional[at[0]] and 0 in (count, count + sign):
                        toggled[at[1]] = None
        for at in before:
            if at not in after:
                journal.pop(self._walks, at)
        for at, walk in after.items():
            journal.put(self._walks, at, walk)
        return toggled

    def changed(self, journal: Journal, absent: bool) -> dict[NodeId, None]:
        """The nodes whose fragments may differ because of what was written since the last commit: they run or hear
        others than before. If some nodes are `absent`, nodes further up may wait for others as well. O(writes)."""
        found: dict[NodeId, None] = {}
        heard: dict[At, None] = {}
        for at, count in journal.before(self._taken).items():
            if self._optional[at[0]] and bool(count) != bool(self._taken.get(at)):
                found[at[1]] = None
        for maker, before in journal.before(self.readers).items():
            heard |= dict.fromkeys(sorted(set(before or ()) ^ set(self.readers.get(maker, ()))))
        found |= dict.fromkeys(node for _, node in heard)
        return found | self._above(heard) if absent else found

    def _walk(self, start: Stage, node: NodeId) -> tuple[At, ...]:
        """The operators that rows of a source reach, with the nodes that take them. O(stages × height)."""
        reached: dict[Stage, dict[NodeId, None]] = {start: {node: None}}
        found: list[At] = []
        for n in range(start + 1, len(self._stages.operators)):
            stage = Stage(n)
            starts = [at for i in self._stages.inputs[n] for at in reached.get(i, ())]
            lifted = self.root if stage in self._tree.parts[node].lifts else None
            taken = (lifted or self._taker(stage, at) for at in starts)
            here = dict.fromkeys(node for node in taken if node is not None)
            if here:
                reached[stage] = here
                found += [(stage, at) for at in here]
        return tuple(found)

    def _taker(self, stage: Stage, start: NodeId) -> NodeId | None:
        """The first node from `start` upwards that runs an operator; None if Spark does."""
        if stage in self._spark:
            return None
        return next((node for node in self._tree.route(start) if stage in self._tree.runs[node]), None)

    def _candidates(self, node: NodeId) -> Iterator[At]:
        """The possible makers on a node."""
        hosts = self._tree.parts[node].hosts
        return ((stage, node) for stage in hosts if self._stateful[stage] or self.is_source(stage))

    def _makes(self, maker: At) -> bool:
        """Whether a source or operator on that node numbers batches of that stage."""
        stage, node = maker
        part = self._tree.parts.get(node)
        if part is None or stage not in part.hosts:
            return False
        if self._keeps(stage, node) and not any(stage == each for each, _ in part.releases):
            return bool(self._taken.get((stage, node)))  # it has given all that it had
        return self.is_source(stage) or self.runs(stage, node)

    def _consumers(self, maker: At) -> tuple[At, ...]:
        """The readers of a maker: ordered operators that its batches meet, or their end."""
        found: dict[At, None] = {}
        part = self._tree.parts.get(maker[1])
        lifts = part.lifts if part is not None and self.is_source(maker[0]) else ()
        waiting = [maker]
        while waiting:
            stage, host = waiting.pop()
            if stage in self._outputs and self.root is not None:
                found[END, self.root] = None
            for reader in self._stages.readers[stage]:
                if reader in self._spark:
                    continue
                node = next((n for n in self._tree.route(host) if self.runs(reader, n)), None)
                node = self.root if reader in lifts else node
                if node is None:
                    continue
                if self._ordered[reader]:
                    found[reader, node] = None
                if not self._stateful[reader] or reader in lifts:
                    waiting.append((reader, node))
        return tuple(sorted(found))

    def _hear(self, journal: Journal, maker: At, readers: tuple[At, ...]) -> None:
        """Tell readers of a maker that is new, or is theirs no longer."""
        before = self.readers.get(maker, ())
        if before == readers:
            return
        for reader in before:
            if reader not in readers:
                journal.pop(self.makers[reader], maker)
        for reader in readers:
            if reader not in before:
                if reader not in self.makers:
                    journal.put(self.makers, reader, {})
                journal.put(self.makers[reader], maker, None)
        if readers:
            journal.put(self.readers, maker, readers)
        else:
            journal.pop(self.readers, maker)

    def above(self, nodes: Iterable[NodeId]) -> dict[NodeId, None]:
        """The nodes above these whose waiting depends on makers here, however far up. O(routes)."""
        return self._above(maker for node in nodes if node in self._tree for maker in self._candidates(node))

    def _above(self, makers: Iterable[At]) -> dict[NodeId, None]:
        seen: dict[At, None] = {}
        waiting = list(makers)
        while waiting:
            for reader in self.readers.get(waiting.pop(), ()):
                if reader not in seen:
                    seen[reader] = None
                    waiting.append(reader)
        return dict.fromkeys(node for _, node in seen)
