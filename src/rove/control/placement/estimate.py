"""Estimates of an operator's output: bytes, rates, memory.

Law: all estimates are in this file. The ILP minimises by them. `explain()` shows them, and begins with the measured
rates of sources where they are known. They are linear: one node with two streams gives the same output as two nodes
with one stream each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from rove.control.placement.placement import Placement
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Stage
from rove.plan.operators import Aggregate, CountWindow, Deduplicate, Filter, Operator, SparkAggregate
from rove.plan.stages import stateful

ROWS_PER_S = 100.0  # for a source that has not been measured
FILTER_KEEPS = 0.5
AGGREGATE_KEEPS = 0.1  # rows out of a windowed aggregate for each row in; the final half has the same rows out as in
DEDUPLICATE_KEEPS = 0.5
TEXT_BYTES = 16
ITEMS = 4  # of an array or a map
LATENCY_US_PER_HOP = 100_000  # this much latency weighs as much as one more hop
STATELESS_MEMORY_BYTES = 64 * 1024
STATEFUL_MEMORY_BYTES = 4 * 1024 * 1024
Measured = Callable[[NodeId, str], float | None]  # the rows a second of a stream's sources on a node, if it is known


@dataclass(frozen=True, slots=True)
class Flow:
    """What one stage sends from a node to the next. If the next is None, into the log or the sink."""

    node: NodeId
    next: NodeId | None
    stage: Stage
    rows_per_s: float
    bytes_per_s: float


def row_bytes(schema: pa.Schema) -> int:
    """The estimated bytes of a row."""
    return max(1, sum(_width(field.type) for field in schema))


def keeps(operator: Operator) -> float:
    """The estimated rows out for each row in."""
    match operator:
        case Filter():
            return FILTER_KEEPS
        case Aggregate(mode="final"):
            return 1.0
        case Aggregate() | SparkAggregate():
            return AGGREGATE_KEEPS
        case CountWindow(rows=rows):
            return 1.0 / rows
        case Deduplicate():
            return DEDUPLICATE_KEEPS
    return 1.0


def memory_bytes(operator: Operator) -> int:
    """The memory that an operator needs."""
    return STATEFUL_MEMORY_BYTES if stateful(operator) else STATELESS_MEMORY_BYTES


def link_weight(topology: Topology, node: NodeId, next: NodeId | None) -> float:
    """The cost of a byte on a link: one hop, plus the link's latency in hops. The log is one hop without latency."""
    return 1.0 if next is None else 1.0 + topology.link(node, next).latency_us / LATENCY_US_PER_HOP


def flows(request: Request, placement: Placement, measured: Measured | None = None) -> tuple[Flow, ...]:
    """What each link carries for each stage, in the order of stages, by the `measured` rates of sources where there are
    any. O(stages × hosts × height)."""
    rows: dict[Stage, dict[NodeId, float]] = {stage: {} for stage in placement.hosts}
    outputs = {stage for _, stage in request.stages.outputs}
    found: dict[tuple[Stage, NodeId], float] = {}
    for stage, hosts in placement.hosts.items():
        if not request.stages.inputs[stage]:
            made = _made(request, stage, measured)
            rows[stage] = {host: made.get(host, 0.0) for host in hosts}
        for host, rate in rows[stage].items():
            leaves = stage in outputs
            crossed: dict[NodeId, None] = {}
            for reader in request.stages.readers[stage]:
                if reader in placement.spark:
                    leaves = True
                elif (target := placement.host(reader, host)) is not None:
                    kept = rate * keeps(request.stages.operators[reader])
                    rows[reader][target] = rows[reader].get(target, 0.0) + kept
                    crossed.update(dict.fromkeys(_between(placement, host, target)))
            if leaves:
                crossed.update(dict.fromkeys(placement.route(host)))
            for node in crossed:
                found[(stage, node)] = found.get((stage, node), 0.0) + rate
    widths = [row_bytes(op.schema) for op in request.stages.operators]
    return tuple(
        Flow(node, placement.routes[node], stage, rate, rate * widths[stage]) for (stage, node), rate in found.items()
    )


def _made(request: Request, stage: Stage, measured: Measured | None) -> dict[NodeId, float]:
    """The rows a second that the sources of a source stage make on each node. A measured rate is that of all sources of
    a stream on a node."""
    guessed = {node: ROWS_PER_S * count for node, count in request.producers(stage).items()}
    streams = {source.node: source.origin.name for source in request.sources.get(stage, ())}
    known = {} if measured is None else {n: measured(n, s) for n, s in streams.items()}
    return guessed | {node: rate for node, rate in known.items() if rate is not None}


def cost(request: Request, placement: Placement, topology: Topology) -> float:
    """The cost that the ILP minimises: bytes a second times the hops and latency of their way."""
    return sum(f.bytes_per_s * link_weight(topology, f.node, f.next) for f in flows(request, placement))


def _between(placement: Placement, low: NodeId, high: NodeId) -> Iterator[NodeId]:
    """The nodes that send, on the way from one node to another."""
    for node in placement.route(low):
        if node == high:
            return
        yield node


def _width(dtype: pa.DataType) -> int:
    if pt.is_struct(dtype):
        return sum(_width(dtype.field(i).type) for i in range(dtype.num_fields))
    if pt.is_map(dtype):
        return ITEMS * (_width(dtype.key_type) + _width(dtype.item_type))
    if pt.is_list(dtype):
        return ITEMS * _width(dtype.value_type)
    try:
        return max(1, int(dtype.bit_width) // 8)
    except ValueError:  # a type of no fixed width
        return TEXT_BYTES
