"""One query as the coordinator knows it: what was asked, where it is placed, what each node should run.

Law: a deployment is built whole, checked, and then swapped in. Fragments that did not change keep their version, so
nodes that are not touched hear nothing. A stateful operator stays where it is: sources that come later, or that have
moved, are led to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from rove.control.asks.requests import PATIENCE_US, CloudSink, Submit
from rove.control.deployment.alternatives import alternatives
from rove.control.deployment.fragments import fragments
from rove.control.deployment.reroute import led, moved
from rove.control.deployment.split import Split, split
from rove.control.placement import Load, Placement, Request, SourceAt, strategy
from rove.control.placement.explain import explain
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import Fragment, Sink
from rove.plan.codec import decode
from rove.plan.operators import Source
from rove.plan.stages import Stages
from rove.plan.user_functions import unread

_ASKED = {
    "plan": "plan",
    "sink": "sink",
    "strategy": "strategy",
    "cloud": "sink in Spark",
    "patience_us": "returnTimeout",
    "patience_of": "returnTimeout of a stream",
    "replication": "replication",
    "copies": "use of routes",
    "thins": "degrade",
    "folds": "degrade by folding",
}


class QueryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a query: enough to find it again as it was."""

    query: QueryId
    plan: bytes
    sink: Sink
    strategy: str
    cloud: CloudSink | None = None
    patience_us: int = PATIENCE_US
    patience_of: dict[str, int] = {}  # with some streams it is another
    replication: int = 1  # routes that share no node, for each source
    copies: bool = True  # whether what was kept goes over all of them, or over the best
    thins: int = 0  # of rows that devices have no room for, keep every so manieth
    folds: bool = False  # or fold them into partial aggregates
    absent: tuple[NodeId, ...] = ()  # nodes on its routes that are waited for no longer
    version: Version = Version(0)
    stopped: bool = False
    sources: dict[Stage, tuple[tuple[Origin, NodeId], ...]] = {}
    hosts: dict[Stage, tuple[NodeId, ...]] = {}
    spark: tuple[Stage, ...] = ()
    routes: dict[NodeId, NodeId | None] = {}
    why: dict[Stage, str] = {}
    slots: dict[NodeId, int] = {}
    memory_bytes: dict[NodeId, int] = {}
    fragments: dict[NodeId, Fragment] = {}
    leaving: dict[NodeId, tuple[NodeId, ...]] = {}  # nodes that it passed, or does, and who may still send to them

    @classmethod
    def of(cls, asked: Submit) -> QueryRecord:
        """A query that was not placed yet."""
        return cls(
            query=QueryId(asked.name),
            plan=asked.plan,
            sink=asked.sink,
            strategy=asked.strategy,
            cloud=asked.cloud,
            patience_us=asked.patience_us,
            patience_of=asked.patience_of,
            replication=asked.replication,
            copies=asked.copies,
            thins=asked.thins,
            folds=asked.folds,
        )

    def asked_otherwise(self, other: QueryRecord) -> list[str]:
        """What was asked for differently in the other, in words."""
        return [word for name, word in _ASKED.items() if getattr(self, name) != getattr(other, name)]


