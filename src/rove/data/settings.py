"""The settings of a worker: its identity and its bounds."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from rove.model.ids import NodeId
from rove.model.messages import Kind

BacklogOrder: TypeAlias = Literal["beside", "first", "last"]  # when kept batches are sent, relative to new ones


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's identity and bounds."""

    node: NodeId
    kind: Kind
    address: str = ""
    parents: tuple[NodeId, ...] = ()
    slots: int = 8
    memory_bytes: int = 50_000_000  # for batches that the node holds
    disk_bytes: int = 0  # disk space for waiting batches, when memory is full
    evict: str = "block"  # the eviction policy: block, fifo, query_aware or priority
    weights: dict[str, float] = {}  # the weights of queries, for priority
    compress: Literal["zstd", "lz4", "off"] = "zstd"  # how waiting batches are packed
    backlog: BacklogOrder = "beside"  # batches kept while a route was cut are sent beside new ones
    silent_us: int = 3_000_000  # a parent that is silent for this long is away
    report_us: int = 1_000_000
    checkpoint_bytes: int = 256_000  # the least input of a query's operators between two checkpoints of them
    checkpoint_us: int = 1_000_000  # the least time between two
    keys: bool = False  # whether peers must prove their identity
    trusts: bool = False  # whether it runs users' functions that come by value
