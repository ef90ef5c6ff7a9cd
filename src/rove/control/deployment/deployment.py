"""The deployment of one query: the parts of its nodes, and everything derived from them.

Law: a change is made on the tables, checked, and then either settled, which gives one `ChangeSet`, or rolled back. It
costs what it touches: a device that moves costs its route, however large the query is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from rove.control.deployment.aside import leads
from rove.control.deployment.change_set import ChangeSet, difference
from rove.control.deployment.fragments import Terms, fragment, relay
from rove.control.deployment.part import GONE, At, Named, Part, PartRecord
from rove.control.deployment.tables.journal import Journal
from rove.control.deployment.tables.meetings import Meetings
from rove.control.deployment.tables.past_routes import PastRoutes
from rove.control.deployment.tables.tree import Tree
from rove.control.placement.estimate import memory_bytes
from rove.control.placement.placement import Load, Placement, costs_a_slot
from rove.control.placement.request import SourceAt
from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId, Origin, Stage, Version
from rove.model.messages import Fragment

NAMED_MAX = 3  # devices that an explanation names


class Deployment:
    """One query's parts. `load` is what all queries take of each node; `starts` tells the starts of a node without a
    disk apart; `root` is the node where all routes end."""

    def __init__(self, terms: Terms, root: NodeId, load: Load, starts: Mapping[NodeId, int]) -> None:
        self.terms, self.root, self._load, self.starts = terms, root, load, starts
        self.journal = Journal()
        self.tree = Tree(terms.stages, self.journal)
        placed = terms.split.numbers
        spark = {Stage(n) for n in range(len(terms.stages.operators)) if n not in placed}
        self.meetings = Meetings(terms.stages, spark, terms.outputs, self.tree)
        self.meetings.root = root
        self._in_order = terms.in_order
        self.fragments: dict[NodeId, Fragment] = {}
        self.past_routes = PastRoutes()
        self.absent: dict[NodeId, None] = {}
        self.relays: dict[NodeId, Part] = {}  # the parts of nodes that are only on alternative routes
        self._senders: dict[NodeId, dict[NodeId, Version]] = {}
        self._sources: dict[At, tuple[Origin, ...]] = {}
        self.sourced: dict[NodeId, None] = {}  # the nodes with sources
        self._merging: dict[Stage, NodeId] = {}  # the nodes of merging operators
        self._borrowed: dict[At, NodeId] = {}  # names of operators by the node that gave them, and where they are now
        self._others: dict[NodeId, tuple[NodeId, ...]] = {}
        self._dirty: dict[NodeId, None] = {}  # nodes whose fragments may have to change
        self._changed: dict[NodeId, None] = {}  # nodes whose records may have to change
        self.version = Version(0)
        self.holding = False  # all nodes keep what they have

    # Reading

    def placed(self, node: NodeId) -> tuple[tuple[Stage, Origin], ...]:
        """The sources of a node that have a place."""
        part = self.tree.parts.get(node)
        return () if part is None else part.sources

    def sources(self) -> dict[Stage, tuple[SourceAt, ...]]:
        """All sources that have a place, by stage. O(nodes)."""
        found: dict[Stage, list[SourceAt]] = {s: [] for s in self.terms.stages.sources()}
        for node, part in self.tree.parts.items():
            for stage, origin in part.sources:
                found[stage].append(SourceAt(origin, node))
        return {stage: tuple(each) for stage, each in found.items()}

    def source_nodes(self, start: NodeId) -> list[NodeId]:
        """The nodes with sources at a node and below it. O(nodes below it)."""
        return [node for node in self.tree.below((start,)) if self.tree.parts[node].sources]

    def others(self, node: NodeId) -> tuple[NodeId, ...]:
        """Where alternative routes of a node begin."""
        return self._others.get(node, ())

    def hosts(self, stage: Stage, node: NodeId) -> bool:
        part = self.tree.parts.get(node)
        return part is not None and (stage in part.hosts or stage in part.lifting)

    def placement(self, why: Mapping[Stage, str]) -> Placement:
        """The whole deployment as a placement. O(nodes × stages)."""
        hosts: dict[Stage, list[NodeId]] = {stage: [] for stage in self.terms.split.numbers}
        slots: dict[NodeId, int] = {}
        memory: dict[NodeId, int] = {}
        for node, part in self.tree.parts.items():
            for stage in part.hosts:
                hosts[stage].append(node)
            if any(taken := self._takes(part)):
                slots[node], memory[node] = taken
        why, lifting = dict(why), sorted(node for node, part in self.tree.parts.items() if part.lifts)
        for stage in self.tree.parts[self.root].lifting if lifting else ():
            hosts[stage] = [*hosts[stage], *(() if self.root in hosts[stage] else (self.root,))]
            why[stage] = f"{why.get(stage, '')}; {moved_away(lifting, self.root)}"
        return Placement(
            hosts={stage: tuple(nodes) for stage, nodes in hosts.items()},
            spark=frozenset(Stage(n) for n in range(len(self.terms.stages.operators)) if n not in hosts),
            routes={node: part.next for node, part in self.tree.parts.items()},
            why=why,
            slots=slots,
            memory_bytes=memory,
        )

    # Changing

    def place(self, placement: Placement, sources: Mapping[Stage, Iterable[SourceAt]]) -> None:
        """Deploy a whole placement. O(nodes × stages × height)."""
        hosts: dict[NodeId, list[Stage]] = {}
        made: dict[NodeId, list[tuple[Stage, Origin]]] = {}
        for stage, nodes in sorted(placement.hosts.items()):
            for node in nodes:
                hosts.setdefault(node, []).append(stage)
        for stage, each in sources.items():
            for source in each:
                if stage in hosts.get(source.node, ()):
                    made.setdefault(source.node, []).append((stage, source.origin))
        self.put(
            {
                node: Part(next=above, hosts=tuple(hosts.get(node, ())), sources=tuple(made.get(node, ())))
                for node, above in placement.routes.items()
            }
        )

    def put(self, changes: Mapping[NodeId, Part | None]) -> None:
        """Give nodes new parts, or none. Derived tables are updated for the touched nodes."""
        gone: list[At] = []
        changes = {node: None if new is None else self._with_names(node, new) for node, new in changes.items()}
        for node, new in changes.items():
            old = self.tree.parts.get(node)
            self._account(node, old, new)
            gone += self._name_sources(node, old, new)
        self._passed_by(changes)
        moved = self.tree.put(changes)
        self._passed_by(changes)
        fresh = (node for node, new in changes.items() if new is not None)
        self.meetings.refresh(self.journal, (*moved, *fresh), gone)

    def _passed_by(self, nodes: Iterable[NodeId]) -> None:
        """Operators on the routes of these nodes let rows pass by, if they are of devices whose rows are taken at the
        root. O(routes)."""
        for node in nodes:
            if (part := self.tree.parts.get(node)) is not None and part.lifts:
                self._dirty |= dict.fromkeys(self.tree.route(node))

    def set_absent(self, node: NodeId, absent: bool) -> None:
        """Set whether a node is absent, so that no operator waits for it. O(its route)."""
        if absent != (node in self.absent):
            if absent:
                self.journal.put(self.absent, node, None)
            else:
                self.journal.pop(self.absent, node)
            self._dirty |= self.meetings.above((node,))
            self._changed[node] = None

    def restarted(self, node: NodeId) -> None:
        """A node without a disk has restarted: the output of its operators has new names, and they do not know any more
        which sources have ended. O(its route, and nodes below it)."""
        if node in self.tree:
            self._dirty |= {node: None, **self.meetings.above((node,))}
            below = ((other, self.tree.parts[other]) for other in self.source_nodes(node) if other != node)
            self.put({other: replace(part, above=part.above + 1) for other, part in below})

    def forget(self, nodes: Iterable[NodeId]) -> None:
        """Let readers begin with the first batch that arrives from these nodes, because earlier ones were taken by a
        node that has died. O(their routes)."""
        marked = {n: replace(p, forgotten=True) for n in nodes if (p := self.tree.parts.get(n)) and not p.forgotten}
        self.put(marked)
        self._dirty |= self.meetings.above(marked)

    def heard_above(self, node: NodeId) -> None:
        """Readers of what is made on a node have to be told of it again. O(its route)."""
        self._dirty |= self.meetings.above((node,))

    def hold(self, holding: bool) -> None:
        """Let all nodes keep what they have, or go on. Every fragment gets a new version. O(nodes)."""
        if holding != self.holding:
            self.holding = holding
            self._dirty |= dict.fromkeys(self.fragments)

    def amend(self, terms: Terms) -> None:
        """Go on with an amended plan (plan/rules/amend). Every fragment gets a new version. O(nodes)."""
        self.terms = terms
        self._dirty |= dict.fromkeys(self.fragments)

    def set_alternatives(self, begin: Mapping[NodeId, tuple[NodeId, ...]], relays: Mapping[NodeId, NodeId]) -> None:
        """Set where alternative routes begin, and the relays on them. O(alternatives)."""
        parts = {node: Part(next=above, relay=True) for node, above in relays.items() if node not in self.tree}
        for node in {**self.relays, **parts}:
            if self.relays.get(node) != parts.get(node):
                self._dirty[node] = None
        for node in {**self._others, **begin}:
            if self._others.get(node, ()) != begin.get(node, ()):
                self._dirty[node] = None
        self.relays, self._others = parts, {node: others for node, others in begin.items() if others}

    def _account(self, node: NodeId, old: Part | None, new: Part | None) -> None:
        """Update the load by what a node's operators take of it."""
        before, after = self._takes(old), self._takes(new)
        for table, taken in zip((self._load.slots, self._load.memory_bytes), _less(after, before), strict=True):
            left = table.get(node, 0) + taken
            if taken and left:
                self.journal.put(table, node, left)
            elif taken:
                self.journal.pop(table, node)
        for name in () if old is None else old.names:
            if self._borrowed.get((name.stage, NodeId(name.node))) == node:
                self.journal.pop(self._borrowed, (name.stage, NodeId(name.node)))
        for name in () if new is None else new.names:
            if name.node not in ("", node):
                self.journal.put(self._borrowed, (name.stage, NodeId(name.node)), node)
        for stage in () if old is None else old.hosts:
            if self._merging.get(stage) == node:
                self.journal.pop(self._merging, stage)
        for stage in () if new is None else new.hosts:
            if self.terms.merges(stage):
                self.journal.put(self._merging, stage, node)

    def _with_names(self, node: NodeId, new: Part) -> Part:
        """A part in which an operator that is new on its node has a name that no other has. An operator that has left
        the node with its state may still have the name that it had there. O(operators)."""
        old = self.tree.parts.get(node)
        fresh = [s for s in new.hosts if (s, node) in self._borrowed and (old is None or s not in old.hosts)]
        named = {name.stage for name in new.names}
        start = self.starts.get(node) or 0
        names = tuple(Named(s, node, self.version + 1, start) for s in fresh if s not in named)
        return replace(new, names=(*new.names, *names)) if names else new

    def _takes(self, part: Part | None) -> tuple[int, int]:
        """The slots and bytes of memory that a part takes."""
        operators = self.terms.stages.operators
        costly = [operators[stage] for stage in (() if part is None else part.hosts) if costs_a_slot(operators[stage])]
        return len(costly), sum(map(memory_bytes, costly))

    def _name_sources(self, node: NodeId, old: Part | None, new: Part | None) -> list[At]:
        """Index the sources of a node by stage. Returns those that it no longer hosts."""
        before, after = _by_stage(old), _by_stage(new)
        for stage in sorted(before.keys() | after.keys()):
            if before.get(stage) != after.get(stage):
                self.journal.put(self._sources, (stage, node), after.get(stage, ()))
        if after and node not in self.sourced:
            self.journal.put(self.sourced, node, None)
        elif not after and node in self.sourced:
            self.journal.pop(self.sourced, node)
        hosted = set(() if old is None else old.hosts) - set(() if new is None else new.hosts)
        return [(stage, node) for stage in sorted(hosted)]

    def merging(self) -> Mapping[Stage, NodeId]:
        """The nodes of merging operators."""
        return self._merging

    # Ending a change

    def roll_back(self, position: int = 0) -> None:
        """Take back what was put since."""
        self.journal.roll_back(position)

    def settle(self) -> ChangeSet:
        """Make the change final. The changed fragments get one new version."""
        self._collect()
        self.journal.commit()
        version = Version(self.version + 1)
        change = difference(self.fragments, {node: self._fragment(node, version) for node in self._dirty})
        for node, new in change.fragments.items():
            self.past_routes.add(node, (*_targets(new), *new.leads.values()))
            if node in change.update:
                self._redirect(node, self.fragments[node], new)
        for node in change.undeploy:
            self._redirect(node, self.fragments.pop(node), None)
        self.fragments |= change.fragments
        self._changed |= dict.fromkeys((*change.fragments, *change.undeploy))
        if change:
            self.version = version
        records = tuple(self._record(node) for node in self._changed)
        self._dirty, self._changed = {}, {}
        return ChangeSet(self.terms.query, self.version, change, records)

    def _collect(self) -> None:
        """Find the nodes that what was put concerns in the end: what was taken out and put back as it was does not
        count. O(writes)."""
        journal, tree = self.journal, self.tree
        for node, part in journal.before(tree.parts).items():
            if part != tree.parts.get(node):
                self._dirty[node] = self._changed[node] = None
        for node, runs in journal.before(tree.runs).items():
            if runs != tree.runs.get(node):
                self._dirty[node] = None
        for at, origins in journal.before(self._sources).items():
            if (origins or ()) != self._sources.get(at, ()):
                # The same maker has other names now, so its readers must be told.
                self._dirty |= dict.fromkeys(node for _, node in self.meetings.readers.get(at, ()))
        self._dirty |= self.meetings.changed(journal, bool(self.absent or journal.before(self.absent)))

    def _fragment(self, node: NodeId, version: Version) -> Fragment | None:
        part = self._part(node)
        if part is None or part.gone:
            return None
        found = self._of_part(node, part, version)
        return replace(found, holds=True) if self.holding else found

    def _of_part(self, node: NodeId, part: Part, version: Version) -> Fragment:
        if part.relay:
            return relay(self.terms, version, part, self._in_order)
        return fragment(
            self.terms,
            version,
            node,
            part,
            self.meetings,
            self._in_order,
            self.absent,
            self.starts,
            self._sources,
            self.tree.parts,
            self._passing(node, part),
        )

    def _passing(self, node: NodeId, part: Part) -> dict[Stage, tuple[Origin, ...]]:
        """The origins of devices below a node whose rows are taken at the root, by the operators here that they pass.
        These may have taken earlier rows of them. O(nodes below it), if such operators are here."""
        stages = set(part.hosts) & set(self.tree.parts[self.root].lifting) if node != self.root else set()
        below = [self.tree.parts[each] for each in self.tree.below((node,))] if stages else []
        return {s: tuple(o for each in below if s in each.lifts for _, o in each.sources) for s in sorted(stages)}

    def _part(self, node: NodeId) -> Part | None:
        part = self.tree.parts.get(node)
        if part is None:
            return self.relays.get(node)
        others = self._others.get(node, ())
        return part if part.others == others else _with_others(part, others)

    def _redirect(self, node: NodeId, old: Fragment, new: Fragment | None) -> None:
        """Note for each node that this one no longer sends to, from which version on."""
        goes = _targets(new)
        for target in _targets(old):
            if target not in goes and target != self.root:  # the root never leaves
                self._senders.setdefault(target, {})[node] = GONE if new is None else new.version
                self._changed[target] = None
        for target in goes:
            if self._senders.get(target, {}).pop(node, None) is not None:
                self._changed[target] = None

    def release(self) -> None:
        """Release the slots and the memory of a query that has ended. O(nodes)."""
        for node, part in self.tree.parts.items():
            self._account(node, part, None)
        self.journal.commit()

    # Leaving

    def leaving(self, node: NodeId) -> Mapping[NodeId, Version]:
        """The nodes that sent to a node and were told to send elsewhere, with the version from which on they do."""
        return self._senders.get(node, {})

    def left(self, node: NodeId, sender: NodeId | None = None) -> None:
        """A sender now sends elsewhere. Without a sender, the node itself has let go."""
        if sender is not None:
            self._senders.get(node, {}).pop(sender, None)
        else:
            self._senders.pop(node, None)

    # Records

    def _record(self, node: NodeId) -> PartRecord:
        found = self.fragments.get(node)
        return PartRecord(
            query=self.terms.query,
            node=node,
            part=self._part(node),
            version=self.version if found is None else found.version,
            senders=tuple(sorted(self._senders.get(node, {}).items())),
            absent=node in self.absent,
            holds=found is not None and found.holds,
        )

    def restore(self, records: Iterable[PartRecord], version: Version) -> None:
        """Restore the deployment from its records. O(nodes × stages × height)."""
        found = list(records)
        self.past_routes.restored()
        self.relays = {r.node: r.part for r in found if r.part is not None and r.part.relay}
        self._others = {r.node: r.part.others for r in found if r.part is not None and r.part.others}
        self.absent = {r.node: None for r in found if r.absent}
        self._senders = {r.node: dict(r.senders) for r in found if r.senders}
        self.put({r.node: _with_others(r.part, ()) for r in found if r.part is not None and not r.part.relay})
        self._dirty |= dict.fromkeys(self.relays)
        self.holding = any(r.holds for r in found)
        self.settle()
        for record in found:
            if record.part is not None and not record.part.gone:
                fragment = self.fragments[record.node]
                self.fragments[record.node] = _versioned(fragment, record.version)
        self.version = version
        self.hold(False)  # no node holds for ever because the coordinator has restarted

    def validate(self) -> None:
        """Raise if a derived table contradicts the parts. O(nodes × stages × height)."""
        self.tree.validate()
        leads.validate(self)
        fresh = Deployment(self.terms, self.root, Load(), self.starts)
        fresh.restore((self._record(node) for node in {**self.tree.parts, **self.relays}), self.version)
        if fresh.meetings.readers != self.meetings.readers:
            raise BrokenInvariant(f"query `{self.terms.query}`: the makers and readers do not follow from its parts")
        if fresh.fragments != self.fragments and not self._dirty:
            wrong = [n for n, f in fresh.fragments.items() if self.fragments.get(n) != f]
            raise BrokenInvariant(f"query `{self.terms.query}`: fragments of {wrong[:3]} do not follow from its parts")


def moved_away(devices: list[NodeId], root: NodeId) -> str:
    """Why an operator runs at the root too. Of many devices the first are named."""
    named = ", ".join(f"`{device}`" for device in devices[:NAMED_MAX])
    more = f" and {len(devices) - NAMED_MAX:,} more" if len(devices) > NAMED_MAX else ""
    return f"rows of {named}{more} are taken at `{root}`, because they have left an edge with their windows"


def _versioned(fragment: Fragment, version: Version) -> Fragment:
    return replace(fragment, version=version)


def _with_others(part: Part, others: tuple[NodeId, ...]) -> Part:
    return replace(part, others=others)


def _targets(fragment: Fragment | None) -> tuple[NodeId, ...]:
    """The nodes that a fragment may send to."""
    if fragment is None or fragment.next is None:
        return ()
    return (fragment.next, *fragment.others)


def _by_stage(part: Part | None) -> dict[Stage, tuple[Origin, ...]]:
    found: dict[Stage, list[Origin]] = {}
    for stage, origin in () if part is None else part.sources:
        found.setdefault(stage, []).append(origin)
    return {stage: tuple(origins) for stage, origins in found.items()}


def _less(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] - other[0], one[1] - other[1]
