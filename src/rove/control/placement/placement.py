"""A placement, which a strategy decides: for each operator, the nodes that run it.

Law: rows flow upwards along the routes only. An operator's input runs at or below it, a merging operator has exactly
one host, and the output of a stage in Spark is read only in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rove.control.topology.nodes import Node
from rove.model.ids import NodeId, Stage
from rove.plan.operators import Operator, Received, Source, Union


@dataclass(frozen=True, kw_only=True)
class Placement:
    """`hosts` are the nodes that run each operator; sources run on their devices, and a stage in `spark` has no host.
    `slots` and `memory_bytes` are what the placement takes of each node, for the `Load`."""

    hosts: Mapping[Stage, tuple[NodeId, ...]]
    spark: frozenset[Stage]
    routes: Mapping[NodeId, NodeId | None]
    why: Mapping[Stage, str]
    slots: Mapping[NodeId, int]
    memory_bytes: Mapping[NodeId, int]

    def route(self, start: NodeId) -> Iterator[NodeId]:
        """The nodes from a start to the sink."""
        at: NodeId | None = start
        while at is not None:
            yield at
            at = self.routes[at]

    def host(self, stage: Stage, start: NodeId) -> NodeId | None:
        """The first host of an operator from `start` upwards, where batches that reach `start` meet it."""
        hosts = self._hosts.get(stage, frozenset())
        return next((node for node in self.route(start) if node in hosts), None)

    @cached_property
    def _hosts(self) -> dict[Stage, frozenset[NodeId]]:
        return {stage: frozenset(hosts) for stage, hosts in self.hosts.items()}


@dataclass(slots=True)
class Load:
    """What all queries together take of each node. The coordinator keeps it."""

    slots: dict[NodeId, int] = field(default_factory=dict)
    memory_bytes: dict[NodeId, int] = field(default_factory=dict)

    def add(self, placement: Placement) -> None:
        for node, used in placement.slots.items():
            self.slots[node] = self.slots.get(node, 0) + used
        for node, used in placement.memory_bytes.items():
            self.memory_bytes[node] = self.memory_bytes.get(node, 0) + used

    def free_slots(self, node: Node) -> int:
        return node.slots - self.slots.get(node.id, 0)

    def free_memory_bytes(self, node: Node) -> int:
        return node.memory_bytes - self.memory_bytes.get(node.id, 0)


def costs_a_slot(operator: Operator) -> bool:
    """Whether an operator takes a slot. A source takes none because it runs on its device in any case, and a
    union only changes the stage of a batch."""
    return not isinstance(operator, Source | Received | Union)