@dataclass(slots=True)
class Query:
    """A query and its deployment; `trouble` says what keeps it from running as asked."""

    record: QueryRecord
    stages: Stages
    trouble: str = ""
    placement: Placement | None = None
    streams: dict[str, Stage] = field(default_factory=dict)
    _parts: tuple[frozenset[Stage], Split] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, record: QueryRecord) -> Query:
        stages = decode(record.plan, unread)
        found = cls(record, stages)
        for stage in stages.sources():
            operator = stages.operators[stage]
            if isinstance(operator, Source):
                found.streams[operator.stream] = stage
        if record.routes:
            found.placement = Placement(
                hosts=record.hosts,
                spark=frozenset(record.spark),
                routes=record.routes,
                why=record.why,
                slots=record.slots,
                memory_bytes=record.memory_bytes,
            )
        return found

    @property
    def id(self) -> QueryId:
        return self.record.query

    def patience_us(self, node: NodeId | None = None) -> int:
        """How long a node is waited for: as long as for any stream that it has; for one without, as long as for any.
        O(sources), if streams differ."""
        record = self.record
        if not record.patience_of:
            return record.patience_us
        streams = [s for s, stage in self.streams.items() if any(n == node for _, n in record.sources.get(stage, ()))]
        return max(record.patience_of.get(stream, record.patience_us) for stream in streams or self.streams)

    def request(
        self, sources: Mapping[Stage, tuple[SourceAt, ...]], gateway: NodeId, starts: Mapping[NodeId, int]
    ) -> Request:
        """What is to be placed, for these sources."""
        sink = None if self.record.sink.kind == "log" and self.record.sink.node in (None, gateway) else self.record.sink
        return Request(
            query=self.id,
            stages=self.stages,
            sources=sources,
            gateway=gateway,
            sink=None if sink is None else sink.node or gateway,
            hints=dict(self.stages.hints),
            absent=frozenset(self.record.absent),
            starts=starts,
        )

    def place(self, request: Request, topology: Topology, load: Load) -> Placement:
        """Where everything runs: as the strategy says at first, and afterwards as it is, with sources that are new, or
        whose route is broken while there is a better one, led to it."""
        if self.placement is None:
            return strategy(self.record.strategy)(request, topology, load)
        known = {SourceAt(*pair) for pairs in self.record.sources.values() for pair in pairs}
        new = [(s, p) for s, found in request.sources.items() for p in found if p not in known]
        found, reasons = moved(request, self.placement, topology, load), []
        for stage, source in new:
            try:
                found = led(request, stage, source, found, topology, load)
            except RoveError as error:
                reasons.append(f"`{source.origin}` cannot be led to what runs already: {error}")
        self.trouble = "; ".join(reasons)
        return found

    def deploy(self, request: Request, placement: Placement, topology: Topology) -> None:
        """Swap in a deployment; only fragments that changed get the new version."""
        version = Version(self.record.version + 1)
        sinks = {} if request.sink is None else dict.fromkeys(_outputs(self.stages), self.record.sink)
        placed = _placed(request, placement)
        request = dataclasses.replace(request, sources=placed)
        others = alternatives(request, placement, topology, self.record.replication)
        asked = self.record
        wanted = fragments(
            request,
            placement,
            version,
            sinks,
            others=others,
            copies=asked.copies,
            thins=asked.thins,
            folds=asked.folds,
            parts=self.split(placement),
        )
        kept = {
            node: old if old is not None and replace(new, version=old.version) == old else new
            for node, new in wanted.items()
            for old in (self.record.fragments.get(node),)
        }
        if kept == self.record.fragments:
            return
        senders = self._senders()
        leaving = {
            node: tuple(senders.get(node, ()))
            for node in (*self.record.leaving, *self.record.fragments)
            if node in senders or node not in kept
        }
        self.placement = placement
        self.record = replace(
            self.record,
            version=version,
            sources={s: tuple((p.origin, p.node) for p in found) for s, found in placed.items()},
            hosts=dict(placement.hosts),
            spark=tuple(sorted(placement.spark)),
            routes=dict(placement.routes),
            why=dict(placement.why),
            slots=dict(placement.slots),
            memory_bytes=dict(placement.memory_bytes),
            fragments=kept,
            leaving=leaving,
        )

    def split(self, placement: Placement) -> Split:
        """Its two parts. A device that moves does not change them: they are worked out when Spark begins elsewhere."""
        if self._parts is None or self._parts[0] != placement.spark:
            self._parts = (placement.spark, split(self.stages, placement.spark))
        return self._parts[1]

    def _senders(self) -> dict[NodeId, dict[NodeId, None]]:
        """Who may still send to each node: those who were told to, now or before. O(fragments × routes)."""
        found = {node: dict.fromkeys(senders) for node, senders in self.record.leaving.items() if senders}
        for name, fragment in self.record.fragments.items():
            for node in (fragment.next, *fragment.others):
                if node is not None:
                    found.setdefault(node, {})[name] = None
        return found

    def explained(self, request: Request, placement: Placement, topology: Topology) -> str:
        return explain(request, placement, topology)


def _placed(request: Request, placement: Placement) -> dict[Stage, tuple[SourceAt, ...]]:
    """The sources that have a place."""
    return {s: tuple(p for p in found if p.node in placement.hosts.get(s, ())) for s, found in request.sources.items()}


def _outputs(stages: Stages) -> list[str]:
    return ["out"] if len(stages.outputs) == 1 else [name for name, _ in stages.outputs]
