"""The verb `import`: adds expected nodes and links from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Import, Named, from_body
from rove.control.members.membership import NodeRecord
from rove.control.topology.files import Imported, read
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId

if TYPE_CHECKING:
    from rove.control.coordinator import Coordinator


def import_topology(coordinator: Coordinator, body: bytes) -> Named:
    asked = from_body(body, Import)
    found: Imported = read(asked.text, asked.updates or None)
    topology = found.topology()
    applied = 0
    for at_ms, batch in found.batches:
        if asked.through_ms is not None and at_ms <= asked.through_ms:
            topology.change(batch)
            applied += 1
    for record in records_of(topology):
        coordinator.keep("node", record.node, coordinator.membership.plan(record))
        coordinator.name_parents(record.node)
    coordinator.deployments.grown()
    size = f"{len(topology.nodes()):,} nodes, {len(topology.links()):,} links"
    return Named(name=f"{size}, {applied} of {len(found.batches)} batches of changes")


def records_of(topology: Topology) -> list[NodeRecord]:
    """The nodes of a topology as records. O(nodes + links)."""
    links: dict[NodeId, list[tuple[NodeId, int, int]]] = {}
    for link in topology.links():
        links.setdefault(link.a, []).append((link.b, link.latency_us, link.bytes_per_s))
    return [
        NodeRecord(
            node=node.id,
            kind=node.kind,
            slots=node.slots,
            memory_bytes=node.memory_bytes,
            links=tuple(links.get(node.id, ())),
        )
        for node in topology.nodes()
    ]
