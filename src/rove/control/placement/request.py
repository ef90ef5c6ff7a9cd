"""A request for a placement: a query's stages, the nodes of its sources, and the node of its sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rove.model.errors import PlanError
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.plan.sites import Site
from rove.plan.stages import Stages, merges


@dataclass(frozen=True, slots=True)
class SourceAt:
    """One source of a stream, and its node."""

    origin: Origin
    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`sink` is the node of the sink; None means the cloud, Spark behind the gateway.

    `hints` say where the user wants an operator: "device", "edge", "cloud" or the name of a node. `running` says
    whether an operator already runs on a node: it needs no more room there.
    """

    query: QueryId
    stages: Stages
    sources: Mapping[Stage, tuple[SourceAt, ...]]
    gateway: NodeId
    sink: NodeId | None = None
    hints: Mapping[Stage, str] = field(default_factory=dict)
    running: Callable[[Stage, NodeId], bool] | None = None
    sites: tuple[Site, ...] = ()  # where each operator can run, if that is known already
    lacks: Callable[[Stage, NodeId], bool] | None = None  # whether a node lacks the user's function of an operator

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

    def producers(self, stage: Stage) -> dict[NodeId, int]:
        """How many sources of a source stage each node has. O(sources)."""
        return dict(Counter(source.node for source in self.sources.get(stage, ())))

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
