"""A node and a link, as values.

Law: constructors refuse bad values. Units come last in names.
"""

from __future__ import annotations

from dataclasses import dataclass

from rove.model.errors import TopologyError
from rove.model.ids import NodeId, checked_name
from rove.model.messages import Kind

SLOTS = 16  # the default number of operators that a node may run
MEMORY_BYTES = 256 * 1024 * 1024  # for the state of operators
LATENCY_US = 10_000
LATENCY_US_MAX = 60_000_000
BYTES_PER_S = 1_250_000


@dataclass(frozen=True, slots=True)
class Node:
    """A worker process, and its room for operators."""

    id: NodeId
    kind: Kind
    slots: int = SLOTS
    memory_bytes: int = MEMORY_BYTES

    def __post_init__(self) -> None:
        checked_name(self.id, "a node")
        if self.kind not in ("device", "edge", "gateway"):
            raise TopologyError(f"node `{self.id}` is a `{self.kind}`; a node is a device, an edge or a gateway")
        if self.slots < 0 or self.memory_bytes < 0:
            raise TopologyError(f"node `{self.id}` has negative room; slots and memory_bytes must be 0 or more")

    @property
    def relays(self) -> bool:
        """Whether the node passes on batches of other nodes."""
        return self.kind != "device"


@dataclass(frozen=True, slots=True)
class Link:
    """Two nodes that can reach each other, in both directions."""

    a: NodeId
    b: NodeId
    latency_us: int = LATENCY_US
    bytes_per_s: int = BYTES_PER_S

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise TopologyError(f"a link from `{self.a}` to itself; a link joins two nodes")
        if not 0 <= self.latency_us <= LATENCY_US_MAX:
            raise TopologyError(
                f"the link `{self.a}`-`{self.b}` takes {self.latency_us} µs; give 0 to {LATENCY_US_MAX} µs"
            )
        if self.bytes_per_s <= 0:
            raise TopologyError(f"the link `{self.a}`-`{self.b}` carries nothing; give it bytes_per_s above 0")
