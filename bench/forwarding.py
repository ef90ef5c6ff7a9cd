"""Forwarding queries, as NebulaStream-MSS has them (section 3.3), on our coordinator and our workers.

When a device is back at another parent its query is redeployed. What it had buffered has operators behind it that it
would meet again, so the coordinator then makes one forwarding query a path, up to the replication factor, and deploys
each on all nodes of its path; over them the device sends all that it had buffered, once a path. Rove needs none of it,
since a batch knows what has been done to it; this is the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

import rove
from bench import football
from bench.ways import DEVICE, GATEWAY, HUB, ORIGIN, QUERY, SECOND, Ways
from rove.control.coordinator import Command, Coordinator
from rove.control.deployment.query import Query, QueryRecord
from rove.control.placement import Placement, SourceAt
from rove.data.store.store import KeptBatch
from rove.model.events import COORDINATOR
from rove.model.ids import NodeId, QueryId, Stage
from rove.model.messages import Sink
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.runtime.catalog import Catalog
from rove.runtime.clock import now_us
from rove.runtime.local import LocalNet, LocalWires
from rove.runtime.shell import CoordinatorShell


class ForwardingCoordinator(Coordinator):
    """A coordinator that deploys forwarding queries when it is told to."""

    def forward(self, paths: Sequence[Sequence[NodeId]]) -> list[Command]:
        """One query a path, from the buffer of a device past the second filter to the sink; whom to tell."""
        self._commands = []
        stream = rove.Session.local().stream("buffered", schema=football.COLUMNS)
        buffered = Stages.of({"out": optimize(stream.where(SECOND).plan)})
        for n, path in enumerate(paths):
            sink = Sink(kind="discard", node=path[-1])
            record = QueryRecord(query=forwarding(n), plan=codec.encode(buffered), sink=sink, strategy="bottom_up")
            query = Query.of(record)
            request = query.request({Stage(0): (SourceAt(ORIGIN, DEVICE),)}, GATEWAY, {})
            placement = Placement(
                hosts={Stage(0): (DEVICE,), Stage(1): (HUB,)},
                spark=frozenset(),
                routes={**dict(pairwise(path)), path[-1]: None},
                why={},
                slots={},
                memory_bytes={},
            )
            query.deploy(request, placement, self.membership.topology)
            self.deployments.add(query)
            self._keep("query", query.id, query.record)
            for node in query.record.fragments:
                self._order(self.membership.members.get(node))
        return self._commands


class ForwardingNet(LocalNet):
    """Nodes in one process with such a coordinator."""

    def start_coordinator(self) -> None:
        wires = self._wires[COORDINATOR] = LocalWires(self, COORDINATOR)
        shell = CoordinatorShell(ForwardingCoordinator(), wires, Catalog(self.folder / "catalog.sqlite"))
        shell.start()
        self._shells[COORDINATOR] = shell


def forwarding(n: int) -> QueryId:
    return QueryId(f"{QUERY}-forwarding-{n}")


def buffer_of(ways: Ways) -> list[KeptBatch]:
    """What the device keeps of its query, taken from the route it was on: it waits for forwarding queries."""
    route = ways.worker.running()[QUERY].route
    return [] if route is None else ways.worker.links()[route].take_back(QUERY)


def deploy(ways: Ways, replication: int) -> None:
    """The coordinator makes and deploys the forwarding queries; over when the device runs them."""
    first = ways.at or 0
    order = [*ways.ways[first:], *ways.ways[:first]]
    paths = [[DEVICE, *way, HUB, GATEWAY] for way in order[:replication]]
    if isinstance(ways.machine, ForwardingCoordinator):
        ways.coordinator._obey(ways.machine.forward(paths))
    ways.wait(lambda: all(forwarding(n) in ways.worker.running() for n in range(replication)))


def send(ways: Ways, buffer: list[KeptBatch], replication: int) -> None:
    """All that was buffered, over every path; over when every batch has arrived by one of them."""
    worker = ways.worker
    worker._turn.begin(now_us())
    for entry in buffer:
        for n in range(replication):
            header = replace(entry.header, query=forwarding(n), stage=0)
            running = worker.running()[forwarding(n)]
            worker._exits.forward(running, header, entry.in_memory, None)
        worker.store.drop(entry)
    ways.shell._obey(worker._turn.commands)
    rows = sum(entry.header.born for entry in buffer)
    ways.wait(lambda: any(ways.delivered(forwarding(n)) >= rows for n in range(replication)))
