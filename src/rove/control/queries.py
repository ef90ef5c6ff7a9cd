"""One query as the coordinator knows it: what was asked, where it is placed, what each node should run.

Law: a deployment is built whole, checked, and then swapped in. Fragments that did not change keep their version, so
nodes that are not touched hear nothing. A stateful operator stays where it is: sources that come later are led to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from rove.control.deployment.fragments import fragments
from rove.control.placement import Load, Placement, Request, SourceAt, bottom_up, strategy
from rove.control.placement.explain import explain
from rove.control.requests import PATIENCE_US, CloudSink
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError, TopologyError
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import Fragment, Sink
from rove.plan.codec import decode
from rove.plan.operators import Source
from rove.plan.stages import Stages, merges, ordered


class QueryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a query: enough to find it again as it was."""

    query: QueryId
    plan: bytes
    sink: Sink
    strategy: str
    cloud: CloudSink | None = None
    patience_us: int = PATIENCE_US
    absent: tuple[NodeId, ...] = ()  # nodes on its roads that are waited for no longer
    version: Version = Version(0)
    stopped: bool = False
    sources: dict[Stage, tuple[tuple[Origin, NodeId], ...]] = {}
    hosts: dict[Stage, tuple[NodeId, ...]] = {}
    spark: tuple[Stage, ...] = ()
    roads: dict[NodeId, NodeId | None] = {}
    why: dict[Stage, str] = {}
    slots: dict[NodeId, int] = {}
    memory_bytes: dict[NodeId, int] = {}
    fragments: dict[NodeId, Fragment] = {}


@dataclass(slots=True)
class Query:
    """A query and its deployment; `trouble` says what keeps it from running as asked."""

    record: QueryRecord
    stages: Stages
    trouble: str = ""
    placement: Placement | None = None
    streams: dict[str, Stage] = field(default_factory=dict)

    @classmethod
    def of(cls, record: QueryRecord) -> Query:
        stages = decode(record.plan)
        found = cls(record, stages)
        for stage in stages.sources():
            operator = stages.operators[stage]
            if isinstance(operator, Source):
                found.streams[operator.stream] = stage
        if record.roads:
            found.placement = Placement(
                hosts=record.hosts,
                spark=frozenset(record.spark),
                roads=record.roads,
                why=record.why,
                slots=record.slots,
                memory_bytes=record.memory_bytes,
            )
        return found

    @property
    def id(self) -> QueryId:
        return self.record.query

    def request(self, sources: Mapping[Stage, tuple[SourceAt, ...]], gateway: NodeId) -> Request:
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
        )

    def place(self, request: Request, topology: Topology, load: Load) -> Placement:
        """Where everything runs: as the strategy says at first, and afterwards as it is, with new sources led to it."""
        if self.placement is None:
            return strategy(self.record.strategy)(request, topology, load)
        known = {SourceAt(*pair) for pairs in self.record.sources.values() for pair in pairs}
        new = {s: tuple(p for p in found if p not in known) for s, found in request.sources.items()}
        found, reasons = self.placement, []
        for stage, sources in new.items():
            for source in sources:
                try:
                    found = _joined(found, _led(request, stage, source, found, topology, load))
                except RoveError as error:
                    reasons.append(f"`{source.origin}` cannot be led to what runs already: {error}")
        self.trouble = "; ".join(reasons)
        return found

    def deploy(self, request: Request, placement: Placement) -> None:
        """Swap in a deployment; only fragments that changed get the new version."""
        version = Version(self.record.version + 1)
        sinks = {} if request.sink is None else dict.fromkeys(_outputs(self.stages), self.record.sink)
        placed = _placed(request, placement)
        wanted = fragments(dataclasses.replace(request, sources=placed), placement, version, sinks)
        kept = {
            node: old if old is not None and replace(new, version=old.version) == old else new
            for node, new in wanted.items()
            for old in (self.record.fragments.get(node),)
        }
        if kept == self.record.fragments:
            return
        self.placement = placement
        self.record = replace(
            self.record,
            version=version,
            sources={s: tuple((p.origin, p.node) for p in found) for s, found in placed.items()},
            hosts=dict(placement.hosts),
            spark=tuple(sorted(placement.spark)),
            roads=dict(placement.roads),
            why=dict(placement.why),
            slots=dict(placement.slots),
            memory_bytes=dict(placement.memory_bytes),
            fragments=kept,
        )

    def explained(self, request: Request, placement: Placement, topology: Topology) -> str:
        return explain(request, placement, topology)


def _placed(request: Request, placement: Placement) -> dict[Stage, tuple[SourceAt, ...]]:
    """The sources that have a place."""
    return {s: tuple(p for p in found if p.node in placement.hosts.get(s, ())) for s, found in request.sources.items()}


def _outputs(stages: Stages) -> list[str]:
    return ["out"] if len(stages.outputs) == 1 else [name for name, _ in stages.outputs]


def _led(
    request: Request, stage: Stage, source: SourceAt, found: Placement, topology: Topology, load: Load
) -> Placement:
    """A place for one new source. An operator that takes batches in order is not put where rows of earlier sources
    come by that meet it further up: it would have missed their beginning, so the new source goes up to it as well."""
    alone = _for_one(request, stage, source, found)
    for _ in request.stages.operators:
        placed = bottom_up(alone, topology, load)
        misplaced = next(
            (
                (Stage(n), above)
                for n, operator in enumerate(request.stages.operators)
                if ordered(operator)
                for host in placed.hosts.get(Stage(n), ())
                for above in _hosts_above(request, Stage(n), host, found)
            ),
            None,
        )
        if misplaced is None:
            return placed
        alone = dataclasses.replace(alone, hints={**alone.hints, misplaced[0]: misplaced[1]})
    raise TopologyError(f"`{source.origin}` finds no place beside the sources that were there before")


def _hosts_above(request: Request, stage: Stage, host: NodeId, found: Placement) -> Iterator[NodeId]:
    """Where earlier sources that come by a node meet an operator further up."""
    for pairs in request.sources.values():
        for earlier in pairs:
            if earlier.node in found.roads and host in found.road(earlier.node):
                meets = found.host(stage, earlier.node)
                if meets is not None and meets != host and host not in found.road(meets):
                    yield meets


def _for_one(request: Request, stage: Stage, source: SourceAt, found: Placement) -> Request:
    """One new source, with everything that merges pinned to where it is."""
    hints = dict(request.hints)
    for n, operator in enumerate(request.stages.operators):
        if Stage(n) in found.spark:
            hints[Stage(n)] = "cloud"
        elif merges(operator) and found.hosts.get(Stage(n)):
            hints[Stage(n)] = found.hosts[Stage(n)][0]
    return dataclasses.replace(request, sources={stage: (source,)}, hints=hints)


def _joined(old: Placement, new: Placement) -> Placement:
    """Both placements at once; what both host on a node is one instance there."""
    hosts = {
        s: tuple(dict.fromkeys((*old.hosts.get(s, ()), *new.hosts.get(s, ())))) for s in {**old.hosts, **new.hosts}
    }
    slots, memory = dict(old.slots), dict(old.memory_bytes)
    for node in new.slots:
        slots[node] = sum(1 for found in hosts.values() if node in found)
    for node, used in new.memory_bytes.items():
        memory[node] = max(memory.get(node, 0), used)
    return Placement(
        hosts=hosts,
        spark=old.spark,
        roads={**new.roads, **old.roads},
        why={**new.why, **old.why},
        slots=slots,
        memory_bytes=memory,
    )
