"""A request for a placement: a query's stages, the nodes of its sources, and the node of its sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rove.model.errors import PlanError
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.plan.stages import Stages, merges


@dataclass(frozen=True, slots=True)
class SourceAt:
    """One source of a stream, and its node."""

    origin: Origin
    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`sink` is the node of the sink; None means the cloud, Spark behind the gateway.

    `hints` say where the user wants an operator: "device", "edge", "cloud" or the name of a node. Operators do not wait
    for rows of nodes that are `absent`. Operators that are `running` on a node already need no more room there.
    `starts` tells the starts of a node without a disk apart.
    """

    query: QueryId
    stages: Stages
    sources: Mapping[Stage, tuple[SourceAt, ...]]
    gateway: NodeId
    sink: NodeId | None = None
    hints: Mapping[Stage, str] = field(default_factory=dict)
    absent: frozenset[NodeId] = frozenset()
    running: Mapping[Stage, tuple[NodeId, ...]] = field(default_factory=dict)
    starts: Mapping[NodeId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.stages.sources()
        for stage in self.sources:
            if stage not in known:
                raise PlanError(f"stage {stage} of query `{self.query}` is not a source, and was given devices")
        for stage in self.hints:
            if not 0 <= stage < len(self.stages.operators):
                raise PlanError(f"a hint for stage {stage} of query `{self.query}`, which has no such stage")

    @property
    def root(self) -> NodeId:
        """The node where all routes end."""
        return self.gateway if self.sink is None else self.sink

    def nodes_of(self, stage: Stage) -> tuple[NodeId, ...]:
        """The nodes with sources of a source stage, each once."""
        return tuple(dict.fromkeys(s.node for s in self.sources.get(stage, ())))

    def origins(self, stage: Stage, node: NodeId) -> tuple[Origin, ...]:
        """The sources of a source stage on one node."""
        return tuple(s.origin for s in self.sources.get(stage, ()) if s.node == node)

    def feeding(self) -> tuple[tuple[NodeId, ...], ...]:
        """For each stage, the nodes whose sources feed it, each once. O(stages × nodes)."""
        found: list[tuple[NodeId, ...]] = []
        for n in range(len(self.stages.operators)):
            own = self.nodes_of(Stage(n))
            below = (node for i in self.stages.inputs[n] for node in found[i])
            found.append(tuple(dict.fromkeys((*own, *below))))
        return tuple(found)

    def merging(self, stage: Stage) -> bool:
        return merges(self.stages.operators[stage])
