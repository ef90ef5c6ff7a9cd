"""The verb `import`: adds expected nodes and links from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.asks.requests import Import, Named, from_body
from rove.control.members.membership import records_of
from rove.control.topology.files import Imported, read

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
