"""Who a node is, and what bounds it has."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from rove.model.ids import NodeId
from rove.model.messages import Kind

Backlog: TypeAlias = Literal["beside", "first", "last"]  # where what was kept goes, seen from what is new


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who a node is and what bounds it has."""

    node: NodeId
    kind: Kind
    address: str = ""
    parents: tuple[NodeId, ...] = ()
    slots: int = 8
    memory_bytes: int = 50_000_000  # batches it may hold
    disk_bytes: int = 0  # batches that wait may have so much of its disk, behind those in memory
    evict: str = "block"  # what goes when they are too many: block, fifo, query_aware or priority
    weights: dict[str, float] = {}  # of queries, for priority
    compress: Literal["zstd", "lz4", "off"] = "zstd"  # batches that wait: zstd, lz4 or off
    backlog: Backlog = "beside"  # what was kept while a route was cut, beside what is new
    silent_us: int = 3_000_000  # a parent that is not heard for so long is not there
    report_us: int = 1_000_000
    keys: bool = False  # whether a peer has to prove its name
    trusts: bool = False  # whether it runs users' functions that come by value
